"""A sensor on its own: the emulator's manual clock is the provider's, and Airflow is what a context holds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from seams import EmulatedClock, KeptLog

from airflow_provider_pai_spot.attempts.ledger import MemoryStore
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.hooks.retrying import RetryRules
from airflow_provider_pai_spot.sensors.flow import SensorFlow
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor


class Bench:
    """One sensor's task instance, whose sessions can be opened one after another."""

    def __init__(self, emulator: DlcEmulator, log: KeptLog) -> None:
        self.control = emulator.control
        self.clock = EmulatedClock(emulator)
        self.hook = new_hook(emulator, self.clock)
        self.log = log
        self.store = MemoryStore()
        self.pushed: dict[str, Any] = {}
        self.started_at = self.clock.now()

    def job(self, *, bids: bool = True, **body: Any) -> str:
        spot = {"SpotSpec": {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.9}} if bids else {}
        role = {"Type": "Worker", "Image": "i", "PodCount": 1, "EcsSpec": "ecs.g7.xlarge", **spot}
        named = {"DisplayName": "by-hand", "JobType": "PyTorchJob", "JobSpecs": [role], "UserCommand": "x"}
        return self.hook.create_job({**named, "WorkspaceId": "1", **body})

    def status(self, job_id: str) -> str:
        self.clock.sleep(120)
        return str(self.control.job(job_id)["Status"])

    def session(self, job_id: Any, *, try_number: int = 1, told_of: str | None = None, **arguments: Any) -> SensorFlow:
        sensor = SpotJobSensor(task_id="wait", job_id=job_id, **arguments)
        flow = SensorFlow(sensor, self.context(try_number), job_id=told_of, hook=self.hook, clock=self.clock)
        flow.log = self.log
        return flow

    def push(self, key: str, value: Any) -> None:
        self.pushed[key] = value

    def context(self, try_number: int = 1) -> Any:
        ti = SimpleNamespace(
            dag_id="nightly",
            run_id="r1",
            task_id="wait",
            map_index=-1,
            try_number=try_number,
            max_tries=3,
            start_date=self.started_at,
            xcom_push=self.push,
        )
        run = SimpleNamespace(start_date=self.started_at - timedelta(seconds=1))
        return {"ti": ti, "dag_run": run, "task_state_store": self.store}


def new_hook(emulator: DlcEmulator, clock: EmulatedClock) -> PaiDlcHook:
    from airflow.sdk import Connection

    connection = Connection.from_uri(emulator.connection_uri(), conn_id="pai_dlc_default")
    return PaiDlcHook.from_connection(connection, clock=clock, retry_rules=RetryRules(attempts=1))


@pytest.fixture(scope="module")
def emulator() -> Iterator[DlcEmulator]:
    with DlcEmulator(clock="manual", default_plan=JobPlan(run_seconds=None)) as running:
        yield running


@pytest.fixture(autouse=True)
def _nothing_scripted(emulator: DlcEmulator) -> Iterator[None]:
    yield
    emulator.control.clear_faults()
    emulator.control.clear_plans()
    emulator.control.switch("list_lag_seconds", 0.0)


@pytest.fixture
def clock(emulator: DlcEmulator) -> EmulatedClock:
    return EmulatedClock(emulator)


@pytest.fixture
def kept_log() -> KeptLog:
    return KeptLog()


@pytest.fixture
def bench(emulator: DlcEmulator, kept_log: KeptLog) -> Bench:
    return Bench(emulator, kept_log)
