"""Which live jobs are replaced, and what becomes of one that succeeds before its stop reaches it."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.identity import TAG_OWNER, Owner
from airflow_provider_pai_spot.attempts.task_jobs import Ended, Finished, Waiting
from airflow_provider_pai_spot.dlc.outcome import Verdict
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan

LIVES = JobPlan(run_seconds=None)


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


@pytest.mark.parametrize("generation", [3, 4], ids=["a retry", "a clear"])
def test_a_job_that_would_end_with_its_task_is_not_handed_over(
    emulator: DlcEmulator, kept_log: Any, new_task: Any, generation: int
) -> None:
    """The DAG was edited to the two-task form; the sweep would stop the job once the submit task is over."""
    emulator.control.plan(LIVES, times=2)
    task = new_task(run_id=f"edited-{generation}")
    task.begin().begin()
    task.clock.sleep(60)
    step = task.begin(2, generation=generation, owner=Owner.RUN).begin()
    [job] = task.live()
    assert step == Waiting(job["JobId"])
    assert job["Settings"]["Tags"][TAG_OWNER] == "run"
    assert sum("wait_for_completion" in line for line in kept_log.lines) == 1


@pytest.mark.parametrize(
    ("before", "after"), [(Owner.RUN, Owner.RUN), (Owner.TASK, Owner.TASK), (Owner.RUN, Owner.TASK)]
)
def test_any_other_job_is_taken_over(emulator: DlcEmulator, new_task: Any, before: Owner, after: Owner) -> None:
    emulator.control.plan(LIVES)
    task = new_task(run_id=f"kept-{before}-{after}")
    step = task.begin(owner=before).begin()
    assert task.begin(2, owner=after).begin() == step
