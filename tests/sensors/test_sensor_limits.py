"""A sensor whose time is up: what it does to the job, and what Airflow sees."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSensorTimeout, TaskDeferred

from airflow_provider_pai_spot.dlc.outcome import JobOutcome, StopReason, Verdict
from airflow_provider_pai_spot.exceptions import SpotTotalTimeout, SpotWatchEnded
from airflow_provider_pai_spot.sensors.watch import keep

POKING: dict[str, Any] = {"deferrable": False, "timeout": 60}


def times_up(bench: Any, job_id: str, **arguments: Any) -> Any:
    bench.session(job_id, **POKING).begin()
    bench.clock.sleep(61)
    return bench.session(job_id, **POKING, **arguments)


def test_no_successor_is_submitted_after_the_sensor_s_time(bench: Any) -> None:
    job_id = bench.job()
    watching = bench.session(job_id, **POKING)
    watching.begin()
    keep(bench.store, watching.watch.after_loss())
    bench.clock.sleep(61)
    jobs = len(bench.control.jobs())
    with pytest.raises(AirflowSensorTimeout, match="no successor was submitted"):
        bench.session(job_id, try_number=2, submitted_by="submit", retries=3, **POKING).begin()
    assert len(bench.control.jobs()) == jobs


def event(job_id: str, reason: StopReason, status: str = "Running") -> dict[str, Any]:
    verdict = Verdict.STOPPED if status == "Stopped" else Verdict.UNKNOWN
    return JobOutcome(job_id=job_id, verdict=verdict, status=status, stop_reason=reason).to_dict()


def test_the_job_is_stopped_before_the_message_says_so(bench: Any) -> None:
    job_id = bench.job()
    with pytest.raises(AirflowSensorTimeout, match="it was stopped"):
        times_up(bench, job_id, cancel_on_kill=True).look()
    assert bench.status(job_id) == "Stopped"


def test_the_job_is_left_alone_by_default(bench: Any) -> None:
    job_id = bench.job()
    with pytest.raises(AirflowSensorTimeout, match="left alone"):
        times_up(bench, job_id).look()
    assert bench.status(job_id) == "Running"


def test_a_stop_that_fails_leaves_the_timeout_a_timeout(bench: Any) -> None:
    job_id = bench.job()
    bench.control.fault("StopJob", "server_error", times=None)
    with pytest.raises(AirflowSensorTimeout, match=f"could not be stopped.*`pai-spot stop {job_id}`"):
        times_up(bench, job_id, cancel_on_kill=True).look()


def test_a_stop_that_the_triggerer_could_not_make_is_tried_again(bench: Any) -> None:
    job_id = bench.job()
    with pytest.raises(AirflowSensorTimeout, match="it was stopped"):
        bench.session(job_id, cancel_on_kill=True).resume(event(job_id, StopReason.TOTAL_TIMEOUT))
    assert bench.status(job_id) == "Stopped"


def test_letting_go_stops_once(bench: Any) -> None:
    flow = bench.session(bench.job(), cancel_on_kill=True)
    assert flow.let_go() == "it was stopped"
    bench.control.fault("StopJob", "server_error", times=None)
    assert flow.let_go() == "it was stopped"


@pytest.mark.parametrize("limit", [None, timedelta(hours=1)])
def test_the_trigger_is_told_of_execution_timeout(bench: Any, limit: timedelta | None) -> None:
    with pytest.raises(TaskDeferred) as deferral:
        bench.session(bench.job(), execution_timeout=limit).watch_deferred()
    deadline = deferral.value.trigger.serialize()[1]["execution_deadline"]
    assert deadline == (limit and (bench.started_at + limit).isoformat())


@pytest.mark.parametrize("cancel_on_kill", [False, True])
def test_execution_timeout_in_the_triggerer_is_retried(bench: Any, cancel_on_kill: bool) -> None:
    job_id = bench.job()
    flow = bench.session(job_id, execution_timeout=timedelta(hours=1), cancel_on_kill=cancel_on_kill)
    with pytest.raises(SpotTotalTimeout, match="execution_timeout passed"):
        flow.resume(event(job_id, StopReason.EXECUTION_TIMEOUT))
    assert bench.status(job_id) == ("Stopped" if cancel_on_kill else "Running")


def test_a_job_that_an_earlier_try_may_have_stopped_is_not_said_to_be_a_person_s_doing_alone(bench: Any) -> None:
    job_id = bench.job()
    bench.hook.stop_job(job_id)
    bench.clock.sleep(120)
    limits = {"execution_timeout": timedelta(hours=1), "cancel_on_kill": True}
    with pytest.raises(SpotWatchEnded, match="Perhaps by this sensor's execution_timeout"):
        bench.session(job_id, try_number=2, **limits).watch_deferred()
    with pytest.raises(SpotWatchEnded, match="outside Airflow") as first_try:
        bench.session(job_id, **limits).watch_deferred()
    assert "Perhaps" not in str(first_try.value)


@pytest.mark.parametrize("told", [None, {}, {"verdict": "succeeded", "pods": 3}], ids=str)
def test_an_event_that_cannot_be_read_is_followed_by_a_look(bench: Any, told: Any) -> None:
    with pytest.raises(TaskDeferred):
        bench.session(bench.job()).resume(told)


def test_a_trigger_s_job_counts_more_than_what_job_id_renders_to_meanwhile(bench: Any) -> None:
    from airflow_provider_pai_spot.sensors.flow import SensorFlow
    from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

    sensor = SpotJobSensor(task_id="wait", job_id=None)
    flow = SensorFlow(sensor, bench.context(), job_id="dlc1", hook=bench.hook, clock=bench.clock)
    assert flow.watch.job_id == "dlc1"


def test_a_session_opens_its_flow_once(bench: Any) -> None:
    flow = bench.session(bench.job(), deferrable=False)
    flow.sensor._flow = flow
    assert not flow.sensor.poke(flow.context)
    assert not flow.sensor.poke(flow.context)
    assert flow.sensor._flow is flow
