"""Brings every cell of the table into its phase, lets its event happen, and writes down what became of it."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from airflow.sdk import Connection
from kill_cells import ENDS, WALKED, End, Event, Job, Phase, dag_id_of, job_name
from kill_holds import HOLDS, LATE

from airflow_provider_pai_spot.cli.demo.airflow_processes import LocalAirflow
from airflow_provider_pai_spot.cli.demo.sessions import session_members
from airflow_provider_pai_spot.emulator import DlcEmulator
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.sweep.airflow_address import AirflowAddress
from airflow_provider_pai_spot.sweep.airflow_api import AirflowApi
from airflow_provider_pai_spot.sweep.report import Result
from airflow_provider_pai_spot.sweep.sweeper import Sweeper

RUN_ID = "walk"
NAMESPACE = "kill-table"
PATIENCE = 1500.0
SETTLED_WITHIN = 300.0
LOOK_EVERY = 3.0
PAGE = 100
STARTING_AT_ONCE = 4
"""So many tasks may start at the same time; a machine with two cores does not get through more any faster."""

Seen = tuple[tuple[str, ...], str | None, bool]
"""The statuses of a cell's jobs, its task's state (None: it is gone), and whether that is of a later try."""


@dataclass(slots=True)
class Cell:
    """One task instance, its jobs, and what was seen of them."""

    phase: Phase
    event: Event
    end: End
    is_watched: bool = False
    in_phase: bool = False
    seen: Seen | None = None
    after_sweep: tuple[str, ...] = ()

    @property
    def dag_id(self) -> str:
        return dag_id_of(self.event)

    @property
    def expected(self) -> Seen:
        *before, live = HOLDS[self.phase].statuses
        statuses = (*before, "Stopped" if self.end.job is Job.STOPPED else live)
        return statuses, self.end.task, self.end.next_try

    @property
    def expected_after_sweep(self) -> tuple[str, ...]:
        *before, last = self.expected[0]
        return (*before, last if self.end.job is Job.GOES_ON else "Stopped")


class AnHourLater:
    """A clock on which everything here is long past, and pauses are short."""

    def __init__(self) -> None:
        self._ahead = timedelta(hours=1)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def sleep(self, seconds: float) -> None:
        self._ahead += timedelta(seconds=seconds)
        time.sleep(min(seconds, 0.2))

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)


def eventually(holds: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Wait for something; an API server that is busy with SQLite answers 500 now and then."""
    give_up_at = time.monotonic() + seconds
    while time.monotonic() < give_up_at:
        with contextlib.suppress(httpx.HTTPError):
            if holds():
                return True
        time.sleep(LOOK_EVERY)
    return False


