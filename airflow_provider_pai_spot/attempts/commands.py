"""What following a job asks of whoever drives it; each command says how it is answered."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow_provider_pai_spot.dlc.outcome import JobOutcome


@dataclass(frozen=True, slots=True)
class Look:
    """Read the job; answered by GetJob's JSON, by the exception that the call raised, or by `Missed`."""

    job_id: str


@dataclass(frozen=True, slots=True)
class Missed:
    """
    How a driver that hears of changes by itself answers `Look` when it hears nothing good any more.

    :param error: why.
    :param last_good: when the last good answer came, aware; None if there was none.
    """

    error: Exception
    last_good: datetime | None


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop the job; answered by anything, or by the exception that the call raised."""

    job_id: str


@dataclass(frozen=True, slots=True)
class ReadEvents:
    """Read the job's events; answered by a list of lines or by the exception that the call raised."""

    job_id: str


@dataclass(frozen=True, slots=True)
class ReadPodEvents:
    """Read one pod's events; answered by a list of lines or by the exception that the call raised."""

    job_id: str
    pod_id: str


@dataclass(frozen=True, slots=True)
class ReadOffers:
    """Read what the market offers of instance types; answered by ListEcsSpecs' items or by the exception raised."""

    instance_types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadLogs:
    """
    Read log lines of one pod; answered by a list of lines or by the exception that the call raised.

    :param pod_uid: one incarnation of the pod; '' for the present one.
    :param start: aware; nothing older. None: as DLC has it, 7 days ago.
    :param end: aware; nothing younger. None: up to now.
    """

    job_id: str
    pod_id: str
    pod_uid: str = ""
    start: datetime | None = None
    end: datetime | None = None
    max_lines: int | None = None


@dataclass(frozen=True, slots=True)
class Do:
    """Do something that may block and is no call to DLC; answered by its result or the exception that it raised."""

    work: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class DiagnoseQueue:
    """Ask why a job waits for its quota; answered by PAI Studio's diagnosis or by the exception raised."""

    quota_id: str
    job_id: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Let `seconds` pass, whatever happens to the job meanwhile; answered by anything."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Wait:
    """
    Let `seconds` pass, then look again.

    :param longest: seconds after which a driver must look again that hears of changes by itself, and need not ask
        every `seconds`; None if only a change matters to it.
    """

    seconds: float
    longest: float | None = None


Command = Look | Stop | ReadEvents | ReadPodEvents | ReadOffers | DiagnoseQueue | ReadLogs | Do | Pause | Wait
Following = Generator[Command, Any, JobOutcome]
"""Following a job to its end: yields commands, is sent their answers, returns how the job ended."""
