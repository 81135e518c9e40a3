"""A try that Airflow begins with what an earlier try was told decides by the re-attach table, not by that event."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred

from airflow_provider_pai_spot.attempts.judging import judge
from airflow_provider_pai_spot.attempts.ledger import MemoryStore
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.emulator import JobPlan
from airflow_provider_pai_spot.exceptions import SpotJobFailed

CLEARED = {"try_number": 2, "max_tries": 4}
TIMED_OUT = {"error": "Trigger timeout"}


@pytest.fixture(autouse=True)
def _no_list_lags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__SUBMIT_LOOKUP_PATIENCE", "0")


def begun(desk: Any, **moment: int) -> str:
    with pytest.raises(TaskDeferred) as deferral:
        desk.operator().execute(desk.context(**moment))
    return str(deferral.value.trigger.job_id)


def resumed(desk: Any, event: dict[str, Any], **moment: int) -> Any:
    """Open a session with a trigger's event; return what the task ends with, or the job that it is deferred for."""
    try:
        return desk.operator().execute_complete(desk.context(**moment), event)
    except TaskDeferred as deferral:
        return ("waits for", deferral.trigger.job_id)


def event_of(desk: Any, job_id: str) -> dict[str, Any]:
    return judge(Job(desk.control.job(job_id)), spot=True).to_dict()


def ended(desk: Any, plan: JobPlan) -> tuple[str, dict[str, Any]]:
    """Let a first try submit a job, and return its id and its trigger's event."""
    desk.control.plan(plan)
    job_id = begun(desk)
    desk.control.wait_for(job_id, ("Succeeded", "Failed", "Stopped"))
    return job_id, event_of(desk, job_id)


def test_the_event_of_this_try_is_believed(desk: Any) -> None:
    job_id, event = ended(desk, JobPlan(run_seconds=0.3))
    assert resumed(desk, event) == job_id


def test_the_event_of_a_try_that_took_the_job_over_is_believed(desk: Any) -> None:
    desk.control.plan(JobPlan(run_seconds=0.5))
    job_id = begun(desk)
    assert begun(desk, try_number=2) == job_id
    desk.control.wait_for(job_id, "Succeeded")
    assert resumed(desk, event_of(desk, job_id), try_number=2) == job_id


def test_a_success_that_was_cleared_is_submitted_anew(desk: Any) -> None:
    job_id, event = ended(desk, JobPlan(run_seconds=0.3))
    assert resumed(desk, event) == job_id
    assert resumed(desk, event, **CLEARED) == ("waits for", desk.jobs()[1])


def test_a_failure_does_not_fail_the_cleared_task_again(desk: Any) -> None:
    _, event = ended(desk, JobPlan(run_seconds=0.3, exit_code=1))
    with pytest.raises(SpotJobFailed):
        resumed(desk, event)
    assert resumed(desk, event, **CLEARED) == ("waits for", desk.jobs()[1])


def test_a_loss_that_was_answered_already_makes_no_second_live_job(desk: Any) -> None:
    _, event = ended(desk, JobPlan(run_seconds=9, revoke_after=0.3))
    successor = resumed(desk, event)
    assert resumed(desk, event, **CLEARED) == successor == ("waits for", desk.jobs()[1])
    assert len(desk.jobs()) == 2
    assert desk.ledger.tally(2, generation=4).losses == 0


def test_a_loss_that_nobody_acted_upon_is_not_this_try_s(desk: Any) -> None:
    """The session that was told was killed by the clear before it could act."""
    lost, event = ended(desk, JobPlan(run_seconds=9, revoke_after=0.3))
    assert resumed(desk, event, **CLEARED) == ("waits for", desk.jobs()[1])
    assert desk.ledger.find(lost).verdict == "revoked"
    assert desk.ledger.tally(2, generation=4).losses == 0


def test_an_unanswered_submission_is_looked_for_before_an_event_of_an_earlier_job(desk: Any) -> None:
    _, event = ended(desk, JobPlan(run_seconds=9, revoke_after=0.3))
    successor = resumed(desk, event)[1]
    sent = desk.ledger.find(successor)
    desk.ledger.change(sent.number, job_id=None)
    assert resumed(desk, event, **CLEARED) == ("waits for", successor)
    assert len(desk.jobs()) == 2


def test_a_store_that_was_lost_costs_no_success(desk: Any) -> None:
    job_id, event = ended(desk, JobPlan(run_seconds=0.3))
    desk.store = MemoryStore()
    assert resumed(desk, event) == job_id
    assert desk.jobs() == [job_id]


def test_a_deferral_that_timed_out_in_an_earlier_try_stops_nothing(desk: Any) -> None:
    job_id = begun(desk)
    with pytest.raises(TaskDeferred) as deferral:
        desk.operator().resume_execution("__fail__", TIMED_OUT, desk.context(**CLEARED))
    assert deferral.value.trigger.job_id == job_id
    assert desk.status(job_id) == "Running"
