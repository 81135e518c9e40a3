"""A stop waits until the job is over, and claims no end that the job came to by itself."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.task_jobs import Ended, Waiting
from airflow_provider_pai_spot.dlc.outcome import Cause, StopReason, Verdict
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.exceptions import SpotJobFailed

ENDS = {
    "success": (JobPlan(run_seconds=60), (Verdict.SUCCEEDED, None, None)),
    "failure": (JobPlan(run_seconds=60, exit_code=1), (Verdict.FAILED, Cause.USER_FAILURE, None)),
    "loss": (JobPlan(run_seconds=None, revoke_after=60), (Verdict.REVOKED, Cause.REVOKED, None)),
    "stop": (JobPlan(run_seconds=None), (Verdict.STOPPED, Cause.TIMED_OUT, StopReason.TOTAL_TIMEOUT)),
}
OVER = 600.0


@pytest.mark.parametrize(("plan", "end"), ENDS.values(), ids=ENDS)
def test_only_an_end_that_the_stop_brought_about_is_marked_with_its_reason(
    emulator: DlcEmulator, new_task: Any, plan: JobPlan, end: tuple[Verdict, Cause | None, StopReason | None]
) -> None:
    emulator.control.plan(plan)
    task = new_task(run_id=f"stop-after-{end[0]}")
    jobs = task.begin()
    job_id = jobs.begin().job_id
    task.clock.sleep(OVER)
    outcome = jobs.stop(jobs.ledger.newest, job_id, StopReason.TOTAL_TIMEOUT)
    assert (outcome.verdict, outcome.cause, outcome.stop_reason) == end


def test_a_loss_that_was_found_when_a_limit_passed_is_followed_by_another_job(
    emulator: DlcEmulator, new_task: Any
) -> None:
    emulator.control.plan(JobPlan(run_seconds=None, revoke_after=60))
    task = new_task(run_id="lost-before-the-stop")
    jobs = task.begin()
    lost = jobs.begin().job_id
    task.clock.sleep(OVER)
    following = jobs.conclude(jobs.stop(jobs.ledger.newest, lost, StopReason.TOTAL_TIMEOUT))
    assert isinstance(following, Waiting)
    assert [job["JobId"] for job in task.live()] == [following.job_id]


def test_a_failure_is_told_by_the_try_that_finishes_the_stop_of_another(emulator: DlcEmulator, new_task: Any) -> None:
    """The reason was stored, and the process died before it saw how the job had ended."""
    emulator.control.plan(JobPlan(run_seconds=60, exit_code=1))
    task = new_task(run_id="failed-before-the-stop")
    jobs = task.begin()
    jobs.begin()
    task.clock.sleep(OVER)
    jobs.ledger.change(0, stop_reason=StopReason.TOTAL_TIMEOUT.value)
    again = task.begin(2)
    ended = again.begin()
    assert isinstance(ended, Ended)
    with pytest.raises(SpotJobFailed, match="exit"):
        again.conclude(ended.outcome)
