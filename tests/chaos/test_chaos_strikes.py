"""A kill counts only if it landed between CreateJob and deferral; the processes that are struck here are real."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from observing import TaskInstance
from strikes import Moment, Striker
from task_processes import task_process
from timetable import Trouble

SIGKILLED = -9
DEFERS, WAITS = "r1-deferred-000", "r1-waiting-000"


@dataclass
class Airflow:
    """Database, deployment and emulator in one, as far as a striker asks them."""

    states: list[str | None]
    stored: bool
    work: str = DEFERS
    created: list[dict[str, Any]] = field(default_factory=list)

    def journal(self, *, kind: str) -> list[dict[str, Any]]:
        return self.created if kind == "created" else []

    def task_instances(self, _dag_id: str) -> list[TaskInstance]:
        run_id, task_id, _ = self.work.split("-")
        return [TaskInstance(f"chaos-{id(self)}", run_id, task_id, 0, "running", 1, 10)]

    def state_of(self, _uuid: str) -> str | None:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def has_stored(self, _dag_id: str, _one: TaskInstance, _text: str) -> bool:
        return self.stored

    def component_of(self, _pid: int) -> str:
        return "worker-1"


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def until_it_has_its_title(uuid: str) -> None:
    """`Popen` returns in the middle of exec, when a process has no command line for a moment."""
    for _ in range(1000):
        if task_process(uuid) is not None:
            return
        time.sleep(0.01)
    pytest.fail("the process never had its title")


def struck(airflow: Any, processes: list[subprocess.Popen[bytes]]) -> tuple[Striker, subprocess.Popen[bytes]]:
    """Let a task submit while a striker waits for that; everything that it does later is done at once."""
    later: list[Callable[[], object]] = []
    striker = Striker(
        deployment=airflow,
        control=airflow,
        database=airflow,
        rng=random.Random(1),
        kill_and_restart=lambda _name: None,
        triggerers=list,
        after=lambda _seconds, action: later.append(action),
    )
    title = f"airflow worker -- {airflow.task_instances('')[0].uuid}"
    process = subprocess.Popen([title, "60"], executable="/bin/sleep")
    processes.append(process)
    until_it_has_its_title(airflow.task_instances("")[0].uuid)
    striker.arm(Trouble.KILL_TASK)
    airflow.created.append({"job_id": "dlc1", "detail": {"display_name": airflow.work}})
    striker.look()
    while later:
        later.pop(0)()
    return striker, process


@pytest.mark.parametrize(
    ("airflow", "moment"),
    [
        pytest.param(Airflow(["running"], stored=False), Moment.BEFORE_ID_STORED, id="before-the-id-was-stored"),
        pytest.param(Airflow(["running"], stored=True), Moment.BEFORE_DEFERRAL, id="before-the-deferral"),
        pytest.param(Airflow(["running", "up_for_retry"], stored=True), Moment.BEFORE_DEFERRAL, id="noticed-at-once"),
        pytest.param(Airflow(["running", None], stored=True), Moment.BEFORE_DEFERRAL, id="tried-again-at-once"),
        pytest.param(
            Airflow(["running"], stored=False, work=WAITS), Moment.BEFORE_ID_STORED, id="of-a-task-that-waits"
        ),
    ],
)
def test_a_strike_in_time_counts(airflow: Airflow, moment: Moment, processes: list[subprocess.Popen[bytes]]) -> None:
    striker, process = struck(airflow, processes)
    assert process.wait(10) == SIGKILLED
    assert striker.figures() == {"kill_task": {moment.value: 1}}
    assert (striker.hits(Trouble.KILL_TASK), striker.is_armed) == (1, False)


@pytest.mark.parametrize(
    "airflow",
    [
        pytest.param(Airflow(["deferred"], stored=True), id="deferred"),
        pytest.param(Airflow([None], stored=True), id="another-try-began"),
        pytest.param(Airflow(["running"], stored=True, work=WAITS), id="it-never-defers"),
    ],
)
def test_whoever_got_away_is_left_alone_and_the_next_one_is_struck(
    airflow: Airflow, processes: list[subprocess.Popen[bytes]]
) -> None:
    striker, process = struck(airflow, processes)
    process.terminate()
    assert process.wait(10) != SIGKILLED
    assert striker.figures() == {"kill_task": {"too_late": 1}}
    assert (striker.hits(Trouble.KILL_TASK), striker.is_armed) == (0, True)


def test_a_deferral_that_was_on_its_way_does_not_count(processes: list[subprocess.Popen[bytes]]) -> None:
    striker, process = struck(Airflow(["running", "deferred"], stored=True), processes)
    assert process.wait(10) == SIGKILLED
    assert (striker.hits(Trouble.KILL_TASK), striker.is_armed) == (0, True)
