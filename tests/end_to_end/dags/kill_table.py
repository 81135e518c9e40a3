"""One DAG for each event, one task for each phase: test_what_happens_to_the_job.py lets the event happen to all."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pendulum
from airflow.sdk import DAG, task
from kill_cells import WALKED, Event, Phase, dag_id_of, job_name

from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

RUN_TIMEOUT = timedelta(days=1)  # until the test puts another line here

GENERAL = {"ecs_spec": "ecs.g7.xlarge"}
LINGJUN = {
    "ecs_spec": "ml.gu8ef.8xlarge-gu100",
    "user_vpc": {"VpcId": "vpc-1", "SwitchId": "vsw-1", "SecurityGroupId": "sg-1"},
    "settings": {
        "EnableErrorMonitoringInAIMaster": True,
        "ErrorMonitoringArgs": "--enable-job-restart=True --max-num-of-job-restart=9",
    },
}
OF_PHASE: dict[Phase, dict[str, Any]] = {
    Phase.BIDDING: LINGJUN,
    Phase.RESTARTING: LINGJUN,
    Phase.QUEUED_FOR_RESUME: {"pool": "kill_gate", "pai_dlc_conn_id": "pai_dlc_dim", "priority_weight": 9},
    Phase.UP_FOR_RETRY: {"retry_delay": timedelta(hours=1)},
    Phase.IN_WORKER: {"deferrable": False},
    Phase.LAST_TRY: {"retries": 0},
    Phase.LEFT_ALONE: {"cancel_on_kill": False},
}
TWO_TASKS = (Phase.BETWEEN_TASKS, Phase.SENSOR, Phase.SENSOR_CANCELS)
OF_DAG: dict[Event, dict[str, Any]] = {
    Event.RUN_TIMEOUT: {"dagrun_timeout": RUN_TIMEOUT},
    Event.FAIL_FAST: {"fail_fast": True},
}


def submit(phase: Phase, event: Event, task_id: str, **arguments: Any) -> SubmitSpotJobOperator:
    every = {
        "pai_dlc_conn_id": "pai_dlc_kill",
        "image": "registry.example.com/train:1",
        "user_command": "python train.py",
        "spot_discount_limit": 0.6,
        "display_name": job_name(phase, event),
        "poll_interval": 5,
        "retries": 2,
        "retry_delay": timedelta(seconds=1),
        "pool": "kill_starting",
    }
    return SubmitSpotJobOperator(task_id=task_id, **(every | GENERAL | OF_PHASE.get(phase, {}) | arguments))


def add(phase: Phase, event: Event) -> None:
    """Add the task of one cell, and before a sensor the one that submits."""
    if phase not in TWO_TASKS:
        submit(phase, event, phase.value)
        return
    is_sensed = phase is not Phase.BETWEEN_TASKS
    job = submit(phase, event, f"submit_for_{phase}" if is_sensed else phase.value, wait_for_completion=False)
    if is_sensed:
        SpotJobSensor(
            task_id=phase.value,
            job_id=job.output,
            pai_dlc_conn_id="pai_dlc_kill",
            poke_interval=5,
            retries=2,
            cancel_on_kill=phase is Phase.SENSOR_CANCELS,
            pool="kill_starting",
        )


@task(pool="kill_breaker", retries=0)
def breaks() -> None:
    """Fail as soon as its pool has a slot."""
    raise RuntimeError("This task fails, as it should.")


for event in Event:
    phases = [phase for phase, its_event in WALKED if its_event is event]
    if not phases:
        continue
    with DAG(
        dag_id_of(event),
        schedule=None,
        start_date=pendulum.datetime(2026, 1, 1),
        max_active_tasks=64,
        **OF_DAG.get(event, {}),
    ):
        for phase in phases:
            add(phase, event)
        if event is Event.FAIL_FAST:
            breaks()
