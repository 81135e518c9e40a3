"""The blocking driver of `follow`, for workers; the triggerer has its own, on the event loop."""

from __future__ import annotations

from typing import Any, Protocol

from airflow_provider_pai_spot.attempts.commands import Command, Following, Look, ReadEvents, ReadPodEvents, Stop, Wait
from airflow_provider_pai_spot.clock import Clock
from airflow_provider_pai_spot.dlc.outcome import JobOutcome
from airflow_provider_pai_spot.exceptions import PaiDlcError


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
