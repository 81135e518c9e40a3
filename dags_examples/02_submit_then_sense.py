"""
Two tasks: one submits and is done, one waits. Between them others can use the job's id while it runs.

When the job loses its capacity the sensor is up for retry in Airflow's UI. Its next try submits the successor and
replaces the id that `submit` returned, so that everything downstream sees the job that did the work.
"""

from datetime import timedelta

import pendulum
from airflow.sdk import DAG, task

from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

EXPECTED_STATE = {"submit": "success", "wait": "success", "announce": "success"}
EXPECTED_LOG = {"submit": ("submitted dlc",), "wait": ("succeeded: dlc",), "announce": ("finished: dlc",)}

# Any program will do that goes on where the last attempt ended.
USER_COMMAND = """
mkdir -p "$PAI_SPOT_CHECKPOINT_DIR"
checkpoint="$PAI_SPOT_CHECKPOINT_DIR/step"
step=$(cat "$checkpoint" 2>/dev/null || echo 0)
while [ "$step" -lt 10 ]; do
    sleep 1
    step=$((step + 1))
    echo "$step" > "$checkpoint.part" && mv "$checkpoint.part" "$checkpoint"
    echo "PAI_SPOT_PROGRESS {\\"step\\": $step, \\"of\\": 10, \\"checkpoint\\": $step}"
done
"""

with DAG(
    "submit_then_sense",
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="Asia/Shanghai"),
    catchup=False,
):
    submit = SubmitSpotJobOperator(
        task_id="submit",
        image="your-registry-vpc.cn-hangzhou.cr.aliyuncs.com/team/training:1",
        user_command=USER_COMMAND,
        ecs_spec="ecs.c7.large",
        spot_discount_limit=0.5,
        checkpoint_uri="oss://your-bucket.oss-cn-hangzhou-internal.aliyuncs.com/two-tasks/",
        wait_for_completion=False,
    )
    wait = SpotJobSensor(
        task_id="wait",
        job_id=submit.output,
        submitted_by=submit,
        poke_interval=timedelta(seconds=10),
        timeout=timedelta(hours=6).total_seconds(),
        retries=5,
        retry_delay=timedelta(seconds=10),
        cancel_on_kill=True,
    )

    @task
    def announce(job_id: str) -> None:
        """Use the id of the job that did the work."""
        print(f"finished: {job_id}")

    wait >> announce(submit.output)
