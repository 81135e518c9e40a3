"""A job stays where it was sent to, whatever the task names meanwhile; a second is never submitted silently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred

from airflow_provider_pai_spot.attempts.places import NOWHERE
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.exceptions import PaiDlcError

CLEARED = {"try_number": 2, "max_tries": 4}
RETRIED = {"try_number": 2}


@pytest.fixture(autouse=True)
def _no_list_lags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__SUBMIT_LOOKUP_PATIENCE", "0")
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__NAMESPACE", "elsewhere")


@pytest.fixture
def elsewhere() -> Iterator[DlcEmulator]:
    with DlcEmulator(seed=7, default_plan=JobPlan(run_seconds=None)) as running:
        yield running


def in_beijing(emulator: DlcEmulator) -> str:
    return emulator.connection_uri().replace("cn-hangzhou", "cn-beijing")


def begun(desk: Any, arguments: dict[str, Any] | None = None, **moment: int) -> Any:
    """Open a session that ends in a deferral; return its trigger."""
    with pytest.raises(TaskDeferred) as deferral:
        desk.operator(**arguments or {}).execute(desk.context(**moment))
    return deferral.value.trigger


def test_a_retry_watches_on_where_the_job_lives(desk: Any, elsewhere: DlcEmulator) -> None:
    job_id = begun(desk).job_id
    desk.connect("other", in_beijing(elsewhere))
    trigger = begun(desk, {"pai_dlc_conn_id": "other"}, **RETRIED)
    watched = (trigger.job_id, trigger.pai_dlc_conn_id, trigger.region_id, trigger.workspace_id)
    assert watched == (job_id, "pai_dlc_default", "cn-hangzhou", "1")
    assert elsewhere.control.jobs() == []


def test_a_cleared_task_stops_its_job_there_and_submits_here(desk: Any, elsewhere: DlcEmulator) -> None:
    old = begun(desk).job_id
    desk.connect("other", in_beijing(elsewhere))
    trigger = begun(desk, {"pai_dlc_conn_id": "other"}, **CLEARED)
    [new] = elsewhere.control.jobs()
    assert (desk.status(old), trigger.job_id, trigger.pai_dlc_conn_id) == ("Stopped", new["JobId"], "other")
    assert desk.ledger.newest.place.conn_id == "other"


def test_another_region_of_the_same_connection_is_told_apart(desk: Any) -> None:
    old = begun(desk).job_id
    trigger = begun(desk, {"region_id": "cn-beijing"}, **CLEARED)
    assert (desk.status(old), trigger.region_id) == ("Stopped", "cn-beijing")
    assert trigger.job_id != old


def test_where_the_connection_was_turned_elsewhere_nothing_is_submitted(desk: Any, elsewhere: DlcEmulator) -> None:
    job_id = begun(desk).job_id
    desk.connect("pai_dlc_default", in_beijing(elsewhere))
    with pytest.raises(PaiDlcError, match=rf"{job_id}.*cn-hangzhou.*'pai_dlc_default'.*nothing is submitted"):
        desk.operator().execute(desk.context(**CLEARED))
    assert elsewhere.control.jobs() == []
    assert desk.status(job_id) == "Running"


def test_a_connection_that_got_another_name_needs_no_old_one(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = begun(desk).job_id
    monkeypatch.delenv("AIRFLOW_CONN_PAI_DLC_DEFAULT")
    desk.connect("renamed")
    trigger = begun(desk, {"pai_dlc_conn_id": "renamed"}, **RETRIED)
    assert (trigger.job_id, trigger.pai_dlc_conn_id) == (job_id, "renamed")


def test_a_connection_that_is_gone_submits_nothing_elsewhere(
    desk: Any, elsewhere: DlcEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(desk)
    monkeypatch.delenv("AIRFLOW_CONN_PAI_DLC_DEFAULT")
    desk.connect("other", in_beijing(elsewhere))
    with pytest.raises(PaiDlcError, match="nothing is submitted"):
        desk.operator(pai_dlc_conn_id="other").execute(desk.context(**RETRIED))
    assert elsewhere.control.jobs() == []


@pytest.mark.parametrize("verdict", ["failed", "revoked", "stopped", "succeeded"])
def test_a_job_that_ended_and_was_acted_upon_holds_up_no_other(
    desk: Any, elsewhere: DlcEmulator, monkeypatch: pytest.MonkeyPatch, verdict: str
) -> None:
    begun(desk)
    desk.ledger.change(0, consumed=True, verdict=verdict)
    monkeypatch.delenv("AIRFLOW_CONN_PAI_DLC_DEFAULT")
    desk.connect("other", in_beijing(elsewhere))
    trigger = begun(desk, {"pai_dlc_conn_id": "other"}, **CLEARED)
    assert [job["JobId"] for job in elsewhere.control.jobs()] == [trigger.job_id]


@pytest.mark.parametrize("verdict", ["", "succeeded", "handed_over"])
def test_one_that_may_live_or_is_the_answer_does(
    desk: Any, elsewhere: DlcEmulator, monkeypatch: pytest.MonkeyPatch, verdict: str
) -> None:
    begun(desk)
    desk.ledger.change(0, consumed=True, verdict=verdict)
    monkeypatch.delenv("AIRFLOW_CONN_PAI_DLC_DEFAULT")
    desk.connect("other", in_beijing(elsewhere))
    with pytest.raises(PaiDlcError, match="nothing is submitted"):
        desk.operator(pai_dlc_conn_id="other").execute(desk.context(**RETRIED))
    assert elsewhere.control.jobs() == []


def test_an_unanswered_submission_is_looked_for_where_it_was_sent(desk: Any, elsewhere: DlcEmulator) -> None:
    job_id = begun(desk, {"workspace_id": "2"}).job_id
    desk.ledger.change(0, job_id=None)
    desk.connect("other", in_beijing(elsewhere))
    trigger = begun(desk, {"pai_dlc_conn_id": "other"}, **RETRIED)
    assert (trigger.job_id, trigger.workspace_id) == (job_id, "2")
    assert elsewhere.control.jobs() == []


def test_an_unanswered_submission_is_looked_for_in_its_workspace(desk: Any) -> None:
    job_id = begun(desk, {"workspace_id": "2"}).job_id
    desk.ledger.change(0, job_id=None)
    assert begun(desk, {"workspace_id": "3"}, **RETRIED).job_id == job_id
    assert desk.jobs() == [job_id]


def test_an_unanswered_submission_that_cannot_be_looked_for_is_not_repeated(desk: Any, elsewhere: DlcEmulator) -> None:
    begun(desk)
    desk.ledger.change(0, job_id=None)
    desk.connect("pai_dlc_default", in_beijing(elsewhere))
    with pytest.raises(PaiDlcError, match="attempt 0"):
        desk.operator().execute(desk.context(**RETRIED))
    assert elsewhere.control.jobs() == []


def test_what_an_older_release_stored_is_looked_for_here(desk: Any) -> None:
    job_id = begun(desk).job_id
    desk.ledger.change(0, place=NOWHERE)
    desk.connect("other")
    assert begun(desk, {"pai_dlc_conn_id": "other"}, **RETRIED).job_id == job_id
