"""What following a job asks of whoever drives it; each command says how it is answered."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from airflow_provider_pai_spot.dlc.outcome import JobOutcome


@dataclass(frozen=True, slots=True)
class Look:
    """Read the job; answered by GetJob's JSON or by the exception that the call raised."""

    job_id: str


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
class Wait:
    """
    Let `seconds` pass, then look again.

    :param longest: seconds after which a driver must look again that hears of changes by itself, and need not ask
        every `seconds`; None if only a change matters to it.
    """

    seconds: float
    longest: float | None = None


Command = Look | Stop | ReadEvents | ReadPodEvents | ReadOffers | Wait
Following = Generator[Command, Any, JobOutcome]
"""Following a job to its end: yields commands, is sent their answers, returns how the job ended."""
