"""A trigger that failed costs no success: a last try asks how the job ended before it gives up."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferralError, TaskDeferred

from airflow_provider_pai_spot.emulator import JobPlan

FAILED = {"error": "Trigger failure", "traceback": []}
LAST_TRY = {"try_number": 1, "max_tries": 0}
CLEARED = {"try_number": 2, "max_tries": 1}


def begun(desk: Any, plan: JobPlan, **moment: int) -> str:
    desk.control.plan(plan)
    with pytest.raises(TaskDeferred) as deferral:
        desk.operator().execute(desk.context(**moment))
    return str(deferral.value.trigger.job_id)


def resumed(desk: Any, **moment: int) -> Any:
    return desk.operator().resume_execution("__fail__", FAILED, desk.context(**moment))


def test_a_success_is_returned(desk: Any) -> None:
    job_id = begun(desk, JobPlan(run_seconds=0.3), **LAST_TRY)
    desk.control.wait_for(job_id, "Succeeded")
    assert resumed(desk, **LAST_TRY) == job_id


def test_a_loss_is_answered_as_any_other(desk: Any) -> None:
    job_id = begun(desk, JobPlan(run_seconds=9, revoke_after=0.3), **LAST_TRY)
    desk.control.wait_for(job_id, "Failed")
    with pytest.raises(TaskDeferred):
        resumed(desk, **LAST_TRY)
    assert len(desk.jobs()) == 2


@pytest.mark.parametrize(
    ("moment", "status"), [(LAST_TRY, "Stopped"), ({}, "Running")], ids=["last try", "another try"]
)
def test_a_live_job_is_the_next_try_s_or_stopped(desk: Any, moment: dict[str, int], status: str) -> None:
    job_id = begun(desk, JobPlan(run_seconds=None), **moment)
    with pytest.raises(TaskDeferralError):
        resumed(desk, **moment)
    assert desk.status(job_id) == status


def test_the_failed_trigger_of_an_earlier_try_stops_nothing(desk: Any) -> None:
    job_id = begun(desk, JobPlan(run_seconds=None), **LAST_TRY)
    with pytest.raises(TaskDeferred):
        resumed(desk, **CLEARED)
    assert desk.status(job_id) == "Running"
