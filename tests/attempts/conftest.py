"""A clock that moves only when told to, a logger that keeps its lines, and a task instance whose tries can be begun."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from seams import EmulatedClock, KeptLog

from airflow_provider_pai_spot.attempts.identity import Owner, TaskIdentity
from airflow_provider_pai_spot.attempts.ledger import AttemptLedger, MemoryStore
from airflow_provider_pai_spot.attempts.moment import TryMoment
from airflow_provider_pai_spot.attempts.report import Report
from airflow_provider_pai_spot.attempts.submission import Submitter
from airflow_provider_pai_spot.attempts.task_jobs import TaskJobs, Wanted
from airflow_provider_pai_spot.dlc.job_request import build_job_request
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.recovery import SpotRecovery


class ManualClock:
    """Time stands still until somebody sleeps."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 30, 22, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def kept_log() -> KeptLog:
    return KeptLog()


PATIENCE = 120.0
_AS_USUAL = {"list_lag_seconds": 0.0, "settings_in_list": True, "spot_terms": "kept", "echo_spot_spec": True}
REQUEST = {
    "image": "registry.example.com/train:1",
    "user_command": "python train.py",
    "ecs_spec": "ecs.g7.xlarge",
    "spot_discount_limit": 0.6,
    "workspace_id": "1",
    "display_name": "nightly-train",
}


class Task:
    """One task instance, whose tries can be begun, killed and begun again."""

    def __init__(self, emulator: DlcEmulator, log: Any, run_id: str, **request: Any) -> None:
        self.emulator, self.log = emulator, log
        self.clock = EmulatedClock(emulator)
        namespace = request.pop("namespace", "airflow.example.com")
        self.identity = TaskIdentity(namespace=namespace, dag_id="nightly", run_id=run_id, task_id="train")
        self.arguments = REQUEST | request
        self.request = build_job_request(self.arguments)
        self.store = MemoryStore()
        self.run_started_at = self.clock.now()
        self.pushed: dict[str, Any] = {}

    def begin(self, try_number: int = 1, *, generation: int = 3, **wanted: Any) -> TaskJobs:
        """Open a try; `wanted`: what else the task asks for, by the names of `Wanted`."""
        hook = PaiDlcHook.from_connection(_connection(self.emulator), clock=self.clock)
        moment = TryMoment(
            try_number=try_number,
            max_tries=generation,
            started_at=self.clock.now(),
            run_started_at=self.run_started_at,
        )
        ledger = AttemptLedger(self.store)
        submitter = Submitter(
            hook=hook,
            identity=self.identity,
            ledger=ledger,
            since=self.run_started_at,
            patience=PATIENCE,
            clock=self.clock,
            log=self.log,
            adopts=try_number > 1,
            workspace_id=self.request.workspace_id,
        )
        report = Report(
            push=self.pushed.__setitem__, log=self.log, console_url=lambda job: f"https://c/{job}", console_key="c"
        )
        asked: dict[str, Any] = {"request": self.request, "recovery": SpotRecovery(), "owner": Owner.TASK, **wanted}
        return TaskJobs(
            hook=hook,
            submitter=submitter,
            ledger=ledger,
            wanted=Wanted(**asked),
            moment=moment,
            report=report,
            clock=self.clock,
            log=self.log,
        )

    def edit(self, **request: Any) -> None:
        """Let the task ask for something else from its next try on."""
        self.request = build_job_request(self.arguments | request)

    def jobs(self) -> list[dict[str, Any]]:
        return [job for job in self.emulator.control.jobs() if _tag(job) == self.identity.key]

    def live(self) -> list[dict[str, Any]]:
        return [job for job in self.jobs() if job["Status"] not in ("Succeeded", "Failed", "Stopped")]


def _connection(emulator: DlcEmulator) -> Any:
    from airflow.sdk import Connection

    return Connection.from_uri(emulator.connection_uri(), conn_id="pai_dlc_default")


def _tag(job: dict[str, Any]) -> str:
    return str(job["Settings"]["Tags"]["airflow-ti"])


@pytest.fixture(scope="module")
def running_emulator() -> Iterator[DlcEmulator]:
    with DlcEmulator(clock="manual", default_plan=JobPlan(run_seconds=None)) as running:
        yield running


@pytest.fixture
def emulator(running_emulator: DlcEmulator) -> Iterator[DlcEmulator]:
    """One for all tests of a file; each leaves it as it was."""
    yield running_emulator
    running_emulator.control.clear_faults()
    running_emulator.control.clear_plans()
    for behaviour, value in _AS_USUAL.items():
        running_emulator.control.switch(behaviour, value)


@pytest.fixture
def new_task(emulator: DlcEmulator, kept_log: KeptLog) -> Callable[..., Task]:
    """Make a task instance; `run_id` and, if needed, `namespace` and arguments of the request."""
    return partial(Task, emulator, kept_log)
