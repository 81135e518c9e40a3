"""A sensor's try that Airflow begins with what an earlier one was told looks for itself."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred

from airflow_provider_pai_spot.attempts.judging import judge
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.emulator import JobPlan
from airflow_provider_pai_spot.exceptions import SpotCapacityRevoked, SpotWatchEnded
from airflow_provider_pai_spot.sensors.watch import WATCH_KEY

FAILS = JobPlan(run_seconds=60, exit_code=1)
RETRIED = {"submitted_by": "submit", "retries": 3}


def watched(bench: Any, plan: JobPlan, **arguments: Any) -> tuple[str, dict[str, Any]]:
    """Let a first try defer, and return its job's id and its trigger's event."""
    bench.control.plan(plan)
    job_id = bench.job()
    flow = bench.session(job_id, **arguments)
    flow.begin()
    with pytest.raises(TaskDeferred):
        flow.watch_deferred()
    bench.clock.sleep(600)
    return job_id, judge(Job(bench.control.job(job_id)), spot=True).to_dict()


def told(bench: Any, points_at: str, event: dict[str, Any], *, try_number: int = 1, **arguments: Any) -> Any:
    flow = bench.session(points_at, try_number=try_number, told_of=event["job_id"], **arguments)
    return flow.resume(event)


def test_the_event_of_this_try_is_believed(bench: Any) -> None:
    job_id, event = watched(bench, FAILS)
    with pytest.raises(SpotWatchEnded):
        told(bench, job_id, event)


def test_a_cleared_sensor_watches_the_job_that_it_is_pointed_at_now(bench: Any) -> None:
    _, event = watched(bench, FAILS)
    rerun = bench.job()
    with pytest.raises(TaskDeferred) as deferral:
        told(bench, rerun, event, try_number=2)
    assert deferral.value.trigger.job_id == bench.pushed["job_id"] == rerun


def test_what_it_was_told_may_still_be_so(bench: Any) -> None:
    job_id, event = watched(bench, JobPlan(run_seconds=60))
    assert told(bench, job_id, event, try_number=2) == job_id


def test_a_watch_that_an_older_release_stored_is_told_as_before(bench: Any) -> None:
    _, event = watched(bench, FAILS)
    stored = bench.store.get(WATCH_KEY)
    del stored["try_number"]
    with pytest.raises(SpotWatchEnded):
        told(bench, bench.job(), event, try_number=2)


def test_a_try_that_takes_the_watch_over_is_told_again(bench: Any) -> None:
    job_id, event = watched(bench, JobPlan(run_seconds=None, revoke_after=60), **RETRIED)
    bench.session(job_id, try_number=2, **RETRIED).begin()
    with pytest.raises(SpotCapacityRevoked):
        told(bench, job_id, event, try_number=2, **RETRIED)
