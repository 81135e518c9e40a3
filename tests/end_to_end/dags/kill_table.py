"""One spot task whose phase is scripted by its display name; test_what_happens_to_the_job.py ends it in every way."""

from datetime import timedelta

import pendulum
from airflow.sdk import DAG, Param

from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator

REQUEST = {
    "pai_dlc_conn_id": "pai_dlc_scripted",
    "image": "registry.example.com/train:1",
    "user_command": "python train.py",
    "display_name": "{{ run_id }}",
    "poll_interval": 1,
    "retries": 2,
    "retry_delay": timedelta(seconds=1),
}
AIMASTER = {
    "EnableErrorMonitoringInAIMaster": True,
    "ErrorMonitoringArgs": "--enable-job-restart=True --max-num-of-job-restart=9",
}
VPC = {"VpcId": "vpc-1", "SwitchId": "vsw-1", "SecurityGroupId": "sg-1"}
LIMITS = {"max_active_runs": 64, "max_active_tasks": 64}
START = pendulum.datetime(2026, 1, 1)

with DAG("kill_general", schedule=None, start_date=START, **LIMITS):
    SubmitSpotJobOperator(task_id="train", ecs_spec="ecs.g7.xlarge", spot_discount_limit=0.6, **REQUEST)

with DAG("kill_lingjun", schedule=None, start_date=START, params={"bid": Param(0.6)}, **LIMITS):
    SubmitSpotJobOperator(
        task_id="train",
        ecs_spec="ml.gu8ef.8xlarge-gu100",
        spot_discount_limit="{{ params.bid }}",
        user_vpc=VPC,
        settings=AIMASTER,
        **REQUEST,
    )

with DAG("kill_in_worker", schedule=None, start_date=START, **LIMITS):
    SubmitSpotJobOperator(
        task_id="train", ecs_spec="ecs.g7.xlarge", spot_discount_limit=0.6, deferrable=False, **REQUEST
    )

with DAG("kill_left_alone", schedule=None, start_date=START, **LIMITS):
    SubmitSpotJobOperator(
        task_id="train", ecs_spec="ecs.g7.xlarge", spot_discount_limit=0.6, cancel_on_kill=False, **REQUEST
    )

with DAG("kill_by_run_timeout", schedule=None, start_date=START, dagrun_timeout=timedelta(seconds=20), **LIMITS):
    SubmitSpotJobOperator(task_id="train", ecs_spec="ecs.g7.xlarge", spot_discount_limit=0.6, **REQUEST)

with DAG("kill_by_fail_fast", schedule=None, start_date=START, fail_fast=True, **LIMITS):
    SubmitSpotJobOperator(
        task_id="train", ecs_spec="ecs.g7.xlarge", spot_discount_limit=0.6, **{**REQUEST, "retries": 0}
    )
    SubmitSpotJobOperator(
        task_id="breaks",
        ecs_spec="ecs.g7.xlarge",
        spot_discount_limit=0.6,
        **{**REQUEST, "retries": 0, "display_name": "breaks-{{ run_id }}"},
    )
