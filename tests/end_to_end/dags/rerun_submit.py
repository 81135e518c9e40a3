"""The two-task form without resubmission; test_rerunning_submit.py clears both tasks through Airflow's API."""

from datetime import timedelta

import pendulum
from airflow.sdk import DAG

from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

START = pendulum.datetime(2026, 1, 1)


def two_tasks(dag_id: str, **sensor: object) -> None:
    """Define a DAG whose jobs are scripted by the run id in their names."""
    with DAG(dag_id, schedule=None, start_date=START):
        submit = SubmitSpotJobOperator(
            task_id="submit",
            pai_dlc_conn_id="pai_dlc_scripted",
            image="registry.example.com/train:1",
            user_command="python train.py",
            ecs_spec="ecs.g7.xlarge",
            spot_discount_limit=0.6,
            display_name="{{ run_id }}",
            checkpoint_uri="oss://bucket.oss-cn-hangzhou-internal.aliyuncs.com/rerun/",
            wait_for_completion=False,
            retries=1,
            retry_delay=timedelta(seconds=1),
        )
        SpotJobSensor(
            task_id="wait", job_id=submit.output, pai_dlc_conn_id="pai_dlc_scripted", poke_interval=1, **sensor
        )


two_tasks("rerun_after_a_loss", on_revoked="fail")
two_tasks("rerun_beside_a_live_job", on_revoked="fail", timeout=5)
