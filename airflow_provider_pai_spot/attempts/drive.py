"""The blocking driver of `follow`, for workers; the triggerer has its own, on the event loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from airflow_provider_pai_spot.attempts.commands import (
    Command,
    DiagnoseQueue,
    Do,
    Look,
    Pause,
    ReadEvents,
    ReadLogs,
    ReadOffers,
    ReadPodEvents,
    Stop,
    Wait,
)
from airflow_provider_pai_spot.attempts.log_options import events_in_utc
from airflow_provider_pai_spot.clock import SYSTEM_CLOCK, Clock
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

    def get_pod_logs(
        self,
        job_id: str,
        pod_id: str,
        *,
        max_lines: int | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        pod_uid: str | None = None,
    ) -> list[str]:
        """Return log lines of one pod."""
        ...

    def list_ecs_specs(self, instance_types: Sequence[str], *, max_age: float = 0.0) -> list[dict[str, Any]]:
        """Return ListEcsSpecs' items of these types, `max_age` seconds old at most."""
        ...

    def get_quota_workload_diagnosis(self, quota_id: str, job_id: str) -> dict[str, Any]:
        """Return why a job waits for its quota."""
        ...


def answer(command: Command, reader: JobReader) -> Any:
    """Carry out a command that may block; an error of the call is the answer, not an exception."""
    reply: Any
    try:
        match command:
            case Look(job_id):
                reply = reader.get_job(job_id)
            case Stop(job_id):
                reply = reader.stop_job(job_id)
            case ReadEvents() | ReadPodEvents() | ReadLogs():
                reply = _lines(command, reader)
            case ReadOffers(instance_types):
                reply = reader.list_ecs_specs(instance_types, max_age=_OFFERS_MAX_AGE)
            case DiagnoseQueue(quota_id, job_id):
                reply = reader.get_quota_workload_diagnosis(quota_id, job_id)
            case Do(work):
                reply = _do(work)
            case Pause(seconds):
                time.sleep(seconds)
                reply = None
            case Wait():
                raise TypeError("Wait is for the driver to carry out, it calls nothing")
    except PaiDlcError as error:
        return error
    return reply


def drive(asking: Generator[Command, Any, Result], reader: JobReader, clock: Clock) -> Result:
    """Answer what is asked, in the calling thread, until there is a result; such as following a job to its end."""
    reply: Any = None
    while True:
        try:
            command = asking.send(reply)
        except StopIteration as end:
            result: Result = end.value
            return result
        if isinstance(command, Wait | Pause):
            clock.sleep(command.seconds)
            reply = None
        else:
            reply = answer(command, reader)


def carry_out(asking: Generator[Command, Any, Result], reader: JobReader) -> Result:
    """Answer what is asked by something that never waits."""
    return drive(asking, reader, SYSTEM_CLOCK)


def _lines(command: ReadEvents | ReadPodEvents | ReadLogs, reader: JobReader) -> list[str]:
    match command:
        case ReadEvents(job_id):
            return events_in_utc(reader.get_job_events(job_id))
        case ReadPodEvents(job_id, pod_id):
            return events_in_utc(reader.get_pod_events(job_id, pod_id))
        case ReadLogs(job_id, pod_id, pod_uid, start, end, most):
            return reader.get_pod_logs(
                job_id, pod_id, max_lines=most, start_time=start, end_time=end, pod_uid=pod_uid or None
            )


def _do(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - what is done beside the waiting must not end it, whatever it was
        return error
