"""
Lingjun with AIMaster: DLC itself restarts a job that lost its machine, and bids again; the task waits through it.

It stays one job and one attempt, counted as `restarts` in the `outcome` XCom. The limits hold on: `pending_timeout`
counts anew from each restart, `run_timeout` all time in Running together. Our own answer to a loss is switched off,
since each of its jobs would bring restarts of its own.
"""

from datetime import timedelta

import pendulum
from airflow.sdk import DAG

from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.recovery import SpotRecovery

EXPECTED_STATE = {"train": "success"}
EXPECTED_LOG = {"train": ("submitted dlc", "→ Restarting", "succeeded: dlc", "1 attempt", "restarted by DLC 1 x")}

# A restart changes no variable, PAI_SPOT_RESUME neither: look into the folder.
USER_COMMAND = """
mkdir -p "$PAI_SPOT_CHECKPOINT_DIR"
checkpoint="$PAI_SPOT_CHECKPOINT_DIR/step"
step=$(cat "$checkpoint" 2>/dev/null || echo 0)
while [ "$step" -lt 20 ]; do
    sleep 1
    step=$((step + 1))
    echo "$step" > "$checkpoint.part" && mv "$checkpoint.part" "$checkpoint"
    echo "PAI_SPOT_PROGRESS {\\"step\\": $step, \\"of\\": 20, \\"checkpoint\\": $step}"
done
"""

with DAG(
    "lingjun_aimaster",
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="Asia/Shanghai"),
    catchup=False,
):
    SubmitSpotJobOperator(
        task_id="train",
        image="your-registry-vpc.cn-wulanchabu.cr.aliyuncs.com/team/training:1",
        user_command=USER_COMMAND,
        ecs_spec="ml.gu7xf.8xlarge-gu108",
        spot_discount_limit=0.5,
        user_vpc={"VpcId": "vpc-yours", "SwitchId": "vsw-yours", "SecurityGroupId": "sg-yours"},
        settings={
            "EnableErrorMonitoringInAIMaster": True,
            "ErrorMonitoringArgs": "--enable-job-restart=True --max-num-of-job-restart=10",
        },
        checkpoint_uri="oss://your-bucket.oss-cn-wulanchabu-internal.aliyuncs.com/aimaster/",
        recovery=SpotRecovery(max_revocations=0),
        pending_timeout=timedelta(hours=6),
        run_timeout=timedelta(hours=12),
        poll_interval=timedelta(seconds=10),
    )
