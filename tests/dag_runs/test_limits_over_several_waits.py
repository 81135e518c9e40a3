"""Limits of a whole try: neither a loss nor a deferral sets their clocks back."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator

IS_LOST_SOON = JobPlan(run_seconds=None, revoke_after=1.0)
LIMIT = timedelta(seconds=8)
OVER = ("Failed", "Stopped")


def train(**arguments: Any) -> DAG:
    with DAG(f"dag_{uuid.uuid4().hex[:8]}", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        SubmitSpotJobOperator(
            task_id="train",
            image="registry.example.com/train:1",
            user_command="python train.py",
            ecs_spec="ecs.g7.xlarge",
            spot_discount_limit=0.6,
            poll_interval=0.1,
            recovery={"max_revocations": 1000},
            **arguments,
        )
    return dag


@pytest.mark.parametrize(
    ("limit", "deferrable", "seen"),
    [
        ("total_timeout", True, "SpotTotalTimeout"),
        ("total_timeout", False, "SpotTotalTimeout"),
        ("execution_timeout", True, "SpotTotalTimeout"),
        ("execution_timeout", False, "SpotTotalTimeout|AirflowTaskTimeout"),  # whichever clock strikes first
    ],
)
def test_a_try_that_loses_job_after_job_ends_at_its_limit(
    emulator: DlcEmulator, run_dag: Any, limit: str, deferrable: bool, seen: str
) -> None:
    emulator.control.plan(IS_LOST_SOON, times=None)
    run = run_dag(train(deferrable=deferrable, **{limit: LIMIT}))
    assert (run.task_states, run.tries) == ({"train": "failed"}, {"train": 1})
    assert re.search(seen, run.log)
    jobs = emulator.control.jobs()
    assert len(jobs) > 1
    for job in jobs:
        emulator.control.wait_for(job["JobId"], OVER)
