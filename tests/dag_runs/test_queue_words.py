"""An unusual wait is explained in the task log, whoever waits: operator or sensor, in worker or triggerer."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

TYPE = "ecs.g7.xlarge"
WAITERS: dict[str, dict[str, Any]] = {
    "operator, deferrable": {"deferrable": True},
    "operator, in the worker": {"deferrable": False},
    "sensor, deferrable": {"deferrable": True},
    "sensor, poke": {"deferrable": False, "mode": "poke"},
    "sensor, reschedule": {"deferrable": False, "mode": "reschedule"},
}


def new_dag() -> DAG:
    return DAG(f"dag_{uuid.uuid4().hex[:8]}", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC))


def waiting_dag(waiter: str, **request: Any) -> DAG:
    """Wait for a job that bids 0.4: one's own, or one that was made elsewhere."""
    with new_dag() as dag:
        if waiter.startswith("operator"):
            SubmitSpotJobOperator(
                task_id="wait",
                image="registry.example.com/train:1",
                user_command="python train.py",
                ecs_spec=TYPE,
                spot_discount_limit=0.4,
                poll_interval=0.1,
                **request,
                **WAITERS[waiter],
            )
        else:
            SpotJobSensor(task_id="wait", job_id=job_made_elsewhere(), poke_interval=0.1, **WAITERS[waiter])
    return dag


def job_made_elsewhere() -> str:
    spot = {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.4}
    role = {"Type": "Worker", "Image": "i", "PodCount": 1, "EcsSpec": TYPE, "SpotSpec": spot}
    body = {"DisplayName": "by-hand", "JobType": "PyTorchJob", "JobSpecs": [role], "UserCommand": "x"}
    return PaiDlcHook().create_job({**body, "WorkspaceId": "1"})


@pytest.mark.parametrize("waiter", WAITERS)
def test_an_unusual_wait_is_explained_once_for_each_doubling(
    emulator: DlcEmulator,
    run_dag: Any,
    meanwhile: Callable[[Callable[[], object]], None],
    monkeypatch: pytest.MonkeyPatch,
    waiter: str,
) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__UNUSUAL_WAIT", "2")
    emulator.control.set_price(TYPE, 0.55)
    meanwhile(lambda: lower_the_price_when_it_was_asked_for(emulator))
    run = run_dag(waiting_dag(waiter))
    assert run.task_states == {"wait": "success"}
    [job] = emulator.control.jobs()
    said = re.findall(rf"{job['JobId']} has been waiting for .*", run.log)
    assert f"{TYPE} costs 0.55 of list price, above the bid of 0.4, spot stock is left" in said[0]
    assert "spot bid too low" in said[0]
    waited = _seconds_pending(job)
    assert len(said) <= sum(1 for power in range(20) if 2 * 2**power <= waited)


def test_a_wait_for_a_quota_is_diagnosed_from_the_triggerer_too(
    emulator: DlcEmulator,
    run_dag: Any,
    meanwhile: Callable[[Callable[[], object]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__UNUSUAL_WAIT", "1")
    emulator.control.switch("quota_check_failing", "UserLimit")
    emulator.control.set_price(TYPE, 0.55)
    meanwhile(lambda: lower_the_price_when_it_was_asked_for(emulator, operation="GetQuotaWorkloadDiagnosis"))
    run = run_dag(waiting_dag("operator, deferrable", job_overrides={"ResourceId": "quota1"}))
    assert run.task_states == {"wait": "success"}
    assert "in quota quota1 the limit of one user is reached" in run.log


def lower_the_price_when_it_was_asked_for(emulator: DlcEmulator, operation: str = "ListEcsSpecs") -> None:
    give_up_at = time.monotonic() + 120
    while not emulator.control.requests().get(operation):
        if time.monotonic() > give_up_at:
            emulator.control.set_price(TYPE, 0.3)  # so that the run ends
            pytest.fail(f"nobody sent {operation}")
        time.sleep(0.1)
    time.sleep(0.5)  # the line itself is written
    emulator.control.set_price(TYPE, 0.3)


def _seconds_pending(job: dict[str, Any]) -> float:
    created, running = (datetime.fromisoformat(job[name]) for name in ("GmtCreateTime", "GmtRunningTime"))
    return (running - created).total_seconds() + 1


def test_a_job_that_gets_its_machine_is_not_spoken_of(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=0.3))
    run = run_dag(waiting_dag("operator, deferrable"))
    assert "has been waiting" not in run.log
    assert "ListEcsSpecs" not in emulator.control.requests()
