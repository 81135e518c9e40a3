"""What Airflow shows of a sensor on a job made elsewhere: form by form, end by end, with and without soft_fail."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

FORMS: dict[str, dict[str, Any]] = {
    "poke": {"deferrable": False, "mode": "poke"},
    "reschedule": {"deferrable": False, "mode": "reschedule"},
    "deferrable": {"deferrable": True},
}
ENDS: dict[str, tuple[JobPlan, str]] = {
    "succeeded": (JobPlan(run_seconds=0.2), "success"),
    "failed": (JobPlan(run_seconds=0.2, exit_code=1), "failed"),
    "revoked": (JobPlan(run_seconds=30, revoke_after=0.2), "failed"),
    "stopped": (JobPlan(run_seconds=None), "failed"),
    "unknown": (JobPlan(run_seconds=0.2, exit_code=143), "failed"),
}


def made_elsewhere(emulator: DlcEmulator, how: str) -> str:
    """As the console or another tool makes a job: none of our tags, none of our variables."""
    emulator.control.plan(ENDS[how][0])
    spot = {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.5}
    role = {"Type": "Worker", "Image": "i", "PodCount": 1, "EcsSpec": "ecs.g7.xlarge", "SpotSpec": spot}
    body = {"DisplayName": how, "JobType": "PyTorchJob", "JobSpecs": [role], "UserCommand": "x", "WorkspaceId": "1"}
    job_id = PaiDlcHook().create_job(body)
    assert "airflow-ti" not in emulator.control.job(job_id)["Settings"]["Tags"]
    if how == "stopped":
        PaiDlcHook().stop_job(job_id)
    emulator.control.wait_for(job_id, {"Succeeded", "Failed", "Stopped"}, timeout=60)
    return job_id


def watching(jobs: dict[str, str], **sensor: Any) -> DAG:
    with DAG(f"dag_{uuid.uuid4().hex[:8]}", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        for how, job_id in jobs.items():
            SpotJobSensor(task_id=how, job_id=job_id, retries=3, retry_delay=timedelta(0), poke_interval=0.1, **sensor)
    return dag


@pytest.mark.parametrize("form", FORMS)
def test_a_job_made_elsewhere_ends_the_sensor_as_it_ended_at_the_first_try(
    emulator: DlcEmulator, run_dag: Any, form: str
) -> None:
    jobs = {how: made_elsewhere(emulator, how) for how in ENDS}
    run = run_dag(watching(jobs, **FORMS[form]))
    assert run.task_states == {how: state for how, (_, state) in ENDS.items()}
    assert set(run.tries.values()) == {1}
    assert {how: run.xcom(how, "outcome")["verdict"] for how in ENDS} == {how: how for how in ENDS}
    assert run.xcom("succeeded") == jobs["succeeded"]
    assert len(emulator.control.jobs()) == len(ENDS)


@pytest.mark.parametrize("form", FORMS)
def test_with_soft_fail_what_did_not_succeed_is_skipped(emulator: DlcEmulator, run_dag: Any, form: str) -> None:
    jobs = {how: made_elsewhere(emulator, how) for how in ENDS}
    run = run_dag(watching(jobs, soft_fail=True, **FORMS[form]))
    assert run.task_states == {how: "success" if how == "succeeded" else "skipped" for how in ENDS}
    assert {how: run.xcom(how, "outcome")["verdict"] for how in ENDS} == {how: how for how in ENDS}
