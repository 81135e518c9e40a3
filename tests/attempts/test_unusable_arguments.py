"""Arguments that cannot be used any more end no job that was submitted with good ones: templates change their mind."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.task_jobs import Ended, Finished, TaskJobs, Waiting
from airflow_provider_pai_spot.dlc.job_request import JobRequest
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.exceptions import SpotJobFailed, SpotSubmissionRefused

REFUSAL = SpotSubmissionRefused("train: spot_discount_limit is 1.5")
NOTHING = JobRequest(body={"WorkspaceId": "1", "JobSpecs": []}, resource_type="ECS", bids_by_role={})
RUNS = JobPlan(run_seconds=None)


def refused(task: Any, try_number: int, **more: Any) -> TaskJobs:
    """Begin a try whose arguments cannot be used."""
    jobs: TaskJobs = task.begin(try_number, request=NOTHING, refusal=REFUSAL, **more)
    return jobs


def ended(jobs: TaskJobs) -> Ended:
    step = jobs.begin()
    assert isinstance(step, Ended)
    return step


def test_the_success_of_a_job_is_returned(emulator: DlcEmulator, new_task: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=60))
    task = new_task(run_id="success")
    job_id = task.begin().begin().job_id
    task.clock.sleep(600)
    jobs = refused(task, 2)
    done = jobs.conclude(ended(jobs).outcome)
    assert isinstance(done, Finished)
    assert done.outcome.job_id == job_id


@pytest.mark.parametrize("store", ["kept", "lost"])
def test_a_live_job_is_watched_on(emulator: DlcEmulator, new_task: Any, store: str) -> None:
    emulator.control.plan(RUNS)
    task = new_task(run_id=f"live-{store}")
    first = task.begin().begin()
    if store == "lost":
        task.store.set("pai_spot", "")
    assert refused(task, 2).begin() == first
    assert [job["JobId"] for job in task.live()] == [first.job_id]
    assert any("is watched on" in line and "1.5" in line for line in task.log.lines)


@pytest.mark.parametrize("how", [{"reattach": False}, {"generation": 4}], ids=["reattach=False", "after a clear"])
def test_a_live_job_that_is_not_taken_over_is_stopped_first(
    emulator: DlcEmulator, new_task: Any, how: dict[str, Any]
) -> None:
    emulator.control.plan(RUNS)
    task = new_task(run_id=f"replaced-{sorted(how)}")
    task.begin().begin()
    with pytest.raises(SpotSubmissionRefused, match=r"1\.5"):
        refused(task, 2, **how).begin()
    assert [job["Status"] for job in task.jobs()] == ["Stopped"]


def test_a_failure_is_told_as_what_it_is(emulator: DlcEmulator, new_task: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=60, exit_code=1))
    task = new_task(run_id="failure")
    task.begin().begin()
    task.clock.sleep(600)
    jobs = refused(task, 2)
    with pytest.raises(SpotJobFailed):
        jobs.conclude(ended(jobs).outcome)


def test_a_loss_is_counted_and_the_refusal_comes_in_the_place_of_the_next_job(
    emulator: DlcEmulator, new_task: Any
) -> None:
    emulator.control.plan(JobPlan(run_seconds=None, revoke_after=60))
    task = new_task(run_id="loss")
    assert isinstance(task.begin().begin(), Waiting)
    task.clock.sleep(600)
    jobs = refused(task, 2)
    with pytest.raises(SpotSubmissionRefused, match=r"1\.5"):
        jobs.conclude(ended(jobs).outcome)
    assert jobs.ledger.get(0).consumed
    assert len(task.jobs()) == 1


def test_a_first_job_is_refused_before_anything_is_sent(emulator: DlcEmulator, new_task: Any) -> None:
    task = new_task(run_id="first")
    with pytest.raises(SpotSubmissionRefused, match=r"1\.5"):
        refused(task, 1).begin()
    assert (task.jobs(), task.begin().ledger.newest) == ([], None)
