"""One spot task whose pods' logs are copied while it runs; test_logs_on_airflow.py restarts the triggerer meanwhile."""

from datetime import timedelta

import pendulum
from airflow.sdk import DAG

from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator

with DAG("log_copying", schedule=None, start_date=pendulum.datetime(2026, 1, 1)):
    SubmitSpotJobOperator(
        task_id="train",
        pai_dlc_conn_id="pai_dlc_scripted",
        image="registry.example.com/train:1",
        user_command="python train.py",
        display_name="{{ run_id }}",
        ecs_spec="ecs.g7.xlarge",
        pod_count=2,
        settings={"EnableErrorMonitoringInAIMaster": True},
        spot_discount_limit=0.6,
        poll_interval=2,
        log_poll_interval=timedelta(seconds=12),
    )
