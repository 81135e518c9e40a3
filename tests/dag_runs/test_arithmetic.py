"""
The two budgets, cell by cell: how many jobs and tries a task comes to whose every job ends the same way.

One DAG holds all cells of a table, so that Airflow is started once.
"""

from __future__ import annotations

import itertools
import os
import re
import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from airflow.sdk import DAG

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.emulator.lifecycle import Phases
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

README = Path(__file__).parents[2] / "README.md"
AT_ONCE = Phases(creating=0.0, queuing=0.0, env_preparing=0.0, stopping=0.0, restarting=0.0, bidding=0.0)
ENDS: dict[str, JobPlan] = {
    "revoked": JobPlan(run_seconds=60, revoke_after=0.0),
    "failed": JobPlan(run_seconds=0.0, exit_code=1),
    "unknown": JobPlan(run_seconds=0.0, exit_code=143),
    "waiting": JobPlan(pending_seconds=600.0),
}
REQUEST: dict[str, Any] = {
    "image": "registry.example.com/train:1",
    "user_command": "python train.py",
    "ecs_spec": "ecs.g7.xlarge",
    "spot_discount_limit": 0.6,
}


class Came(NamedTuple):
    """What a task came to."""

    jobs: int
    tries: int


@pytest.fixture
def cloud() -> Iterator[DlcEmulator]:
    with DlcEmulator(phases=AT_ONCE) as running:
        for end, plan in ENDS.items():
            running.control.plan(plan, match={"display_name": f"-{end}"}, times=None)
        os.environ["AIRFLOW_CONN_PAI_DLC_DEFAULT"] = running.connection_uri()
        yield running
        del os.environ["AIRFLOW_CONN_PAI_DLC_DEFAULT"]


def new_dag() -> DAG:
    return DAG(f"d{uuid.uuid4().hex[:6]}", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC))


def jobs_by_task(cloud: DlcEmulator) -> Counter[str]:
    return Counter(job["Envs"]["AIRFLOW_CTX_TASK_ID"] for job in cloud.control.jobs())


OPERATOR_CELLS = list(itertools.product(ENDS, range(4), range(4)))


def expected(end: str, retries: int, max_revocations: int) -> Came:
    """The rule: only losses multiply."""
    jobs_in_a_try = max_revocations + 1 if end == "revoked" else 1
    return Came((retries + 1) * jobs_in_a_try, retries + 1)


def test_the_operator_s_64_cells(cloud: DlcEmulator, run_dag: Any) -> None:
    with new_dag() as dag:
        for end, retries, max_revocations in OPERATOR_CELLS:
            SubmitSpotJobOperator(
                task_id=f"{end}-{retries}-{max_revocations}",
                retries=retries,
                retry_delay=timedelta(0),
                recovery={"max_revocations": max_revocations},
                pending_timeout=0.01 if end == "waiting" else None,
                poll_interval=0.02,
                deferrable=False,
                **REQUEST,
            )
    run = run_dag(dag)
    jobs = jobs_by_task(cloud)
    came = {
        cell: Came(jobs[f"{cell[0]}-{cell[1]}-{cell[2]}"], run.tries[f"{cell[0]}-{cell[1]}-{cell[2]}"])
        for cell in OPERATOR_CELLS
    }
    assert came == {cell: expected(*cell) for cell in OPERATOR_CELLS}
    assert set(run.task_states.values()) == {"failed"}
    assert_as_the_page_says(came)


def assert_as_the_page_says(came: dict[tuple[str, int, int], Came]) -> None:
    """Hold the rows of the README's table that lie within these cells to what was measured."""
    rows = re.findall(
        r"^\| (\d) \| (\d) \| \d+ \| (\d+) \((\d+)\) \| (\d+) \((\d+)\) \|$", README.read_text(), re.MULTILINE
    )
    shown = [[int(cell) for cell in row] for row in rows]
    within = [row for row in shown if max(row[:2]) < 4]
    assert within
    for retries, revocations, *numbers in within:
        measured = (came["revoked", retries, revocations], came["failed", retries, revocations])
        assert numbers == [*measured[0], *measured[1]]


MODES: dict[str, dict[str, Any]] = {
    "deferred": {"deferrable": True},
    "poke": {"deferrable": False, "mode": "poke"},
    "reschedule": {"deferrable": False, "mode": "reschedule"},
}
SENSOR_CELLS = [
    *itertools.product(("revoked",), range(4), MODES),
    *itertools.product(("failed", "unknown"), (0, 3), MODES),  # what else ends a sensor at once: test_sensor_ends.py
]


def test_the_sensor_s_cells(cloud: DlcEmulator, run_dag: Any) -> None:
    """A loss is one retry and one more job; what another look cannot change ends the sensor at once."""
    with new_dag() as dag:
        for end, retries, mode in SENSOR_CELLS:
            name = f"{end}-{retries}-{mode}"
            submit = SubmitSpotJobOperator(task_id=name, wait_for_completion=False, **REQUEST)
            SpotJobSensor(
                task_id=f"wait-{name}",
                job_id=submit.output,
                submitted_by=submit,
                on_revoked="resubmit" if retries else "fail",
                retries=retries,
                retry_delay=timedelta(0),
                poke_interval=0.02,
                **MODES[mode],
            )
    run = run_dag(dag)
    jobs = jobs_by_task(cloud)
    came = {}
    for end, retries, mode in SENSOR_CELLS:
        name = f"{end}-{retries}-{mode}"
        came[end, retries, mode] = (Came(jobs[name], run.tries[f"wait-{name}"]), run.task_states[f"wait-{name}"])
    losses_count = {(end, retries): retries if end == "revoked" else 0 for end, retries, _ in SENSOR_CELLS}
    assert came == {
        (end, retries, mode): (Came(1 + losses_count[end, retries], 1 + losses_count[end, retries]), "failed")
        for end, retries, mode in SENSOR_CELLS
    }
