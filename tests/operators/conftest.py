"""An operator on its own: real sessions against the emulator, and Airflow is what a context holds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.ledger import AttemptLedger, MemoryStore
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.emulator.lifecycle import Phases
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator

_AT_ONCE = Phases(creating=0.0, queuing=0.0, env_preparing=0.0, stopping=0.0, restarting=0.0, bidding=0.0)


class Desk:
    """One task instance, whose sessions are opened one after another, each as Airflow would open it."""

    def __init__(self, emulator: DlcEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
        self.emulator, self.control = emulator, emulator.control
        self.store = MemoryStore()
        self.started_at = datetime.now(UTC)
        self.pushed: dict[str, Any] = {}
        self._monkeypatch = monkeypatch
        self.connect("pai_dlc_default")

    def connect(self, conn_id: str, uri: str | None = None) -> None:
        self._monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", uri or self.emulator.connection_uri())

    def operator(self, **arguments: Any) -> SubmitSpotJobOperator:
        asked = {
            "image": "i",
            "user_command": "python train.py",
            "ecs_spec": "ecs.g7.xlarge",
            "spot_discount_limit": 0.6,
            "poll_interval": 0.1,
        }
        return SubmitSpotJobOperator(task_id="train", **asked | arguments)

    def context(self, try_number: int = 1, max_tries: int = 3) -> Any:
        ti = SimpleNamespace(
            dag_id="nightly",
            run_id="r1",
            task_id="train",
            map_index=-1,
            try_number=try_number,
            max_tries=max_tries,
            start_date=self.started_at,
            xcom_push=lambda key, value: self.pushed.update({key: value}),
        )
        run = SimpleNamespace(start_date=self.started_at - timedelta(seconds=1))
        return {"ti": ti, "dag_run": run, "task_state_store": self.store}

    @property
    def ledger(self) -> AttemptLedger:
        return AttemptLedger(self.store)

    def jobs(self) -> list[str]:
        return [job["JobId"] for job in self.control.jobs()]

    def status(self, job_id: str) -> str:
        return str(self.control.job(job_id)["Status"])


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    with DlcEmulator(phases=_AT_ONCE, default_plan=JobPlan(run_seconds=None)) as running:
        yield Desk(running, monkeypatch)
