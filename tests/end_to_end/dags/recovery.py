"""Tasks whose every job ends as their name says, and ten trainings; test_recovery_on_airflow.py drives them."""

from datetime import timedelta

import pendulum
from airflow.sdk import DAG

from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator

REQUEST = {
    "pai_dlc_conn_id": "pai_dlc_scripted",
    "image": "registry.example.com/train:1",
    "user_command": "python train.py",
    "poll_interval": 1,
    "retry_delay": timedelta(seconds=1),
}
CELLS = (
    ("lost", 0, 0),
    ("lost", 0, 2),
    ("lost", 1, 0),
    ("lost", 1, 1),
    ("failed", 0, 3),
    ("failed", 1, 3),
    ("unknown", 1, 1),
    ("waiting", 1, 1),
)
START = pendulum.datetime(2026, 1, 1)

with DAG("recovery_cells", schedule=None, start_date=START, max_active_tasks=16):
    for end, retries, max_revocations in CELLS:
        SubmitSpotJobOperator(
            task_id=f"{end}-{retries}-{max_revocations}",
            display_name=f"cell-{end}-{retries}-{max_revocations}",
            ecs_spec="ecs.g7.xlarge",
            spot_discount_limit=0.6,
            retries=retries,
            recovery={"max_revocations": max_revocations},
            pending_timeout=2 if end == "waiting" else None,
            **REQUEST,
        )

with DAG("ten_trainings", schedule=None, start_date=START, max_active_tasks=16):
    SubmitSpotJobOperator.partial(
        task_id="train",
        ecs_spec="ecs.gn6i-c4g1.xlarge",
        recovery={"spot_discount_ladder": [0.9]},
        retries=1,
        **REQUEST,
    ).expand(spot_discount_limit=[0.5] * 6 + [0.9] * 4)
