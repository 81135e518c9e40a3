"""What a job belongs to in Airflow, and how that stands."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from airflow_provider_pai_spot.attempts.airflow_state import FINISHED as FINISHED_TASK_STATES

FINISHED_RUN_STATES: Final = frozenset({"success", "failed"})
ALIVE_RUN_STATES: Final = frozenset({"queued", "running"})
ALIVE_TASK_STATES: Final = frozenset(
    {
        "scheduled",
        "queued",
        "running",
        "restarting",
        "up_for_retry",
        "up_for_reschedule",
        "deferred",
        "awaiting_input",
    }
)
CLEARED: Final = "cleared or not started yet"
"""How people call the state that Airflow shows as null; it is alive."""


@dataclass(frozen=True, slots=True, order=True)
class RunRef:
    """One DAG run."""

    dag_id: str
    run_id: str

    @property
    def run(self) -> RunRef:
        """The run itself."""
        return self


@dataclass(frozen=True, slots=True, order=True)
class TaskRef:
    """
    One task instance.

    :param map_index: -1 for a task that is not mapped.
    """

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1

    @property
    def run(self) -> RunRef:
        """The run it is part of."""
        return RunRef(self.dag_id, self.run_id)


OwnerRef = RunRef | TaskRef


class Presence(StrEnum):
    """Whether an owner still wants its job. `UNKNOWN` is never a no."""

    ALIVE = "alive"
    FINISHED = "finished"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerState:
    """
    How Airflow sees an owner.

    :param detail: Airflow's state; of a gone owner what does not exist, of an unknown one why it is not known.
    :param ended_at: when it ended, None where Airflow does not say.
    """

    presence: Presence
    detail: str
    ended_at: datetime | None = None


def task_state(state: str | None, ended_at: datetime | None = None) -> OwnerState:
    """Return what a task instance's state means to its job; None is a cleared one, which will run again."""
    return _state(state, ended_at, FINISHED_TASK_STATES, ALIVE_TASK_STATES)


def run_state(state: str | None, ended_at: datetime | None = None) -> OwnerState:
    """Return what a DAG run's state means to its job."""
    return _state(state, ended_at, FINISHED_RUN_STATES, ALIVE_RUN_STATES)


def gone(what: str) -> OwnerState:
    """Return the state of an owner of which `what` (the task instance, its DAG run, its DAG) does not exist."""
    return OwnerState(presence=Presence.GONE, detail=what)


def unknown(why: str) -> OwnerState:
    """Return the state of an owner that Airflow gave no usable answer about."""
    return OwnerState(presence=Presence.UNKNOWN, detail=why)


def _state(state: str | None, ended_at: datetime | None, finished: frozenset[str], alive: frozenset[str]) -> OwnerState:
    if state in finished:
        return OwnerState(presence=Presence.FINISHED, detail=str(state), ended_at=ended_at)
    if state is None or state in alive:
        return OwnerState(presence=Presence.ALIVE, detail=state or CLEARED)
    return unknown(f"its state is {state!r}, which this release does not know")
