"""No limit starts anew: a job that is taken over has been under way since it was made, a try since it began."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.drive import drive
from airflow_provider_pai_spot.attempts.follow import follow
from airflow_provider_pai_spot.attempts.limits import WaitLimits
from airflow_provider_pai_spot.attempts.task_jobs import Ended, Finished, TaskJobs, Waiting
from airflow_provider_pai_spot.dlc.outcome import StopReason
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.exceptions import SpotTotalTimeout
from airflow_provider_pai_spot.recovery import SpotRecovery

LIMIT = timedelta(hours=2)
LOOK = timedelta(seconds=30)
WAITS, RUNS = JobPlan(pending_seconds=1e6), JobPlan(run_seconds=None)


@pytest.mark.parametrize(("name", "plan"), [("pending_timeout", WAITS), ("run_timeout", RUNS)])
@pytest.mark.parametrize("generation", [3, 4], ids=["after a crash", "after a clear"])
def test_a_limit_counts_on_over_three_tries(
    emulator: DlcEmulator, new_task: Any, name: str, plan: JobPlan, generation: int
) -> None:
    emulator.control.plan(plan)
    task = new_task(run_id=f"{name}-{generation}")
    began = task.clock.now()
    first = task.begin(generation=3).begin()
    assert isinstance(first, Waiting)
    for try_number in (2, 3):
        task.clock.sleep(LIMIT.total_seconds() * 0.4)
        jobs = task.begin(try_number, generation=generation)
        assert jobs.begin() == first
    limits = WaitLimits(**{name: LIMIT.total_seconds()})
    looking = follow(first.job_id, limits=limits, poll_interval=30, now=task.clock.now, log=task.log, spot=True)
    assert drive(looking, jobs.hook, task.clock).stop_reason is StopReason(name)
    took = task.clock.now() - began
    assert LIMIT <= took <= LIMIT + 3 * LOOK  # the emulator's own phases, and the stop, take some seconds
    assert [job["Status"] for job in task.jobs()] == ["Stopped"]


@pytest.mark.parametrize("seen", ["Stopping", "Stopped"])
@pytest.mark.parametrize(("name", "plan"), [("pending_timeout", WAITS), ("run_timeout", RUNS)])
def test_a_stop_at_a_limit_whose_event_was_lost_is_still_ours(
    emulator: DlcEmulator, new_task: Any, name: str, plan: JobPlan, seen: str
) -> None:
    """The triggerer stopped the job; the worker that was to hear of it died."""
    emulator.control.plan(plan)
    task = new_task(run_id=f"unheard-{name}-{seen}")
    limits = WaitLimits(**{name: LIMIT.total_seconds()})
    jobs = task.begin(limits=limits)
    job_id = jobs.begin().job_id
    task.clock.sleep(LIMIT.total_seconds() + 60)
    jobs.hook.stop_job(job_id)
    if seen == "Stopped":
        task.clock.sleep(60)
    assert emulator.control.job(job_id)["Status"] == seen
    ended = task.begin(2, limits=limits).begin()
    assert isinstance(ended, Ended)
    assert (ended.outcome.status, ended.outcome.stop_reason) == ("Stopped", StopReason(name))


@pytest.mark.parametrize("seen", ["Stopping", "Stopped"])
def test_a_stop_before_any_limit_is_a_person_s(emulator: DlcEmulator, new_task: Any, seen: str) -> None:
    emulator.control.plan(RUNS)
    task = new_task(run_id=f"by-hand-{seen}")
    limits = WaitLimits(run_timeout=LIMIT.total_seconds())
    jobs = task.begin(limits=limits)
    job_id = jobs.begin().job_id
    task.clock.sleep(LIMIT.total_seconds() / 2)
    jobs.hook.stop_job(job_id)
    task.clock.sleep(0 if seen == "Stopping" else 60)
    ended = task.begin(2, limits=limits).begin()
    assert isinstance(ended, Ended)
    assert (ended.outcome.status, ended.outcome.stop_reason) == ("Stopped", None)


DEADLINES = {"total_deadline": StopReason.TOTAL_TIMEOUT, "execution_deadline": StopReason.EXECUTION_TIMEOUT}


def limits_from_now(task: Any, name: str) -> WaitLimits:
    return WaitLimits(**{name: task.clock.now() + LIMIT})


def stopped_at(task: Any, name: str, seen: str) -> str:
    """Let the triggerer of a first try stop the job at its deadline; the worker that was to hear of it died."""
    jobs = task.begin(limits=limits_from_now(task, name))
    job_id: str = jobs.begin().job_id
    task.clock.sleep(LIMIT.total_seconds())
    jobs.hook.stop_job(job_id)
    task.clock.sleep(0 if seen == "Stopping" else 3600)
    return job_id


@pytest.mark.parametrize("seen", ["Stopping", "Stopped"])
def test_a_stop_at_the_total_deadline_of_an_earlier_try_is_still_ours(
    emulator: DlcEmulator, new_task: Any, seen: str
) -> None:
    """The deadlines of the try that finds the job are later than those it was stopped at."""
    emulator.control.plan(RUNS)
    task = new_task(run_id=f"unheard-total-{seen}")
    job_id = stopped_at(task, "total_deadline", seen)
    assert emulator.control.job(job_id)["Status"] == seen
    jobs = task.begin(2, limits=limits_from_now(task, "total_deadline"))
    ended = jobs.begin()
    assert isinstance(ended, Ended)
    with pytest.raises(SpotTotalTimeout):
        jobs.conclude(ended.outcome)
    assert len(task.jobs()) == 1


@pytest.mark.parametrize("seen", ["Stopping", "Stopped"])
def test_the_execution_timeout_of_an_earlier_try_is_no_end_of_this_one(
    emulator: DlcEmulator, new_task: Any, seen: str
) -> None:
    emulator.control.plan(RUNS, times=2)
    task = new_task(run_id=f"unheard-execution-{seen}")
    job_id = stopped_at(task, "execution_deadline", seen)
    jobs = task.begin(2, limits=limits_from_now(task, "execution_deadline"))
    step = jobs.begin()
    assert isinstance(step, Waiting)
    assert [job["JobId"] for job in task.live()] == [step.job_id]
    first = jobs.ledger.find(job_id)
    assert (first.consumed, first.verdict, first.stop_reason) == (True, "stopped", "execution_timeout")


@pytest.mark.parametrize(("name", "reason"), DEADLINES.items())
def test_a_job_that_was_taken_over_has_the_deadlines_of_the_try_that_took_it(
    emulator: DlcEmulator, new_task: Any, name: str, reason: StopReason
) -> None:
    emulator.control.plan(RUNS, times=2)
    task = new_task(run_id=f"by-hand-after-{name}")
    job_id = task.begin(limits=limits_from_now(task, name)).begin().job_id
    task.clock.sleep(LIMIT.total_seconds() * 0.6)
    jobs = task.begin(2, limits=limits_from_now(task, name))
    assert jobs.begin() == Waiting(job_id)
    task.clock.sleep(LIMIT.total_seconds() * 0.6)  # past the first try's deadline, not the second's
    jobs.hook.stop_job(job_id)
    task.clock.sleep(60)
    ended = task.begin(3, limits=limits_from_now(task, name)).begin()
    assert isinstance(ended, Ended)
    assert ended.outcome.stop_reason is None, f"stopped by hand, not by {reason.value}"


def test_a_worker_that_dies_while_it_stops_its_job_at_execution_timeout_costs_the_next_try_nothing(
    emulator: DlcEmulator, new_task: Any
) -> None:
    emulator.control.plan(RUNS, times=2)
    task = new_task(run_id="died-while-stopping")
    jobs = task.begin(limits=limits_from_now(task, "execution_deadline"))
    job_id = jobs.begin().job_id
    jobs.ledger.change(0, stop_reason=StopReason.EXECUTION_TIMEOUT.value)  # and StopJob was never sent
    step = task.begin(2, limits=limits_from_now(task, "execution_deadline")).begin()
    assert isinstance(step, Waiting)
    assert emulator.control.job(job_id)["Status"] == "Stopped"
    assert [job["JobId"] for job in task.live()] == [step.job_id]


def test_in_the_same_try_its_execution_timeout_is_its_end(emulator: DlcEmulator, new_task: Any) -> None:
    """As after an event of the trigger that cannot be read."""
    emulator.control.plan(RUNS)
    task = new_task(run_id="same-try")
    stopped_at(task, "execution_deadline", "Stopped")
    ended = task.begin().begin()
    assert isinstance(ended, Ended)
    assert ended.outcome.stop_reason is StopReason.EXECUTION_TIMEOUT


def test_a_job_that_succeeds_while_its_try_stops_it_is_left_for_the_next_one(
    emulator: DlcEmulator, new_task: Any
) -> None:
    emulator.control.plan(JobPlan(run_seconds=60))
    task = new_task(run_id="success-at-the-limit")
    jobs = task.begin()
    job_id = jobs.begin().job_id
    task.clock.sleep(600)
    jobs.stop_with_try(jobs.ledger.newest, job_id, StopReason.EXECUTION_TIMEOUT)
    again = task.begin(2)
    ended = again.begin()
    assert isinstance(ended, Ended)
    assert isinstance(again.conclude(ended.outcome), Finished)
    assert len(task.jobs()) == 1


def test_a_loss_that_is_found_at_execution_timeout_is_counted_and_not_waited_for_again(
    emulator: DlcEmulator, new_task: Any
) -> None:
    emulator.control.plan(JobPlan(run_seconds=None, revoke_after=60))
    task = new_task(run_id="loss-at-the-limit")
    jobs = task.begin()
    job_id = jobs.begin().job_id
    task.clock.sleep(600)
    jobs.stop_with_try(jobs.ledger.newest, job_id, StopReason.EXECUTION_TIMEOUT)
    assert jobs.ledger.tally(1, 3).losses_in_all == 1
    step = task.begin(2).begin()
    assert isinstance(step, Waiting)
    assert [job["JobId"] for job in task.live()] == [step.job_id]


def to_the_end(task: Any, jobs: TaskJobs, limits: WaitLimits) -> None:
    """Wait for job after job, until one succeeds or none is submitted any more."""
    step = jobs.begin()
    while isinstance(step, Waiting):
        looking = follow(step.job_id, limits=limits, poll_interval=30, now=task.clock.now, log=task.log, spot=True)
        step = jobs.conclude(drive(looking, jobs.hook, task.clock))


def test_the_time_of_a_try_counts_on_over_all_its_jobs(emulator: DlcEmulator, new_task: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=None, revoke_after=1800), times=None)
    task = new_task(run_id="lost-and-lost")
    began = task.clock.now()
    limits = WaitLimits(total_deadline=began + LIMIT)
    jobs = task.begin(limits=limits, total_deadline=limits.total_deadline, recovery=SpotRecovery(max_revocations=1000))
    with pytest.raises(SpotTotalTimeout):
        to_the_end(task, jobs, limits)
    assert LIMIT <= task.clock.now() - began <= LIMIT + 3 * LOOK
    assert [job["Status"] for job in task.jobs()] == ["Failed"] * 3 + ["Stopped"]
