"""A sensor for each job of a file, and a task whose trigger measures the triggerer that it runs in."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, BaseOperator
from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

START = datetime(2026, 1, 1, tzinfo=UTC)


class ProcessTrigger(BaseTrigger):
    """Measures the triggerer's process for `seconds`, and fires with what it found; see `fleet_process.py`."""

    def __init__(self, seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seconds = seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and its argument."""
        return ("fleet_dags.ProcessTrigger", {"seconds": self.seconds})

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Measure."""
        from fleet_process import cost_of_window

        yield TriggerEvent(await cost_of_window(self.seconds))  # type: ignore[no-untyped-call]


class MeasureTriggerer(BaseOperator):
    """Defers to the trigger above, and returns what it measured."""

    def __init__(self, *, seconds: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seconds = seconds

    def execute(self, context: Any) -> None:  # noqa: ARG002 - Airflow's signature
        """Defer."""
        self.defer(trigger=ProcessTrigger(self.seconds), method_name="told")

    def told(self, context: Any, event: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002 - the same
        """Return the event."""
        return event


with DAG("waiting_fleet", schedule=None, start_date=START, max_active_tasks=2_000) as fleet:
    jobs = json.loads(Path(os.environ["WAITING_FLEET_JOBS"]).read_text())
    SpotJobSensor.partial(task_id="wait", poke_interval=30, retries=0).expand(job_id=jobs)

with DAG("triggerer_cost", schedule=None, start_date=START) as triggerer_cost:
    MeasureTriggerer(task_id="measure", seconds=60.0)
