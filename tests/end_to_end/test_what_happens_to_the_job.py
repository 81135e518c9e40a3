"""
What becomes of a job whose task is ended, cleared or loses its triggerer: (phase x event) on a real Airflow.

All cells run side by side; each is a DAG run of its own, whose job is held in its phase by the emulator.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from airflow_provider_pai_spot.cli.demo.airflow_client import AirflowClient
from airflow_provider_pai_spot.cli.demo.airflow_processes import LocalAirflow
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan

PATIENCE = 240.0
LIVE = ("Creating", "Queuing", "Bidding", "EnvPreparing", "Running", "Restarting")

# phase -> (DAG, what the job does, the status that shows the phase)
PHASES: dict[str, tuple[str, JobPlan, str]] = {
    "queueing": ("kill_general", JobPlan(pending_seconds=3600), "Queuing"),
    "bidding": ("kill_lingjun", JobPlan(pending_seconds=3600), "Bidding"),
    "preparing": ("kill_general", JobPlan(never_starts=True), "EnvPreparing"),
    "running": ("kill_general", JobPlan(run_seconds=None), "Running"),
    "in the worker": ("kill_in_worker", JobPlan(run_seconds=None), "Running"),
    "cancel_on_kill=False": ("kill_left_alone", JobPlan(run_seconds=None), "Running"),
}

Act = Callable[[AirflowClient, str, str], None]
EVENTS: dict[str, Act] = {
    "mark failed": lambda client, dag, run: client.set_task_state(dag, run, "train", "failed"),
    "mark success": lambda client, dag, run: client.set_task_state(dag, run, "train", "success"),
    "run failed": lambda client, dag, run: client.set_run_state(dag, run, "failed"),
    "run success": lambda client, dag, run: client.set_run_state(dag, run, "success"),
    "clear": lambda client, dag, run: client.clear(dag, run, ["train"]),
}

STOPPED, LEFT = "stopped", "left alone"
# event -> (what becomes of the job, the task's state afterwards)
ENDS: dict[str, tuple[str, str]] = {
    "mark failed": (STOPPED, "failed"),
    "mark success": (STOPPED, "success"),
    "run failed": (STOPPED, "failed"),
    "run success": (STOPPED, "success"),
    "clear": (LEFT, "deferred"),
}


def cells() -> list[tuple[str, str, str, str]]:
    """Return (phase, event, what becomes of the job, the task's state) for each cell."""
    table = [
        (phase, event, *ENDS[event]) for phase in ("queueing", "bidding", "preparing", "running") for event in ENDS
    ]
    table += [("in the worker", "mark failed", STOPPED, "failed"), ("in the worker", "clear", LEFT, "running")]
    table += [("cancel_on_kill=False", "mark failed", LEFT, "failed")]
    return table


class Cell:
    """One DAG run on its way into its phase."""

    def __init__(self, airflow: LocalAirflow, cloud: DlcEmulator, phase: str, event: str) -> None:
        self.client, self.cloud = airflow.client, cloud
        self.phase, self.event = phase, event
        self.dag_id, plan, self.status = PHASES[phase]
        self.run_id = f"{phase}-{event}".replace(" ", "_").replace("=", "_")
        cloud.control.plan(plan, match={"display_name": self.run_id}, times=None)
        self.client.trigger(self.dag_id, run_id=self.run_id)
        time.sleep(0.5)  # an API server on SQLite takes a burst badly

    def jobs(self) -> list[dict[str, Any]]:
        return [job for job in self.cloud.control.jobs() if job["DisplayName"] == self.run_id]

    def task_state(self) -> str:
        return str(self.client.task_instance(self.dag_id, self.run_id, "train")["state"])

    def is_in_phase(self) -> bool:
        """Whether the job shows the phase and somebody watches it: the log shows the watcher's first look."""
        jobs = self.jobs()
        if [job["Status"] for job in jobs] != [self.status]:
            return False
        waiting = "running" if self.phase == "in the worker" else "deferred"
        watched = f"{jobs[0]['JobId']}: " in self.client.task_log(self.dag_id, self.run_id, "train")
        return self.task_state() == waiting and watched

    def act(self) -> None:
        EVENTS[self.event](self.client, self.dag_id, self.run_id)


def eventually(holds: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Wait for something; an API server that is busy with SQLite answers 500 now and then."""
    give_up_at = time.monotonic() + seconds
    while time.monotonic() < give_up_at:
        with contextlib.suppress(httpx.HTTPError):
            if holds():
                return True
        time.sleep(0.5)
    return False


@pytest.fixture(scope="module")
def ended_cells(airflow_server: LocalAirflow, scripted_cloud: DlcEmulator) -> dict[tuple[str, str], Cell]:
    """Bring every cell into its phase, then let its event happen."""
    for dag_id in {dag_id for dag_id, _, _ in PHASES.values()}:
        airflow_server.client.wait_for_dag(dag_id)
    made = {cell[:2]: Cell(airflow_server, scripted_cloud, *cell[:2]) for cell in cells()}
    for name, cell in made.items():
        assert eventually(cell.is_in_phase), f"{name}: {cell.jobs()} {cell.task_state()}"
        cell.act()
    return made


@pytest.mark.parametrize(("phase", "event", "end", "state"), cells(), ids=lambda part: str(part).replace(" ", "_"))
def test_each_cell(ended_cells: dict[tuple[str, str], Cell], phase: str, event: str, end: str, state: str) -> None:
    cell = ended_cells[phase, event]
    log = cell.client.task_log
    assert eventually(lambda: cell.task_state() == state, 90), log(cell.dag_id, cell.run_id, "train")
    if end == STOPPED:
        assert eventually(lambda: [job["Status"] for job in cell.jobs()] == ["Stopped"], 60), cell.jobs()
    else:
        time.sleep(3)  # a stop would show within moments of the kill
        assert [job["Status"] for job in cell.jobs()] == [cell.status], log(cell.dag_id, cell.run_id, "train")


def test_a_cleared_task_takes_its_job_over_and_succeeds_with_it(
    ended_cells: dict[tuple[str, str], Cell], scripted_cloud: DlcEmulator
) -> None:
    cell = ended_cells["running", "clear"]
    assert eventually(lambda: cell.task_state() == "deferred")
    [job] = cell.jobs()
    scripted_cloud.control.set_status(job["JobId"], "Succeeded")
    assert cell.client.wait_for_run(cell.dag_id, cell.run_id, PATIENCE) == "success"
    assert len(cell.jobs()) == 1
    assert cell.client.xcom(cell.dag_id, cell.run_id, "train") == job["JobId"]


@pytest.mark.parametrize("dag_id", ["kill_by_run_timeout", "kill_by_fail_fast"])
def test_a_run_that_airflow_ends_itself_takes_its_job_along(
    airflow_server: LocalAirflow, scripted_cloud: DlcEmulator, dag_id: str
) -> None:
    client, run_id = airflow_server.client, f"ended-{dag_id}"
    scripted_cloud.control.plan(JobPlan(run_seconds=25, exit_code=1), match={"display_name": f"breaks-{run_id}"})
    scripted_cloud.control.plan(JobPlan(run_seconds=None), match={"display_name": run_id}, times=None)
    client.wait_for_dag(dag_id)
    client.trigger(dag_id, run_id=run_id)

    def statuses() -> list[str]:
        return [job["Status"] for job in scripted_cloud.control.jobs() if job["DisplayName"] == run_id]

    assert eventually(lambda: statuses() == ["Running"])
    assert eventually(lambda: statuses() == ["Stopped"]), client.task_log(dag_id, run_id, "train")
    assert client.wait_for_run(dag_id, run_id, PATIENCE) == "failed"


def test_a_triggerer_that_dies_takes_no_job_along(airflow_server: LocalAirflow, scripted_cloud: DlcEmulator) -> None:
    client, dag_id, run_id = airflow_server.client, "kill_general", "triggerer-dies"
    scripted_cloud.control.plan(JobPlan(run_seconds=None), match={"display_name": run_id})
    client.wait_for_dag(dag_id)
    client.trigger(dag_id, run_id=run_id)

    def jobs() -> list[dict[str, Any]]:
        return [job for job in scripted_cloud.control.jobs() if job["DisplayName"] == run_id]

    assert eventually(lambda: [job["Status"] for job in jobs()] == ["Running"])
    assert eventually(lambda: client.task_instance(dag_id, run_id, "train")["state"] == "deferred")
    airflow_server.kill_component("triggerer")
    airflow_server.start_component("triggerer")
    scripted_cloud.control.set_status(jobs()[0]["JobId"], "Succeeded")
    assert client.wait_for_run(dag_id, run_id, PATIENCE) == "success"
    assert len(jobs()) == 1
