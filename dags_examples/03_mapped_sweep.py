"""
A sweep: one spot job for each learning rate, all at the same time, and a task that picks the best.

Each mapped task has its own checkpoint folder, its own revocations and its own `outcome` XCom, in which the last
PAI_SPOT_PROGRESS line of the training is found.
"""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pendulum
from airflow.sdk import DAG, task

from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator

LEARNING_RATES = (0.01, 0.1, 1.0)
EXPECTED_STATE = {"train": "success", "pick_best": "success"}
EXPECTED_LOG = {"train": ("succeeded: dlc",), "pick_best": ("best learning rate: 1.0",)}

PROGRAM = (Path(__file__).parent / "training" / "train_digits.py").read_text()
USER_COMMAND = (
    "python - --steps 60 --learning-rate $LEARNING_RATE"
    " <<'END_OF_PROGRAM'\n{% raw %}" + PROGRAM + "{% endraw %}\nEND_OF_PROGRAM\n"
)

with DAG(
    "mapped_sweep",
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="Asia/Shanghai"),
    catchup=False,
):
    train = SubmitSpotJobOperator.partial(
        task_id="train",
        image="your-registry-vpc.cn-hangzhou.cr.aliyuncs.com/team/training:1",
        user_command=USER_COMMAND,
        ecs_spec="ecs.c7.large",
        spot_discount_limit=0.5,
        checkpoint_uri="oss://your-bucket.oss-cn-hangzhou-internal.aliyuncs.com/sweep/",
        poll_interval=timedelta(seconds=10),
        max_active_tis_per_dagrun=8,
    ).expand(envs=[{"LEARNING_RATE": str(rate)} for rate in LEARNING_RATES])

    @task
    def pick_best(outcomes: list[dict[str, Any]]) -> float:
        """Return the learning rate whose model read most digits correctly."""
        accuracies = [outcome["progress"]["accuracy"] for outcome in outcomes]
        accuracy, rate = max(zip(accuracies, LEARNING_RATES, strict=True))
        print(f"best learning rate: {rate} (accuracy {accuracy:.3f})")
        return rate

    pick_best(train.output["outcome"])
