"""What the chaos suite runs: each way to use the provider, many times over. Sizes come from the environment."""

import os
from datetime import timedelta

import pendulum
from airflow.sdk import DAG, task_group

from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

DEFERRED, WAITING, OVERDUE, PAIRS = (int(number) for number in os.environ["PAI_SPOT_CHAOS_SIZES"].split(","))
POLL = timedelta(seconds=float(os.environ["PAI_SPOT_CHAOS_POLL_SECONDS"]))
RUN_TIMEOUT = timedelta(seconds=float(os.environ["PAI_SPOT_CHAOS_RUN_TIMEOUT_SECONDS"]))

RETRIES = {"retries": 10, "retry_delay": timedelta(seconds=3)}
JOB = {
    "image": "registry.example.com/training:1",
    "user_command": "python train.py",
    # Two markets, so that a price shock hits some and spares others.
    "ecs_spec": "{{ ['ecs.c7.large', 'ecs.g7.xlarge'][ti.map_index % 2] }}",
    "spot_discount_limit": 0.5,
    "checkpoint_uri": "oss://bucket.oss-cn-hangzhou-internal.aliyuncs.com/chaos/",
    "poll_interval": POLL,
}


def display_name(kind: str) -> str:
    """Return a name by which the emulator finds the plan of each piece of work."""
    return f"{{{{ run_id }}}}-{kind}-{{{{ '%03d' % ti.map_index }}}}"


with DAG(
    "chaos",
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=16,
    default_args=RETRIES,
):
    SubmitSpotJobOperator.partial(task_id="deferred", display_name=display_name("deferred"), **JOB).expand(
        envs=[{"NUMBER": str(number)} for number in range(DEFERRED)]
    )
    if WAITING:
        SubmitSpotJobOperator.partial(
            task_id="waiting", display_name=display_name("waiting"), deferrable=False, **JOB
        ).expand(envs=[{"NUMBER": str(number)} for number in range(WAITING)])

    if OVERDUE:
        SubmitSpotJobOperator.partial(
            task_id="overdue", display_name=display_name("overdue"), run_timeout=RUN_TIMEOUT, **JOB
        ).expand(envs=[{"NUMBER": str(number)} for number in range(OVERDUE)])

    if PAIRS:

        @task_group
        def pair(number: int) -> None:
            """Submit in one task, wait in another."""
            submit = SubmitSpotJobOperator(
                task_id="submit",
                display_name=display_name("pair"),
                wait_for_completion=False,
                envs={"NUMBER": number},
                **JOB,
            )
            wait = SpotJobSensor(
                task_id="wait",
                job_id=submit.output,
                submitted_by=submit,
                poke_interval=POLL,
                timeout=timedelta(hours=2).total_seconds(),
            )
            submit >> wait

        pair.expand(number=[str(number) for number in range(PAIRS)])
