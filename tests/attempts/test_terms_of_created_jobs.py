"""A job that does not bid as it was asked to is stopped, whichever try gets to look at it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.ledger import AttemptLedger, MemoryStore
from airflow_provider_pai_spot.attempts.task_jobs import Ended, Waiting
from airflow_provider_pai_spot.dlc.terms import JobTerms
from airflow_provider_pai_spot.emulator import DlcEmulator
from airflow_provider_pai_spot.exceptions import SpotJobStopped, SpotSubmissionRefused

ONE_POLL = timedelta(seconds=30)


class WorkerGone(BaseException):
    """A worker process that dies."""


def dies_at(jobs: Any, call: str) -> None:
    """Let the try of `jobs` die at a call of its hook."""

    def die(*_: object, **__: object) -> None:
        raise WorkerGone

    jobs.hook = _Instead(jobs.hook, call, die)
    jobs.terms = _Instead(jobs.terms, "of_new", die) if call == "get_job" else jobs.terms


class _Instead:
    def __init__(self, real: Any, name: str, call: Any) -> None:
        self._real, self._name, self._call = real, name, call

    def __getattr__(self, name: str) -> Any:
        return self._call if name == self._name else getattr(self._real, name)


@pytest.mark.parametrize("lag", [0.0, 20.0])
def test_dropped_terms_stop_the_job_within_one_poll(emulator: DlcEmulator, new_task: Any, lag: float) -> None:
    emulator.control.switch("spot_terms", "dropped")
    emulator.control.switch("list_lag_seconds", lag)
    task = new_task(run_id=f"dropped-{lag}")
    began = task.clock.now()
    with pytest.raises(SpotSubmissionRefused, match=r"SpotDiscountLimit 0\.6; GetJob shows no SpotSpec.*PostPaid"):
        task.begin().begin()
    assert task.clock.now() - began <= ONE_POLL
    assert [job["Status"] for job in task.jobs()] == ["Stopped"]


def test_a_try_that_died_before_it_looked_leaves_the_look_to_the_next(emulator: DlcEmulator, new_task: Any) -> None:
    emulator.control.switch("spot_terms", "dropped")
    task = new_task(run_id="died-before")
    first = task.begin()
    dies_at(first, "get_job")
    with pytest.raises(WorkerGone):
        first.begin()
    with pytest.raises(SpotSubmissionRefused, match=r"SpotDiscountLimit 0\.6"):
        task.begin(2).begin()
    assert [job["Status"] for job in task.jobs()] == ["Stopped"]


def test_a_try_that_died_while_it_stopped_is_finished_by_the_next_and_says_why(
    emulator: DlcEmulator, new_task: Any
) -> None:
    emulator.control.switch("spot_terms", "changed")
    task = new_task(run_id="died-stopping")
    first = task.begin()
    dies_at(first, "stop_job")
    with pytest.raises(WorkerGone):
        first.begin()
    jobs = task.begin(2)
    ended = jobs.begin()
    assert isinstance(ended, Ended)
    with pytest.raises(SpotJobStopped, match="did not run on the spot terms"):
        jobs.conclude(ended.outcome)
    assert [job["Status"] for job in task.jobs()] == ["Stopped"]


def test_terms_are_read_once(emulator: DlcEmulator, new_task: Any) -> None:
    task = new_task(run_id="read-once")
    first = task.begin().begin()
    assert AttemptLedger(task.store).attempts[0].terms_read
    emulator.control.switch("echo_spot_spec", False)
    before = int(emulator.control.requests().get("ListJobs", 0))
    assert task.begin(2).begin() == first
    assert isinstance(first, Waiting)
    assert int(emulator.control.requests().get("ListJobs", 0)) == before


@pytest.mark.parametrize("store_is_lost", [False, True])
def test_a_job_that_recovery_sent_on_demand_has_no_terms_to_be_stopped_for(
    emulator: DlcEmulator, new_task: Any, store_is_lost: bool
) -> None:
    task = new_task(run_id=f"on-demand-{store_is_lost}")
    first = task.begin().submit(terms=JobTerms(on_demand=True))
    AttemptLedger(task.store).change(0, terms_read=False)  # as if the try had died before it looked
    if store_is_lost:
        task.store = MemoryStore()
    assert task.begin(2).begin() == first
    assert [job["JobId"] for job in task.live()] == [first.job_id]
    assert AttemptLedger(task.store).attempts[-1].on_demand
