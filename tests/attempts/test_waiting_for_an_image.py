"""A job that won its machines and cannot start on them: no bid, type or list price mends that."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.drive import drive
from airflow_provider_pai_spot.attempts.follow import follow
from airflow_provider_pai_spot.attempts.limits import WaitLimits
from airflow_provider_pai_spot.attempts.task_jobs import Ended
from airflow_provider_pai_spot.dlc.outcome import JobOutcome
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.exceptions import SpotPendingTimeout
from airflow_provider_pai_spot.recovery import SpotRecovery

LIMITS = WaitLimits(pending_timeout=7200.0)
ANSWERS: dict[str, dict[str, Any]] = {
    "on_demand": {},
    "raise_bid": {"spot_discount_ladder": (0.7, 0.9)},
    "next_ecs_spec": {"ecs_specs": ("ecs.g7.2xlarge",)},
}


@pytest.mark.parametrize("heard", [True, False], ids=["by its event", "by the next try"])
@pytest.mark.parametrize(("answer", "more"), ANSWERS.items(), ids=ANSWERS)
def test_an_image_that_cannot_be_pulled_costs_no_other_job(
    emulator: DlcEmulator, new_task: Any, answer: str, more: dict[str, Any], heard: bool
) -> None:
    emulator.control.plan(JobPlan(never_starts=True), times=2)
    task = new_task(run_id=f"image-{answer}-{heard}")
    wanted = {"recovery": SpotRecovery(on_pending_timeout=answer, **more), "limits": LIMITS}
    jobs = task.begin(**wanted)
    job_id = jobs.begin().job_id
    looking = follow(job_id, limits=LIMITS, poll_interval=30, now=task.clock.now, log=task.log, spot=True)
    outcome = drive(looking, jobs.hook, task.clock)
    if not heard:
        jobs = task.begin(2, **wanted)
        outcome = found_by(jobs)
    with pytest.raises(SpotPendingTimeout, match="had its machines") as raised:
        jobs.conclude(outcome)
    assert "no capacity" not in str(raised.value)
    assert not heard or "ErrImagePull" in str(raised.value)
    assert [job["Status"] for job in task.jobs()] == ["Stopped"]
    assert jobs.ledger.tally(jobs.moment.try_number, jobs.moment.generation).waits == 0


def found_by(jobs: Any) -> JobOutcome:
    """Return the end that a try finds which did not hear of it."""
    ended = jobs.begin()
    assert isinstance(ended, Ended)
    return ended.outcome
