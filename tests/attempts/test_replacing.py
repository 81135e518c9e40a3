"""Which live jobs are replaced, and what becomes of one that succeeds before its stop reaches it."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.task_jobs import Ended, Finished
from airflow_provider_pai_spot.dlc.outcome import Verdict
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan


def let_it_succeed_before_the_stop(task: Any, jobs: Any) -> None:
    """The hook's StopJob takes so long that the job is over when DLC reads it."""
    stop_job = jobs.hook.stop_job

    def late(job_id: str) -> bool:
        task.clock.sleep(3600)
        return bool(stop_job(job_id))

    jobs.hook.stop_job = late


@pytest.mark.parametrize(
    ("generation", "edits", "submits"),
    [(3, {}, False), (4, {}, True), (3, {"user_command": "other"}, True)],
    ids=["a retry", "a clear", "another request"],
)
def test_a_success_before_the_stop_is_not_paid_for_twice(
    emulator: DlcEmulator, new_task: Any, generation: int, edits: dict[str, str], submits: bool
) -> None:
    emulator.control.plan(JobPlan(run_seconds=600))
    task = new_task(run_id=f"raced-{generation}-{len(edits)}")
    first = task.begin().begin().job_id
    task.clock.sleep(60)
    task.edit(**edits)
    jobs = task.begin(2, generation=generation, reattach=False)
    let_it_succeed_before_the_stop(task, jobs)
    step = jobs.begin()
    assert len(task.jobs()) == 1 + submits
    if not submits:
        assert isinstance(step, Ended)
        assert isinstance(jobs.conclude(step.outcome), Finished)
        assert (step.outcome.job_id, jobs.ledger.newest.verdict) == (first, Verdict.SUCCEEDED)
