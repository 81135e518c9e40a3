"""A training of twenty minutes that loses its machine five times, its command really run on the emulator."""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_pai_spot.emulator import DlcEmulator
from airflow_provider_pai_spot.emulator.clock import ScaledClock
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator

pytest.importorskip("sklearn")

TRAINING = Path(__file__).parents[2] / "dags_examples" / "training" / "train_digits.py"
STEPS, SECONDS_PER_STEP, INTERVAL = 120, 0.05, 10
SCALE = 20 * 60 / (STEPS * SECONDS_PER_STEP)  # the steps take twenty minutes of the cloud's time
LOSSES_AT = (15, 38, 57, 79, 102)
PATIENCE_SECONDS = 300


@pytest.fixture
def cloud() -> Iterator[DlcEmulator]:
    with DlcEmulator(execute=True, clock=ScaledClock(SCALE)) as running:
        os.environ["AIRFLOW_CONN_PAI_DLC_DEFAULT"] = running.connection_uri()
        yield running
        del os.environ["AIRFLOW_CONN_PAI_DLC_DEFAULT"]


def steps_of(cloud: DlcEmulator, job: dict[str, Any]) -> list[int]:
    """Return the steps a job printed; the first is the one that it started from."""
    from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

    lines = [line for pod in job["Pods"] for line in PaiDlcHook().get_pod_logs(job["JobId"], pod["PodId"])]
    return [json.loads(line.split("PAI_SPOT_PROGRESS", 1)[1])["step"] for line in lines if "PAI_SPOT_PROGRESS" in line]


def take_machines_back(cloud: DlcEmulator) -> None:
    """Revoke each job as soon as it has passed the next step of `LOSSES_AT`."""
    for step in LOSSES_AT:
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while not (running := _running_beyond(cloud, step)):
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"no job came to step {step}")
            time.sleep(0.02)
        cloud.control.revoke(running)


def _running_beyond(cloud: DlcEmulator, step: int) -> str:
    job = (cloud.control.jobs() or [{"Status": ""}])[-1]
    if job["Status"] != "Running":
        return ""
    return str(job["JobId"]) if max(steps_of(cloud, job), default=0) >= step else ""


def test_each_of_five_losses_costs_one_checkpoint_interval_at_most(
    cloud: DlcEmulator, run_dag: Any, meanwhile: Any
) -> None:
    command = f"{sys.executable} {TRAINING} --steps {STEPS} --seconds-per-step {SECONDS_PER_STEP}"
    with DAG(f"d{uuid.uuid4().hex[:6]}", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        SubmitSpotJobOperator(
            task_id="train",
            image="registry.example.com/train:1",
            user_command=f"{command} --checkpoint-every {INTERVAL}",
            ecs_spec="ecs.g7.xlarge",
            spot_discount_limit=0.6,
            checkpoint_uri="oss://bucket.oss-cn-hangzhou-internal.aliyuncs.com/digits/",
            poll_interval=0.1,
        )
    meanwhile(lambda: take_machines_back(cloud))
    run = run_dag(dag)
    assert (run.task_states, run.tries) == ({"train": "success"}, {"train": 1})
    runs = [steps_of(cloud, job) for job in cloud.control.jobs()]
    assert len(runs) == len(LOSSES_AT) + 1
    for lost, successor in itertools.pairwise(runs):
        assert 0 <= lost[-1] - successor[0] <= INTERVAL
    repeated = sum(len(steps) - 1 for steps in runs) - STEPS  # each job first prints the step it starts from
    assert 0 < repeated <= INTERVAL * len(LOSSES_AT)
    attempts = run.xcom("train", "attempts")
    assert [one["progressed"] for one in attempts[:-1]] == [True] * len(LOSSES_AT)
    assert sum(one["seconds_running"] for one in attempts) >= 20 * 60
