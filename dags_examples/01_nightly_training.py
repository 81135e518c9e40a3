"""
One task, every night: train on spot capacity, lose it, get it back, go on from the last checkpoint.

The same file runs on DLC and on the emulator. What differs is the connection `pai_dlc_default` and the params
below; the image needs Python with NumPy and scikit-learn.
"""

from datetime import timedelta
from pathlib import Path

import pendulum
from airflow.sdk import DAG, Param

from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.recovery import SpotRecovery

EXPECTED_STATE = {"train": "success"}
EXPECTED_LOG = {"train": ("submitted dlc", "bid 0.4 of list price", "succeeded: dlc")}

PARAMS = {
    "image": Param("your-registry-vpc.cn-hangzhou.cr.aliyuncs.com/team/training:1", type="string"),
    "ecs_spec": Param("ecs.gn7i-c8g1.2xlarge", type="string"),
    "spot_discount_limit": Param(0.4, type="number", description="the most to pay, a fraction of list price"),
    "checkpoint_uri": Param("oss://your-bucket.oss-cn-hangzhou-internal.aliyuncs.com/nightly/", type="string"),
    "steps": Param(120, type="integer", minimum=1),
    "checkpoint_every": Param(10, type="integer", minimum=1, description="steps"),
    "seconds_per_step": Param(0.4, type="number", description="slows the training down, to watch it"),
}

# The program travels inside the command, so that this file needs nothing but a connection. For real training
# put it into the image, or mount it with code_source or data_sources. It is none of Jinja's business: {% raw %}.
PROGRAM = (Path(__file__).parent / "training" / "train_digits.py").read_text()
USER_COMMAND = (
    "python -"
    " --steps {{ params.steps }}"
    " --checkpoint-every {{ params.checkpoint_every }}"
    " --seconds-per-step {{ params.seconds_per_step }}"
    " <<'END_OF_PROGRAM'\n{% raw %}" + PROGRAM + "{% endraw %}\nEND_OF_PROGRAM\n"
)

with DAG(
    "nightly_training",
    schedule="0 2 * * *",
    start_date=pendulum.datetime(2026, 1, 1, tz="Asia/Shanghai"),
    catchup=False,
    max_active_runs=1,
    params=PARAMS,
):
    SubmitSpotJobOperator(
        task_id="train",
        image="{{ params.image }}",
        user_command=USER_COMMAND,
        ecs_spec="{{ params.ecs_spec }}",
        spot_discount_limit="{{ params.spot_discount_limit }}",
        checkpoint_uri="{{ params.checkpoint_uri }}",
        # Each loss bids higher, inside the same try; `retries` is left to what Airflow always uses it for.
        recovery=SpotRecovery(max_revocations=5, spot_discount_ladder=("0.6", "0.9")),
        pending_timeout=timedelta(hours=2),
        poll_interval=timedelta(seconds=10),
        retries=1,
    )
