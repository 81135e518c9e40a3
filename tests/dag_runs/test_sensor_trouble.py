"""SpotJobSensor through whole DAG runs where something is wrong: with DLC, with its arguments, with its time."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG, task
from airflow.sdk.execution_time.xcom import XCom

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

POKE, RESCHEDULE, DEFERRABLE = {"deferrable": False}, {"deferrable": False, "mode": "reschedule"}, {"deferrable": True}
ENDLESS = JobPlan(run_seconds=None)
IS_LOST = JobPlan(run_seconds=30, revoke_after=0.2)
QUICKLY: dict[str, Any] = {"retries": 2, "retry_delay": timedelta(0), "poke_interval": 0.1}
REQUEST: dict[str, Any] = {
    "image": "registry.example.com/train:1",
    "user_command": "python train.py",
    "ecs_spec": "ecs.g7.xlarge",
    "spot_discount_limit": 0.5,
    "wait_for_completion": False,
}


def new_dag() -> DAG:
    return DAG(f"dag_{uuid.uuid4().hex[:8]}", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC))


def watch_only(job_id: str, **sensor: Any) -> DAG:
    with new_dag() as dag:
        SpotJobSensor(task_id="wait", job_id=job_id, **(QUICKLY | sensor))
    return dag


def job_made_elsewhere(emulator: DlcEmulator, plan: JobPlan) -> str:
    emulator.control.plan(plan)
    spot = {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.5}
    role = {"Type": "Worker", "Image": "i", "PodCount": 1, "EcsSpec": "ecs.g7.xlarge", "SpotSpec": spot}
    body = {"DisplayName": "by-hand", "JobType": "PyTorchJob", "JobSpecs": [role], "UserCommand": "x"}
    return PaiDlcHook().create_job({**body, "WorkspaceId": "1"})


@pytest.mark.parametrize("form", [POKE, RESCHEDULE, DEFERRABLE], ids=["poke", "reschedule", "deferrable"])
def test_an_outage_costs_no_try(emulator: DlcEmulator, run_dag: Any, form: dict[str, Any]) -> None:
    job_id = job_made_elsewhere(emulator, JobPlan(run_seconds=0.3))
    emulator.control.fault("GetJob", "server_error", times=6)  # one look more than the hook's own retries
    run = run_dag(watch_only(job_id, retries=0, **form))
    assert run.task_states == {"wait": "success"}


@pytest.mark.parametrize("form", [POKE, DEFERRABLE], ids=["poke", "deferrable"])
def test_a_job_id_that_is_none_is_refused_with_the_way_out(
    emulator: DlcEmulator, run_dag: Any, form: dict[str, Any]
) -> None:
    with new_dag() as dag:

        @task
        def nothing() -> None:
            return None

        @task
        def several() -> list[str]:
            return ["dlc1", "dlc2"]

        SpotJobSensor(task_id="none", job_id=nothing(), **(QUICKLY | form))
        SpotJobSensor(task_id="empty", job_id="", **(QUICKLY | form))
        SpotJobSensor(task_id="list", job_id=several(), **(QUICKLY | form))
    run = run_dag(dag)
    sensors = ("none", "empty", "list")
    assert [(run.task_states[name], run.tries[name]) for name in sensors] == [("failed", 1)] * 3
    assert "SpotSubmissionRefused: none: job_id is None" in run.log
    assert "has pushed no XCom" in run.log
    assert ".expand(job_id=submit.output)" in run.log


def test_a_stop_that_fails_at_the_timeout_does_not_make_it_a_retry(emulator: DlcEmulator, run_dag: Any) -> None:
    job_id = job_made_elsewhere(emulator, ENDLESS)
    emulator.control.fault("StopJob", "server_error", times=None, status=403, code="Forbidden")
    run = run_dag(watch_only(job_id, cancel_on_kill=True, timeout=1, **POKE))
    assert (run.task_states["wait"], run.tries["wait"]) == ("failed", 1)
    assert "AirflowSensorTimeout" in run.log
    assert f"`pai-spot stop {job_id}` stops it" in run.log


@pytest.mark.parametrize("cancel_on_kill", [False, True])
@pytest.mark.parametrize("form", [POKE, DEFERRABLE], ids=["poke", "deferrable"])
def test_execution_timeout_ends_a_try_and_the_job_only_if_asked_to(
    emulator: DlcEmulator, run_dag: Any, form: dict[str, Any], cancel_on_kill: bool
) -> None:
    job_id = job_made_elsewhere(emulator, ENDLESS)
    limits = {"execution_timeout": timedelta(seconds=2), "cancel_on_kill": cancel_on_kill, "retries": 0}
    run = run_dag(watch_only(job_id, **(limits | form)))
    assert run.task_states == {"wait": "failed"}
    assert ("AirflowTaskTimeout" if form is POKE else "SpotTotalTimeout") in run.log
    status = emulator.control.wait_for(job_id, "Stopped") if cancel_on_kill else emulator.control.job(job_id)["Status"]
    assert status == ("Stopped" if cancel_on_kill else "Running")


def test_two_sensors_on_one_submit_task_make_one_successor(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(IS_LOST)
    with new_dag() as dag:
        submit = SubmitSpotJobOperator(task_id="submit", **REQUEST)
        for name in ("one", "other"):
            SpotJobSensor(task_id=name, job_id=submit.output, submitted_by=submit, **QUICKLY)
    run = run_dag(dag)
    assert set(run.task_states.values()) == {"success"}
    assert [job["Status"] for job in emulator.control.jobs()] == ["Failed", "Succeeded"]
    assert run.xcom("one") == run.xcom("other") == run.xcom("submit") == emulator.control.jobs()[1]["JobId"]


def test_a_job_made_elsewhere_is_not_replaced_by_the_submit_task_s(emulator: DlcEmulator, run_dag: Any) -> None:
    job_id = job_made_elsewhere(emulator, IS_LOST)
    with new_dag() as dag:
        submit = SubmitSpotJobOperator(task_id="submit", **REQUEST)
        submit >> SpotJobSensor(task_id="wait", job_id=job_id, submitted_by=submit, **QUICKLY)
    run = run_dag(dag)
    assert (run.task_states["wait"], run.tries["wait"]) == ("failed", 2)
    assert f"{job_id} lost its capacity, and no successor is submitted" in run.log
    assert len(emulator.control.jobs()) == 2


@pytest.mark.parametrize("key", ["return_value", "job_id", "job_console"])
def test_a_successor_is_known_downstream_although_telling_of_it_failed(
    emulator: DlcEmulator, run_dag: Any, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """As after a worker's death between what it stores for its own next try and what it tells others."""
    writes: list[str] = []
    set_xcom = XCom.set

    def fail_once(*, task_id: str, **written: Any) -> None:
        if (task_id, written["key"]) == ("submit", key):
            writes.append(written["value"])
            if len(writes) == 2:  # the first one is the submit task's own
                raise ConnectionError("Airflow does not answer")
        set_xcom(task_id=task_id, **written)

    monkeypatch.setattr(XCom, "set", fail_once)
    emulator.control.plan(IS_LOST)
    with new_dag() as dag:
        submit = SubmitSpotJobOperator(task_id="submit", **REQUEST)
        SpotJobSensor(task_id="wait", job_id=submit.output, submitted_by=submit, **QUICKLY)
    run = run_dag(dag)
    lost, successor = (job["JobId"] for job in emulator.control.jobs())
    assert (run.task_states["wait"], run.tries["wait"]) == ("success", 3)
    assert run.xcom("submit") == run.xcom("submit", "job_id") == run.xcom("wait") == successor
    assert lost not in run.xcom("submit", "job_console")
