"""What becomes of a job, and of its task, whatever ends the task: (phase x event) on a real Airflow, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kill_cells import REFUSED, WALKED, Event, Job, Phase
from kill_holds import FOREVER
from kill_runs import RUN_ID, Cell, KillTable

from airflow_provider_pai_spot.cli.demo.airflow_processes import LocalAirflow
from airflow_provider_pai_spot.emulator import DlcEmulator
from airflow_provider_pai_spot.emulator.lifecycle import Phases
from airflow_provider_pai_spot.sweep.report import Result

CELLS = [pytest.param(phase, event, id=f"{phase}-{event}") for phase, event in WALKED]
TAKEN_OVER = [
    (Phase.RUNNING, Event.CLEAR),
    (Phase.BETWEEN_ATTEMPTS, Event.CLEAR),
    (Phase.QUEUED_FOR_RESUME, Event.CLEAR),
    (Phase.UP_FOR_RETRY, Event.CLEAR),
    (Phase.CREATED, Event.WORKER_KILLED),
    (Phase.BETWEEN_ATTEMPTS, Event.WORKER_KILLED),
    (Phase.RUNNING, Event.TRIGGERER_KILLED),
    (Phase.RUNNING, Event.DAG_PAUSED),
]


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest, airflow_server: LocalAirflow) -> Iterator[KillTable]:
    """Every cell, after its event and after a sweep; of events that are deselected (-k) none."""
    asked = [
        item for item in request.session.items if isinstance(item, pytest.Function) and item.path == Path(__file__)
    ]
    events = {item.callspec.params.get("event", Event.MARK_FAILED) for item in asked}
    with (
        DlcEmulator(phases=Phases(restarting=3600), default_plan=FOREVER) as cloud,
        DlcEmulator(default_plan=FOREVER, seed=1) as dim_cloud,  # with job ids of its own
    ):
        walked = KillTable(airflow_server, cloud, dim_cloud, events)
        walked.walk()
        yield walked
        walked.end()


@pytest.fixture
def cell(table: KillTable, phase: Phase, event: Event) -> Cell:
    return table.cells[phase, event]


@pytest.mark.parametrize(("phase", "event"), CELLS)
def test_each_cell(table: KillTable, cell: Cell) -> None:
    assert cell.in_phase, f"not reached: {cell.seen}, {table.log(cell)}"
    assert cell.seen == cell.expected, table.log(cell)


@pytest.mark.parametrize(("phase", "event"), CELLS)
def test_a_sweep_stops_what_nobody_waits_for_and_nothing_else(table: KillTable, cell: Cell) -> None:
    sweeps = {Job.STOPPED: None, Job.GOES_ON: Result.LEFT, Job.SWEPT: Result.STOPPED}
    assert table.swept.get(table.jobs(cell)[-1]["JobId"]) == sweeps[cell.end.job]
    assert cell.after_sweep == cell.expected_after_sweep


@pytest.mark.parametrize("refused", sorted({event for _, event in REFUSED}))
def test_airflow_refuses(table: KillTable, refused: Event) -> None:
    assert table.refusals[refused] == 409


@pytest.mark.parametrize(("phase", "event"), TAKEN_OVER)
def test_a_job_that_was_taken_over_is_what_the_task_succeeds_with(table: KillTable, cell: Cell) -> None:
    jobs = table.jobs(cell)
    table.succeed(cell)
    assert table.client.xcom(cell.dag_id, RUN_ID, cell.phase) == jobs[-1]["JobId"]
    assert len(table.jobs(cell)) == len(jobs)
