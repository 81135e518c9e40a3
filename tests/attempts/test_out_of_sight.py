"""A job that whoever waited for it could not see: a worker that can see it waits on, whichever try it is."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.limits import WaitLimits
from airflow_provider_pai_spot.attempts.task_jobs import Waiting
from airflow_provider_pai_spot.attempts.unseen import not_observed
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.exceptions import PaiDlcUnavailable, SpotOutcomeUnknown, SpotRunTimeout
from airflow_provider_pai_spot.hooks.retrying import RetryRules

LAST_TRY, TRY_BEFORE = 4, 1


def unseen_job(task: Any, try_number: int, **wanted: Any) -> tuple[Any, Any]:
    jobs = task.begin(try_number, **wanted)
    job_id = jobs.begin().job_id
    task.clock.sleep(600)
    return jobs, not_observed(job_id, "Running", PaiDlcUnavailable("no way to DLC"))


@pytest.mark.parametrize("try_number", [TRY_BEFORE, LAST_TRY])
@pytest.mark.parametrize(
    ("plan", "status"), [(JobPlan(run_seconds=None), "Running"), (JobPlan(run_seconds=60), "Succeeded")]
)
def test_a_job_that_can_be_seen_is_waited_for_again(
    emulator: DlcEmulator, new_task: Any, plan: JobPlan, status: str, try_number: int
) -> None:
    emulator.control.plan(plan)
    task = new_task(run_id=f"seen-{status}-{try_number}")
    jobs, outcome = unseen_job(task, try_number)
    assert jobs.conclude(outcome) == Waiting(outcome.job_id)
    assert task.jobs()[0]["Status"] == status
    assert not jobs.ledger.newest.consumed


@pytest.mark.parametrize(("try_number", "status"), [(TRY_BEFORE, "Running"), (LAST_TRY, "Stopping")])
def test_one_that_cannot_is_stopped_if_no_try_is_left(
    emulator: DlcEmulator, new_task: Any, try_number: int, status: str
) -> None:
    emulator.control.plan(JobPlan(run_seconds=None))
    task = new_task(run_id=f"unseen-{try_number}")
    jobs, outcome = unseen_job(task, try_number)
    emulator.control.fault("GetJob", "server_error", times=None)
    with pytest.raises(SpotOutcomeUnknown):
        jobs.conclude(outcome)
    emulator.control.clear_faults()
    assert task.jobs()[0]["Status"] == status


@pytest.mark.parametrize("try_number", [TRY_BEFORE, LAST_TRY])
def test_one_whose_limit_has_passed_is_stopped_at_it(emulator: DlcEmulator, new_task: Any, try_number: int) -> None:
    """The one who waited could not know: since when a job runs is told by the job."""
    emulator.control.plan(JobPlan(run_seconds=None))
    task = new_task(run_id=f"limit-{try_number}")
    jobs, outcome = unseen_job(task, try_number, limits=WaitLimits(run_timeout=300.0))
    with pytest.raises(SpotRunTimeout):
        jobs.conclude(outcome)
    assert task.jobs()[0]["Status"] == "Stopped"


def test_one_that_turns_out_to_be_over_is_not_lost_with_the_last_try(emulator: DlcEmulator, new_task: Any) -> None:
    """The look fails, and DLC answers to the stop that the job has ended."""
    emulator.control.plan(JobPlan(run_seconds=60))
    task = new_task(run_id="over-after-all")
    jobs, outcome = unseen_job(task, LAST_TRY)
    emulator.control.fault("GetJob", "server_error", times=RetryRules().attempts)
    assert jobs.conclude(outcome) == Waiting(outcome.job_id)
