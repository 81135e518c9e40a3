"""How ends are judged, as a task tells it: in its log, its XCom and what it does next."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.emulator.clock import ScaledClock
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

ENDLESS = JobPlan(run_seconds=None)
BOTH_MODES = pytest.mark.parametrize("deferrable", [True, False], ids=["deferrable", "in the worker"])
OWN_RULES = """
from airflow_provider_pai_spot.dlc.outcome import Cause, Verdict
from airflow_provider_pai_spot.dlc.verdict import Rule

def exit_43(scene):
    return [f"pod {pod.short_id} exit code 43, token=planted" for pod in scene.job.pods if pod.exit_code == 43]

RULES = [Rule(name="exit_43", verdict=Verdict.REVOKED, cause=Cause.REVOKED, sign=exit_43)]
"""


def one_task(**arguments: Any) -> DAG:
    defaults: dict[str, Any] = {
        "image": "registry.example.com/train:1",
        "user_command": "python train.py",
        "ecs_spec": "ecs.g7.xlarge",
        "spot_discount_limit": 0.6,
        "poll_interval": 0.1,
        "retry_delay": timedelta(0),
    }
    with DAG(f"dag_{uuid.uuid4().hex[:8]}", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        SubmitSpotJobOperator(task_id="train", **(defaults | arguments))
    return dag


def test_one_lost_worker_of_four_is_named_with_its_machine(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=30, revoke_after=0.2, revoke_pods=1))
    run = run_dag(one_task(pod_count=4, recovery={"max_revocations": 0}))
    [job] = emulator.control.jobs()
    [pod] = [pod for pod in emulator.control.job(job["JobId"])["Pods"] if pod["SubStatus"] == "Evicted"]
    named = f"pod {pod['PodId'].partition('-')[2]} on {pod['NodeName']} Evicted, exit code 143"
    outcome = run.xcom("train", "outcome")
    assert (outcome["verdict"], outcome["cause"], outcome["evidence"]) == ("revoked", "revoked", [named])
    assert f"verdict on {job['JobId']}: revoked" in run.log
    assert f"({named}; cause revoked, rule spot_pod_evicted, documented)" in run.log


@BOTH_MODES
def test_rules_of_ones_own_decide_what_a_task_does(
    emulator: DlcEmulator, run_dag: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deferrable: bool
) -> None:
    (tmp_path / "rules_of_a_team.py").write_text(OWN_RULES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__VERDICT_RULES", "rules_of_a_team.RULES")
    emulator.control.plan(JobPlan(run_seconds=0.2, exit_code=43))
    run = run_dag(one_task(deferrable=deferrable))
    assert run.task_states == {"train": "success"}
    assert [job["Status"] for job in emulator.control.jobs()] == ["Failed", "Succeeded"]
    assert "exit code 43, token=***; cause revoked, rule exit_43, assumed" in run.log
    assert "token=planted" not in run.log


def test_rules_that_cannot_be_imported_are_told_before_anything_is_submitted(
    emulator: DlcEmulator, run_dag: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__VERDICT_RULES", "no_such_package_at_all.RULES")
    run = run_dag(one_task())
    assert run.task_states == {"train": "failed"}
    assert emulator.control.jobs() == []
    assert "[pai_spot] verdict_rules is 'no_such_package_at_all.RULES': it cannot be imported" in run.log


def test_a_sensor_tells_of_wrong_rules_at_once(
    emulator: DlcEmulator, run_dag: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__VERDICT_RULES", "no_such_package_at_all.RULES")
    with DAG(f"dag_{uuid.uuid4().hex[:8]}", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        SpotJobSensor(task_id="wait", job_id="dlc1", poke_interval=0.1)
    run = run_dag(dag)
    assert run.task_states == {"wait": "failed"}
    assert "verdict_rules is 'no_such_package_at_all.RULES'" in run.log


@pytest.mark.parametrize("status", ["Failed", "Stopped"])
def test_dlc_s_own_time_limit_is_a_timeout_however_it_ends(
    run_dag: Any, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    """Which status a job has that ran into JobMaxRunningTimeMinutes is not documented."""
    with DlcEmulator(clock=ScaledClock(60), default_plan=ENDLESS, behaviours={"timeout_status": status}) as emulator:
        monkeypatch.setenv("AIRFLOW_CONN_PAI_DLC_DEFAULT", emulator.connection_uri())
        run = run_dag(one_task(job_overrides={"JobMaxRunningTimeMinutes": 1}))
        assert [job["Status"] for job in emulator.control.jobs()] == [status]
    assert run.task_states == {"train": "failed"}
    assert run.xcom("train", "outcome")["cause"] == "timed_out"
    assert "SpotRunTimeout" in run.log
    assert "JobMaxRunningTimeMinutes" in run.log


def test_a_secret_in_dlc_s_reason_is_in_no_log_and_no_xcom(emulator: DlcEmulator, run_dag: Any) -> None:
    told = "Failed to pull image https://robot:planted@hub/x: unauthorized, token=planted, LTAIplanted0000001"
    emulator.control.plan(JobPlan(run_seconds=0.2, exit_code=143, evicted=False, reason_message=told))
    run = run_dag(one_task())
    outcome = run.xcom("train", "outcome")
    assert (outcome["cause"], outcome["rule"]) == ("environment", "image_pull")
    assert "Failed to pull image" in run.log
    assert "planted" not in json.dumps(outcome) + run.log
