"""The control verbs over HTTP: the same for another process, and only with the token."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from airflow_provider_pai_spot.emulator import DlcEmulator, EmulatorClient, EmulatorControl, JobPlan
from airflow_provider_pai_spot.emulator.client import EmulatorControlError
from airflow_provider_pai_spot.emulator.control import VERBS


@pytest.fixture
def client(emulator: Any) -> Any:
    return EmulatorClient(emulator.base_url, emulator.control_token)


def public(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


def test_both_control_panels_have_exactly_the_verbs() -> None:
    assert public(EmulatorControl) == public(EmulatorClient) == set(VERBS)


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "fault"])
def test_both_control_panels_take_the_same_arguments(verb: Any) -> None:
    names = [list(inspect.signature(getattr(kind, verb)).parameters) for kind in (EmulatorControl, EmulatorClient)]
    assert names[0] == names[1]


def test_a_whole_story_can_be_played_from_elsewhere(sdk: Any, client: Any) -> None:
    client.plan(JobPlan(run_seconds=None, logs=("a",)), match={"display_name": "sample"})
    job_id = sdk.create()
    client.advance(10)
    assert client.wait_for(job_id, ["Running"], timeout=1) == "Running"
    client.revoke(job_id, nodes=1, cause="told to")
    assert client.job(job_id)["Status"] == "Failed"
    assert [job["JobId"] for job in client.jobs()] == [job_id]
    (entry,) = client.journal("revoked")
    assert entry["detail"]["cause"] == "told to"


def test_every_other_verb_answers_from_elsewhere(sdk: Any, client: Any, sdk_for: Any, emulator: DlcEmulator) -> None:
    client.set_price("ecs.g7.xlarge", 0.3)
    client.set_stock("ecs.g7.xlarge", 1)
    client.replay_prices("ecs.g7.xlarge", [(5, 0.2)])
    client.replay_stock("ecs.g7.xlarge", [1, 2], 5)
    client.switch("log_window", "head")
    client.fault("GetJob", "throttle", times=3, retry_after=5)
    client.clear_faults()
    client.plan({"exit_code": 1})
    client.clear_plans()
    other = sdk_for(emulator, client.add_identity())
    job_id = other.create()
    client.set_status(job_id, "Weird", reason_code="Odd")
    assert sdk.get(job_id)["Status"] == "Weird"
    assert client.requests() == {"CreateJob": 1, "GetJob": 1}
    assert client.now() == emulator.control.now()


@pytest.mark.parametrize("token", ["", "wrong", "ü"], ids=["none", "wrong", "not ascii"])
def test_without_the_token_nothing_is_done(emulator: DlcEmulator, token: Any) -> None:
    stranger = EmulatorClient(emulator.base_url, token.encode().decode("latin-1"))
    with pytest.raises(EmulatorControlError, match=r"403.*X-Emulator-Token"):
        stranger.set_stock("ecs.g7.xlarge", 0)
    assert emulator.control.journal("stock") == []


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda client: client.revoke("dlc0"), "404.*not found"),
        (lambda client: client.plan({"run_for": 3}), "JobPlan has no run_for"),
        (lambda client: client.fault("GetJob", "explode"), "explode"),
        (lambda client: client.switch("list_page_size", 3), "documented"),
    ],
    ids=["missing job", "misspelt plan", "unknown fault", "documented behaviour"],
)
def test_a_refused_verb_says_why(client: Any, call: Any, reason: Any) -> None:
    with pytest.raises(EmulatorControlError, match=reason):
        call(client)


def test_waiting_ends_with_what_is_instead(sdk: Any, client: Any) -> None:
    job_id = sdk.create()
    with pytest.raises(EmulatorControlError, match=r"Creating.*not Running"):
        client.wait_for(job_id, "Running", timeout=0)


def test_a_status_dlc_does_not_have_is_shown_and_a_known_one_goes_on(sdk: Any, emulator: DlcEmulator) -> None:
    job_id = sdk.create()
    emulator.control.set_status(job_id, "Weird")
    emulator.control.advance(3600)
    assert sdk.status(job_id) == "Weird"
    emulator.control.set_status(job_id, "Running")
    emulator.control.advance(60)
    assert sdk.status(job_id) == "Succeeded"


@pytest.mark.parametrize("status", ["SucceededReserving", "FailedReserving"])
def test_a_plan_can_end_in_a_status_that_holds_nodes(sdk: Any, emulator: DlcEmulator, status: Any) -> None:
    emulator.control.plan(JobPlan(status=status))
    job_id = sdk.create()
    emulator.control.advance(3600)
    assert sdk.status(job_id) == status
    sdk.stop(job_id)
    assert sdk.status(job_id) == status.removesuffix("Reserving")
