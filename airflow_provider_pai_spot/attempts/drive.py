"""The blocking driver of `follow`, for workers; the triggerer has its own, on the event loop."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Protocol, TypeVar

from airflow_provider_pai_spot.attempts.commands import (
    Command,
    Following,
    Look,
    ReadEvents,
    ReadOffers,
    ReadPodEvents,
    Stop,
    Wait,
)
from airflow_provider_pai_spot.clock import Clock
from airflow_provider_pai_spot.dlc.outcome import JobOutcome
from airflow_provider_pai_spot.exceptions import PaiDlcError

_OFFERS_MAX_AGE = 60.0
"""Seconds for which all jobs that wait for the same types share one answer of ListEcsSpecs."""

Result = TypeVar("Result")


class JobReader(Protocol):
    """The calls of the hook that following a job needs."""

    def get_job(self, job_id: str) -> dict[str, Any]:
        """Return GetJob's JSON."""
        ...

    def stop_job(self, job_id: str) -> bool:
        """Stop a job."""
        ...

    def get_job_events(self, job_id: str) -> list[str]:
        """Return the job's event lines."""
        ...

    def get_pod_events(self, job_id: str, pod_id: str) -> list[str]:
        """Return one pod's event lines."""
        ...

    def list_ecs_specs(self, instance_types: Sequence[str], *, max_age: float = 0.0) -> list[dict[str, Any]]:
        """Return ListEcsSpecs' items of these types, `max_age` seconds old at most."""
        ...


def answer(command: Command, reader: JobReader) -> Any:
    """Carry out a command that calls DLC; an error of the call is the answer, not an exception."""
    try:
        match command:
            case Look(job_id):
                return reader.get_job(job_id)
            case Stop(job_id):
                return reader.stop_job(job_id)
            case ReadEvents(job_id):
                return reader.get_job_events(job_id)
            case ReadPodEvents(job_id, pod_id):
                return reader.get_pod_events(job_id, pod_id)
            case ReadOffers(instance_types):
                return reader.list_ecs_specs(instance_types, max_age=_OFFERS_MAX_AGE)
            case Wait():
                raise TypeError("Wait is for the driver to carry out, it calls nothing")
    except PaiDlcError as error:
        return error


def drive(following: Following, reader: JobReader, clock: Clock) -> JobOutcome:
    """Follow a job to its end in the calling thread."""
    reply: Any = None
    while True:
        try:
            command = following.send(reply)
        except StopIteration as end:
            outcome: JobOutcome = end.value
            return outcome
        if isinstance(command, Wait):
            clock.sleep(command.seconds)
            reply = None
        else:
            reply = answer(command, reader)


def carry_out(asking: Generator[Command, Any, Result], reader: JobReader) -> Result:
    """Answer what is asked, in the calling thread, until there is a result; for what never waits."""
    reply: Any = None
    while True:
        try:
            command = asking.send(reply)
        except StopIteration as end:
            result: Result = end.value
            return result
        reply = answer(command, reader)
