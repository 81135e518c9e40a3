"""`log_poll_interval` through whole DAG runs: every line of every pod once, whoever waits, whatever happens."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

BOTH_MODES = pytest.mark.parametrize("deferrable", [True, False], ids=["deferrable", "in the worker"])
WAITS = pytest.mark.parametrize(
    "waits",
    [{"deferrable": True}, {"deferrable": False}, {"deferrable": False, "mode": "reschedule"}],
    ids=["deferrable", "poke", "reschedule"],
)
LOST = tuple(f"lost {n // 2}" for n in range(60))
KEPT = tuple(f"kept {n // 2}" for n in range(30))
WATCHING = ("watching", "watching", "watching")
AIMASTER = {"EnableErrorMonitoringInAIMaster": True}
REQUEST: dict[str, Any] = {
    "image": "registry.example.com/train:1",
    "user_command": "python train.py",
    "ecs_spec": "ecs.g7.xlarge",
    "spot_discount_limit": 0.6,
    "pod_count": 2,
    "settings": AIMASTER,
}
_COPIED = re.compile(r"\[(worker-0|worker-1|aimaster-0)\] \S+Z  (\w+(?: \d+)?)")


@pytest.fixture(autouse=True)
def _nothing_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__LOG_LAG", "0")


def new_dag() -> DAG:
    return DAG(f"dag_{uuid.uuid4().hex[:8]}", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC))


def one_task(**arguments: Any) -> DAG:
    with new_dag() as dag:
        more: dict[str, Any] = {"poll_interval": 0.1, "log_poll_interval": 0.1, "retries": 0}
        SubmitSpotJobOperator(task_id="train", **(REQUEST | more | arguments))
    return dag


def copied(log: str) -> dict[str, list[str]]:
    pods: dict[str, list[str]] = {}
    for pod, text in _COPIED.findall(log):
        pods.setdefault(pod, []).append(text)
    return pods


@BOTH_MODES
def test_after_a_loss_the_second_job_s_lines_follow_the_first_one_s(
    emulator: DlcEmulator, run_dag: Any, deferrable: bool
) -> None:
    emulator.control.plan(JobPlan(run_seconds=30, logs=LOST, aimaster_logs=WATCHING, revoke_after=3.2))
    emulator.control.plan(JobPlan(run_seconds=2.5, logs=KEPT, aimaster_logs=WATCHING))
    run = run_dag(one_task(deferrable=deferrable))
    assert run.task_states == {"train": "success"}
    trained = [*LOST[:7], *KEPT]
    assert copied(run.log) == {"worker-0": trained, "worker-1": trained, "aimaster-0": [*WATCHING[:1], *WATCHING]}


def test_without_it_only_the_end_of_a_failing_log_is_shown(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=1, exit_code=1, logs=KEPT))
    run = run_dag(one_task(log_poll_interval=None))
    assert copied(run.log) == {}
    assert "last 30 lines of" in run.log


def test_on_a_failure_the_tail_of_each_failing_pod_comes_all_the_same(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=1, exit_code=1, logs=KEPT))
    run = run_dag(one_task())
    assert copied(run.log)["worker-1"] == [*KEPT]
    assert run.log.count("last 30 lines of") == 2


def test_a_job_that_ends_before_the_task_defers_is_copied_by_the_worker(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=0.01, logs=KEPT))
    run = run_dag(one_task())
    assert copied(run.log) == {"worker-0": [*KEPT], "worker-1": [*KEPT]}


@BOTH_MODES
def test_progress_that_was_seen_on_the_way_is_not_read_again(
    emulator: DlcEmulator, run_dag: Any, deferrable: bool
) -> None:
    emulator.control.plan(JobPlan(run_seconds=1.5, logs=('PAI_SPOT_PROGRESS {"step": 7}',)))
    run = run_dag(one_task(deferrable=deferrable, pod_count=1, log_poll_interval=600))
    assert run.xcom("train", "outcome")["progress"] == {"step": 7}
    assert emulator.control.requests()["GetPodLogs"] <= 2 * 2  # a look and the end, of two pods; no third time


@WAITS
def test_a_sensor_copies_too_and_a_successor_s_lines_follow(
    emulator: DlcEmulator, run_dag: Any, waits: dict[str, Any]
) -> None:
    emulator.control.plan(JobPlan(run_seconds=30, logs=LOST, revoke_after=3.2))
    emulator.control.plan(JobPlan(run_seconds=2.5, logs=KEPT))
    with new_dag() as dag:
        submit = SubmitSpotJobOperator(task_id="submit", wait_for_completion=False, **REQUEST)
        SpotJobSensor(
            task_id="wait",
            job_id=submit.output,
            submitted_by=submit,
            retries=2,
            retry_delay=timedelta(0),
            poke_interval=0.1,
            log_poll_interval=0.1,
            **waits,
        )
    run = run_dag(dag)
    assert run.task_states == {"submit": "success", "wait": "success"}
    trained = [*LOST[:7], *KEPT]
    assert copied(run.log) == {"worker-0": trained, "worker-1": trained}


@pytest.mark.parametrize(("zone", "hours"), [("+08:00", 8), ("UTC", 0)])
def test_quoted_events_show_when_they_happened(
    emulator: DlcEmulator, run_dag: Any, monkeypatch: pytest.MonkeyPatch, zone: str, hours: int
) -> None:
    emulator.control.plan(JobPlan(never_starts=True))
    emulator.control.switch("event_utc_offset_hours", hours)
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__EVENT_TIME_ZONE", zone)
    run = run_dag(one_task(pending_timeout=2, log_poll_interval=None))
    quoted = re.findall(r"last seen: (\S+Z) (?:Failed|Back-off)", run.log)
    assert len(quoted) >= 2
    for moment in quoted:
        assert abs(datetime.fromisoformat(moment) - datetime.now(UTC)) < timedelta(minutes=10)
