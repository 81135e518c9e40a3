"""`pai-spot` as a person calls it, and jobs on a real emulator as this provider makes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from airflow_provider_pai_spot.attempts.bodies import attempt_body, first_attempt
from airflow_provider_pai_spot.attempts.identity import Owner, TaskIdentity
from airflow_provider_pai_spot.cli.main import main
from airflow_provider_pai_spot.dlc.job_request import build_job_request
from airflow_provider_pai_spot.emulator import DlcEmulator
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

NAMESPACE = "team-a"


class Said(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def pai_spot(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Return a function that runs `pai-spot` with these arguments."""

    def call(*arguments: str) -> Said:
        capsys.readouterr()
        try:
            code = main(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
        return Said(code, *capsys.readouterr())

    return call


@pytest.fixture
def cloud(dlc_emulator: DlcEmulator, monkeypatch: pytest.MonkeyPatch) -> DlcEmulator:
    """Return an emulator that the default connection leads to, and a namespace of our own."""
    monkeypatch.setenv("AIRFLOW_CONN_PAI_DLC_DEFAULT", dlc_emulator.connection_uri())
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__NAMESPACE", NAMESPACE)
    return dlc_emulator


@pytest.fixture
def submitted(cloud: DlcEmulator) -> Callable[..., str]:
    """Return a function that submits a job as the operator's first attempt does, and returns its id."""

    def submit(task_id: str = "train", *, namespace: str = NAMESPACE, map_index: int = -1, **changes: Any) -> str:
        request = build_job_request(
            {
                "image": "registry.example.com/training:1",
                "user_command": "python train.py",
                "ecs_spec": "ecs.g7.xlarge",
                "spot_discount_limit": 0.4,
                "display_name": f"nightly-{task_id}",
                "workspace_id": "1",
                **changes,
            }
        )
        identity = TaskIdentity(
            namespace=namespace, dag_id="nightly", run_id="manual__1", task_id=task_id, map_index=map_index
        )
        attempt = first_attempt(request, identity, generation=0)
        body = attempt_body(request, identity, attempt, owner=Owner.TASK, resumes=False)
        return PaiDlcHook().create_job(body)

    assert cloud.endpoint
    return submit


@pytest.fixture
def dag_file(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a DAG file `dag_under_plan` around these tasks."""

    def write(tasks: str, dag_arguments: str = "") -> Path:
        body = "\n".join(f"    {line}" for line in tasks.strip().splitlines())
        path = tmp_path / "dag_under_plan.py"
        path.write_text(_HEAD + f'with DAG("dag_under_plan", {dag_arguments or "schedule=None"}):\n    pass\n{body}\n')
        return path

    return write


_HEAD = """
from datetime import timedelta
from airflow.sdk import DAG, Param, task
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.recovery import SpotRecovery
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

COMMON = dict(image="registry.example.com/training:1", user_command="python train.py", ecs_spec="ecs.g7.xlarge")

@task
def choose():
    return "x"

"""