class KillTable:
    """
    All cells, side by side.

    :param cloud: where the jobs are; it restarts what it takes back, and takes its time.
    :param dim_cloud: one that will stop to tell anything about its jobs.
    :param events: those that are walked.
    """

    def __init__(
        self, airflow: LocalAirflow, cloud: DlcEmulator, dim_cloud: DlcEmulator, events: Iterable[Event]
    ) -> None:
        self.airflow, self.client = airflow, airflow.client
        self.cloud, self.dim_cloud = cloud, dim_cloud
        self.cells = {
            (phase, event): Cell(phase, event, end) for (phase, event), end in WALKED.items() if event in events
        }
        self.events = {event for _, event in self.cells}
        self.dag_ids = sorted({cell.dag_id for cell in self.cells.values()})
        self.refusals: dict[Event, int] = {}
        self.swept: dict[str, Result] = {}
        self._statuses: dict[str, tuple[str, ...]] = {}
        self._tasks: dict[tuple[str, str], dict[str, Any]] = {}
        self._killed: set[int] = set()
        self._held = 0

    def walk(self) -> None:
        """Take all cells through their phases and events, and sweep."""
        self._prepare()
        self._start()
        self._into_phases()
        self._try_what_is_refused()
        # A worker has 5 s from being told to end, in which Airflow must answer it: nothing starts meanwhile, and
        # only the tasks of one event end at a time.
        for end in (*ENDS, Event.DAG_DELETED):
            self._let_happen(end)
        self._let_happen(Event.CLEAR, Event.DAG_PAUSED, Event.WORKER_KILLED)
        self._let_happen(Event.TRIGGERER_KILLED)
        eventually(self._are_as_expected, SETTLED_WITHIN)
        self._sweep()

    def end(self) -> None:
        """End what still runs and waits, so that it does not keep Airflow busy without its cloud."""
        for dag_id in sorted({dag_id for dag_id, _ in self._tasks}):
            self.client.set_run_state(dag_id, RUN_ID, "failed")

    # --- what there is ----------------------------------------------------------------------------------

    def jobs(self, cell: Cell) -> list[dict[str, Any]]:
        """Return the jobs of a cell, oldest first."""
        name = job_name(cell.phase, cell.event)
        return [job for job in self.cloud_of(cell).control.jobs() if job["DisplayName"] == name]

    def _newest(self, cell: Cell) -> str:
        return str(self.jobs(cell)[-1]["JobId"])

    def log(self, cell: Cell) -> str:
        """Return the log of a cell's first try."""
        return self.client.task_log(cell.dag_id, RUN_ID, cell.phase)

    def state(self, cell: Cell) -> str:
        """Return the state of a cell's task."""
        return str(self.client.task_instance(cell.dag_id, RUN_ID, cell.phase)["state"])

    def cloud_of(self, cell: Cell) -> DlcEmulator:
        """Return where a cell's jobs are."""
        return self.dim_cloud if cell.phase is Phase.QUEUED_FOR_RESUME else self.cloud

    def _look(self) -> None:
        """Read all jobs and task instances once; what is read one by one costs a busy Airflow too much."""
        jobs = [job for cloud in (self.cloud, self.dim_cloud) for job in cloud.control.jobs()]
        self._statuses = defaultdict(tuple)
        for job in jobs:
            self._statuses[job["DisplayName"]] += (job["Status"],)
        self._tasks = {(task["dag_id"], task["task_id"]): task for task in self._task_instances()}

    def _task_instances(self) -> Iterator[dict[str, Any]]:
        page = {"dag_run_ids": [RUN_ID], "order_by": "id", "page_limit": PAGE, "page_offset": 0}
        while found := self.client._call("POST", "/dags/~/dagRuns/~/taskInstances/list", repeatable=True, json=page)[
            "task_instances"
        ]:
            yield from found
            page["page_offset"] += PAGE

    def _statuses_of(self, cell: Cell) -> tuple[str, ...]:
        return self._statuses[job_name(cell.phase, cell.event)]

    def _task(self, cell: Cell) -> dict[str, Any]:
        return self._tasks.get((cell.dag_id, cell.phase), {"state": None, "try_number": 0})

    def succeed(self, cell: Cell) -> None:
        """Let a cell's newest job succeed, and wait until its task has."""
        self.cloud_of(cell).control.set_status(self._newest(cell), "Succeeded")
        self.pause(cell.dag_id, is_paused=False)
        assert eventually(lambda: self.state(cell) == "success"), self.log(cell)

    def pause(self, dag_id: str, *, is_paused: bool) -> None:
        """Pause a DAG, or let it go on."""
        self.client._call("PATCH", f"/dags/{dag_id}", json={"is_paused": is_paused})

    # --- into the phases --------------------------------------------------------------------------------

    def _prepare(self) -> None:
        for conn_id, cloud in (("pai_dlc_kill", self.cloud), ("pai_dlc_dim", self.dim_cloud)):
            uri = cloud.connection_uri(namespace=NAMESPACE, read_timeout=str(int(LATE * 1000)))
            parts = Connection.from_uri(uri, conn_id=conn_id)
            body = {"connection_id": conn_id, "conn_type": "pai_dlc", "host": parts.host, "port": parts.port}
            body |= {"login": parts.login, "password": parts.password, "extra": parts.extra}
            self.client._call("POST", "/connections", repeatable=True, json=body)
        for name, slots in (("kill_gate", STARTING_AT_ONCE), ("kill_starting", STARTING_AT_ONCE), ("kill_breaker", 0)):
            body = {"name": name, "slots": slots, "include_deferred": False}
            self.client._call("POST", "/pools", repeatable=True, json=body)
        for cell in self.cells.values():
            for attempt, plan in enumerate(HOLDS[cell.phase].plans):
                match = {"display_name": job_name(cell.phase, cell.event), "tags": {"airflow-attempt": str(attempt)}}
                self.cloud_of(cell).control.plan(plan, match=match)

    def _start(self) -> None:
        for dag_id in self.dag_ids:
            self.client.wait_for_dag(dag_id)
        for dag_id in self.dag_ids:
            self.client.trigger(dag_id, run_id=RUN_ID)
            time.sleep(1)  # an API server on SQLite takes a burst badly

    def _into_phases(self) -> None:
        eventually(lambda: self._all_in_phase() or self._gate_may_close())
        self._set_slots("kill_gate", 0)
        for action in ("GetJob", "ListJobs"):
            self.dim_cloud.control.fault(action, "server_error", times=None)
        eventually(self._all_in_phase)

    def _gate_may_close(self) -> bool:
        """Whether all tasks that are to wait for a slot have been deferred, and are watched."""
        return all(cell.is_watched for cell in self.cells.values() if cell.phase is Phase.QUEUED_FOR_RESUME)

    def _all_in_phase(self) -> bool:
        self._look()
        for cell in self.cells.values():
            cell.in_phase = cell.in_phase or self._is_in_phase(cell)
        self._make_room()
        return all(cell.in_phase for cell in self.cells.values())

    def _make_room(self) -> None:
        """A task that is held in its worker starts no more, and keeps its slot."""
        held = sum(cell.in_phase and HOLDS[cell.phase].task == "running" for cell in self.cells.values())
        if held > self._held:
            self._held = held
            self._set_slots("kill_starting", STARTING_AT_ONCE + held)

    def _is_in_phase(self, cell: Cell) -> bool:
        hold, task = HOLDS[cell.phase], self._task(cell)
        if self._statuses_of(cell) != hold.statuses or task["state"] not in (hold.before, hold.task):
            return False
        cell.is_watched = cell.is_watched or hold.said is None or f"{self._newest(cell)}{hold.said}" in self.log(cell)
        if cell.is_watched and cell.phase is Phase.UP_FOR_RETRY:
            self._kill_worker(task)
        return bool(cell.is_watched and task["state"] == hold.task)

    def _set_slots(self, pool: str, slots: int) -> None:
        self.client._call("PATCH", f"/pools/{pool}", json={"name": pool, "slots": slots, "include_deferred": False})

    # --- the events -------------------------------------------------------------------------------------

    def _let_happen(self, *events: Event) -> None:
        """Let it happen to all tasks, each in its phase, and wait until it has had its effect."""
        for cell in self._of(*events):
            self._to_a_task(cell)
        for event in self.events.intersection(events):
            self._to_a_dag(dag_id_of(event), event)
        if Event.CLEAR in events:  # only what was cleared still waits at the gate
            self.dim_cloud.control.clear_faults()
            self._set_slots("kill_gate", STARTING_AT_ONCE)
        time.sleep(LOOK_EVERY)
        eventually(lambda: self._are_as_expected(*events), SETTLED_WITHIN)

    def _to_a_task(self, cell: Cell) -> None:
        names = (cell.dag_id, RUN_ID, cell.phase)
        match cell.event:
            case Event.MARK_FAILED:
                self.client.set_task_state(*names, "failed")
            case Event.MARK_SUCCESS:
                self.client.set_task_state(*names, "success")
            case Event.CLEAR:
                self.client.clear(cell.dag_id, RUN_ID, [cell.phase])
            case Event.WORKER_KILLED:
                self._kill_worker(self._task(cell))

    def _to_a_dag(self, dag_id: str, event: Event) -> None:
        match event:
            case Event.RUN_FAILED:
                self.client.set_run_state(dag_id, RUN_ID, "failed")
            case Event.RUN_SUCCESS:
                self.client.set_run_state(dag_id, RUN_ID, "success")
            case Event.DAG_DELETED:
                gone = (httpx.codes.NO_CONTENT, httpx.codes.NOT_FOUND)
                eventually(lambda: self._delete(f"/dags/{dag_id}") in gone)
            case Event.FAIL_FAST:
                self._set_slots("kill_breaker", 1)
            case Event.RUN_TIMEOUT:
                self._shorten_run_timeout()
            case Event.DAG_PAUSED:
                self.pause(dag_id, is_paused=True)
            case Event.TRIGGERER_KILLED:
                self.airflow.kill_component("triggerer")
                self.airflow.start_component("triggerer")

    def _try_what_is_refused(self) -> None:
        """Try it on a DAG with tasks in every phase, if it really has: what is not refused is done."""
        cells = self._of(Event.MARK_FAILED)
        if not cells or not all(cell.in_phase for cell in cells):
            return
        dag_id = cells[0].dag_id
        self._try_to_delete(Event.RUN_DELETED, f"/dags/{dag_id}/dagRuns/{RUN_ID}")
        self._try_to_delete(Event.DAG_DELETED, f"/dags/{dag_id}")

    def _try_to_delete(self, event: Event, path: str) -> None:
        def answers() -> bool:
            self.refusals[event] = self._delete(path)
            return self.refusals[event] < httpx.codes.INTERNAL_SERVER_ERROR

        eventually(answers)

    def _delete(self, path: str) -> int:
        return self.client._http.delete(f"/api/v2{path}").status_code

    def _kill_worker(self, task: dict[str, Any]) -> None:
        """SIGKILL the process that runs a task, once, if it is one of this very Airflow's."""
        pid, ours = task["pid"], session_members(self.airflow._components["scheduler"].session_id)
        if task["state"] == "running" and pid in ours and pid not in self._killed:
            self._killed.add(pid)
            os.kill(pid, signal.SIGKILL)

    def _shorten_run_timeout(self) -> None:
        """The scheduler takes the DAG as it was parsed last, for runs that have begun as well."""
        file = Path(self.airflow.environment["AIRFLOW__CORE__DAGS_FOLDER"]) / "kill_table.py"
        text = file.read_text()
        file.write_text(text.replace("RUN_TIMEOUT = timedelta(days=1)", "RUN_TIMEOUT = timedelta(seconds=1)"))

    # --- what became of it ------------------------------------------------------------------------------

    def _are_as_expected(self, *events: Event) -> bool:
        """Whether all cells, or those of some events, have come to what they should."""
        self._look()
        for cell in self.cells.values():
            task = self._task(cell)
            cell.seen = (self._statuses_of(cell), task["state"], task["try_number"] > 1)
        return all(cell.seen == cell.expected for cell in self._of(*(events or self.events)))

    def _of(self, *events: Event) -> list[Cell]:
        return [cell for cell in self.cells.values() if cell.event in events]

    def _sweep(self) -> None:
        with AirflowApi(AirflowAddress(base_url=self.airflow.base_url)) as api:
            for cloud in (self.cloud, self.dim_cloud):
                connection = Connection.from_uri(cloud.connection_uri(), conn_id="pai_dlc_sweep")
                clock = AnHourLater()
                sweeper = Sweeper(
                    hook=PaiDlcHook.from_connection(connection, clock=clock),
                    namespace=NAMESPACE,
                    owner_states=api.owner_states,
                    held_job=api.held_job,
                    clock=clock,
                    log=logging.getLogger("pai-spot-test"),
                )
                self.swept |= {one.job.job_id: one.result for one in sweeper.sweep(apply=True).jobs}
        self._look()
        for cell in self.cells.values():
            cell.after_sweep = self._statuses_of(cell)
