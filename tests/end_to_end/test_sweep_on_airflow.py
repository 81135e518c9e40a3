"""The maintenance DAG in a worker, and a sweep that asks a real Airflow about runs that end and are deleted."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from airflow.sdk import Connection
from seams import EmulatedClock

from airflow_provider_pai_spot.attempts.bodies import attempt_body
from airflow_provider_pai_spot.attempts.identity import Owner, TaskIdentity
from airflow_provider_pai_spot.attempts.ledger import Attempt
from airflow_provider_pai_spot.cli.demo.airflow_processes import LocalAirflow
from airflow_provider_pai_spot.dlc.job_request import build_job_request
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.sweep.airflow_address import AirflowAddress
from airflow_provider_pai_spot.sweep.airflow_api import AirflowApi
from airflow_provider_pai_spot.sweep.candidates import Reason
from airflow_provider_pai_spot.sweep.owners import TaskRef
from airflow_provider_pai_spot.sweep.report import Result
from airflow_provider_pai_spot.sweep.sweeper import Sweeper

EXAMPLE = Path(__file__).parents[2] / "dags_examples" / "06_sweep_orphans.py"
DAG_ID, TASK_ID, NAMESPACE = "sweep_orphans", "sweep", "end-to-end"
PATIENCE_SECONDS = 180


@pytest.fixture(scope="module")
def run_id(airflow_server: LocalAirflow) -> str:
    """A run of the maintenance DAG; the connection it needs is in Airflow's database, as a person would enter it."""
    connection = {"connection_id": "airflow_api_default", "conn_type": "http", "host": airflow_server.base_url}
    url = f"{airflow_server.base_url}/api/v2/connections"
    httpx.post(url, json=connection, trust_env=False).raise_for_status()
    airflow_server.client.wait_for_dag(DAG_ID)
    return airflow_server.client.trigger(DAG_ID)


@pytest.fixture(scope="module")
def manual_cloud() -> Iterator[DlcEmulator]:
    with DlcEmulator(clock="manual", default_plan=JobPlan(run_seconds=None)) as running:
        yield running


@pytest.fixture(scope="module")
def api(airflow_server: LocalAirflow) -> Iterator[AirflowApi]:
    with AirflowApi(AirflowAddress(base_url=airflow_server.base_url)) as client:
        yield client


def submit(cloud: DlcEmulator, run_id: str, owner: Owner) -> str:
    arguments = {"image": "i", "user_command": "c", "ecs_spec": "ecs.g7.xlarge", "spot_discount_limit": 0.4}
    request = build_job_request({**arguments, "workspace_id": "1", "display_name": "one"})
    task_id = TASK_ID if owner is Owner.TASK else "submit"
    identity = TaskIdentity(namespace=NAMESPACE, dag_id=DAG_ID, run_id=run_id, task_id=task_id)
    attempt = Attempt(number=0, generation=0, request_hash=request.request_hash)
    return hook_on(cloud).create_job(attempt_body(request, identity, attempt, owner=owner, resumes=False))


def hook_on(cloud: DlcEmulator) -> PaiDlcHook:
    connection = Connection.from_uri(cloud.connection_uri(), conn_id="pai_dlc_manual")
    return PaiDlcHook.from_connection(connection, clock=EmulatedClock(cloud))


def swept(cloud: DlcEmulator, api: AirflowApi) -> dict[str, tuple[Result, Reason]]:
    report = Sweeper(
        hook=hook_on(cloud),
        namespace=NAMESPACE,
        owner_states=api.owner_states,
        held_job=api.held_job,
        clock=EmulatedClock(cloud),
        log=logging.getLogger("pai-spot-test"),
    ).sweep(apply=False)
    return {one.job.job_id: (one.result, one.decision.reason) for one in report.jobs}


def test_the_maintenance_dag_ends_as_its_file_says(airflow_server: LocalAirflow, run_id: str) -> None:
    spec = importlib.util.spec_from_file_location("sweep_orphans_example", EXAMPLE)
    assert spec
    assert spec.loader
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    client = airflow_server.client
    client.wait_for_run(DAG_ID, run_id, PATIENCE_SECONDS)
    log = client.task_log(DAG_ID, run_id, TASK_ID)
    assert {task["task_id"]: task["state"] for task in client.task_instances(DAG_ID, run_id)} == (
        example.EXPECTED_STATE
    ), log
    assert all(words in log for words in example.EXPECTED_LOG[TASK_ID])


def test_which_job_a_task_instance_waits_for_is_read_from_its_xcom(
    airflow_server: LocalAirflow, api: AirflowApi, run_id: str
) -> None:
    airflow_server.client.wait_for_run(DAG_ID, run_id, PATIENCE_SECONDS)
    task = TaskRef(DAG_ID, run_id, TASK_ID)
    assert api.held_job(task) == ""
    path = f"/api/v2/dags/{DAG_ID}/dagRuns/{run_id}/taskInstances/{TASK_ID}/xcomEntries"
    entry: dict[str, Any] = {"key": "job_id", "value": "dlc1a2b3c", "map_index": -1}
    httpx.post(f"{airflow_server.base_url}{path}", json=entry, trust_env=False).raise_for_status()
    assert api.held_job(task) == "dlc1a2b3c"


def test_a_job_is_left_while_its_owner_lives_and_found_when_its_run_ended_or_was_deleted(
    airflow_server: LocalAirflow, api: AirflowApi, manual_cloud: DlcEmulator, run_id: str
) -> None:
    client = airflow_server.client
    client.wait_for_run(DAG_ID, run_id, PATIENCE_SECONDS)
    of_task, of_run = (submit(manual_cloud, run_id, owner) for owner in (Owner.TASK, Owner.RUN))
    manual_cloud.control.advance(3600)
    orphan = (Result.WOULD_STOP, Reason.OWNER_FINISHED)
    assert swept(manual_cloud, api) == {of_task: orphan, of_run: orphan}

    client.clear(DAG_ID, run_id, [TASK_ID])
    alive = (Result.LEFT, Reason.OWNER_ALIVE)
    assert swept(manual_cloud, api) == {of_task: alive, of_run: alive}

    client.wait_for_run(DAG_ID, run_id, PATIENCE_SECONDS)
    client.delete_run(DAG_ID, run_id)
    gone = (Result.WOULD_STOP, Reason.OWNER_GONE)
    assert swept(manual_cloud, api) == {of_task: gone, of_run: gone}
