"""Planted secrets turn up nowhere: not in logs, XCom, stored state, trigger rows, links, journal or exceptions."""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

PLANTED = {name: f"planted-{name}-{uuid.uuid4().hex}" for name in ("env", "custom", "registry", "credential", "key")}
REQUEST: dict[str, Any] = {
    "image": "registry.example.com/train:1",
    "user_command": "python train.py",
    "ecs_spec": "ecs.g7.xlarge",
    "spot_discount_limit": 0.6,
    "envs": {"WANDB_API_KEY": PLANTED["env"]},
    "job_overrides": {
        "CustomEnvs": [{"Key": "HF_TOKEN", "Value": PLANTED["custom"], "Visible": "private"}],
        "CredentialConfig": {
            "EnableCredentialInject": True,
            "CredentialConfigItems": [{"Key": "0", "Roles": [{"Policy": PLANTED["credential"]}]}],
        },
    },
}
SHOWN_TABLES = ("xcom", "task_state_store", "trigger", "log", "task_instance", "task_instance_history", "dag_run")


@pytest.fixture
def keyed_emulator() -> Iterator[DlcEmulator]:
    with DlcEmulator(access_key_id="LTAIplanted", access_key_secret=PLANTED["key"]) as running:
        os.environ["AIRFLOW_CONN_PAI_DLC_DEFAULT"] = running.connection_uri()
        yield running
        del os.environ["AIRFLOW_CONN_PAI_DLC_DEFAULT"]


def stored_text() -> str:
    """Everything that Airflow keeps about runs, as text. Rendered fields are the author's own and masked by Airflow."""
    database = Path(os.environ["AIRFLOW_HOME"]) / "airflow.db"
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        rows = [row for table in SHOWN_TABLES for row in connection.execute(f"SELECT * FROM {table}")]  # noqa: S608
    return repr(rows)


@pytest.mark.parametrize("end", ["succeeded", "failed", "lost for good", "refused", "unreachable"])
def test_no_planted_secret_is_shown(keyed_emulator: DlcEmulator, run_dag: Any, end: str) -> None:
    control = keyed_emulator.control
    match end:
        case "failed":
            control.plan(JobPlan(run_seconds=0.2, exit_code=1), times=None)
        case "lost for good":
            control.plan(JobPlan(run_seconds=30, revoke_after=0.2), times=None)
        case "refused":
            control.fault("CreateJob", "throttle", times=1)
            control.fault("GetJob", "server_error", times=3)
        case "unreachable":
            control.fault("CreateJob", "html_error", times=1)
    dag_id = f"dag_{uuid.uuid4().hex[:8]}"
    with DAG(dag_id, schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        SubmitSpotJobOperator(
            task_id="train", poll_interval=0.1, recovery={"max_revocations": 1}, **_with_registry(REQUEST)
        )
        submit = SubmitSpotJobOperator(task_id="submit", wait_for_completion=False, **_with_registry(REQUEST))
        SpotJobSensor(
            task_id="wait",
            job_id=submit.output,
            submitted_by=submit,
            retries=1,
            retry_delay=timedelta(0),
            poke_interval=0.1,
        )
    os.environ["AIRFLOW__PAI_SPOT__SUBMIT_LOOKUP_PATIENCE"] = "1"
    try:
        run = run_dag(dag)
    finally:
        del os.environ["AIRFLOW__PAI_SPOT__SUBMIT_LOOKUP_PATIENCE"]
    shown = run.log + stored_text() + repr(control.journal()) + repr(control.requests())
    assert control.jobs()[0]["JobId"] in run.log, "the log was not captured, so it proves nothing"
    assert "job_id" in stored_text()
    assert {name for name, secret in PLANTED.items() if secret in shown} == set()


def _with_registry(request: dict[str, Any]) -> dict[str, Any]:
    """The same request as a role of its own, with a registry password."""
    role = {
        "Type": "Worker",
        "Image": request["image"],
        "PodCount": 1,
        "EcsSpec": request["ecs_spec"],
        "SpotSpec": {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.6},
        "ImageConfig": {"Username": "robot", "Password": PLANTED["registry"]},
    }
    flat = {"image", "ecs_spec", "spot_discount_limit"}
    return {**{key: value for key, value in request.items() if key not in flat}, "job_specs": [role]}
