"""A log stream for whoever waits: the trigger in the triggerer, operator and sensor on a worker."""

from __future__ import annotations

from typing import Any

from airflow_provider_pai_spot.attempts.commands import Look
from airflow_provider_pai_spot.attempts.drive import JobReader, answer, drive
from airflow_provider_pai_spot.attempts.log_notes import THIS_PROCESS, Notes, XComNotes
from airflow_provider_pai_spot.attempts.log_options import LogOptions
from airflow_provider_pai_spot.attempts.log_stream import LogStream
from airflow_provider_pai_spot.clock import Clock
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import JobOutcome


def stream_in_triggerer(interval: float, instance: Any, *, clock: Clock, log: Any) -> LogStream:
    """
    Return what copies pods' logs beside a trigger.

    :param interval: seconds between two looks.
    :param instance: what the triggerer tells of the task instance; None, as under `dag.test()`: nothing is noted down.
    """
    return LogStream(
        LogOptions.configured(interval),
        now=clock.now,
        log=log,
        notes=None if instance is None else notes_of(instance),
        try_number=0 if instance is None else instance.try_number,
        writer=THIS_PROCESS,
    )


def stream_on_worker(
    interval: float, *, try_number: int, clock: Clock, log: Any, notes: Notes | None = None
) -> LogStream:
    """
    Return what copies pods' logs on a worker, whose log stays from one session of a try to the next.

    :param interval: seconds between two looks.
    :param notes: where a trigger, or an earlier session, has noted down how far it came.
    """
    return LogStream(LogOptions.configured(interval), now=clock.now, log=log, notes=notes, try_number=try_number)


def with_rest_of_log(outcome: JobOutcome, logs: LogStream | None, reader: JobReader, clock: Clock) -> JobOutcome:
    """
    Copy what was not copied yet of a job that is over; return its outcome with the progress that was printed.

    For a job that had ended before a trigger, or a look, could see it run.
    """
    if logs is None:
        return outcome
    found = answer(Look(outcome.job_id), reader)
    if isinstance(found, Exception):
        logs.give_up(found)
        return outcome
    drive(logs.end(Job(found)), reader, clock)
    return outcome.with_progress(logs.progress)


def notes_of(instance: Any) -> XComNotes:
    """Return where trigger and worker note down what was shown of a task instance."""
    return XComNotes(
        dag_id=instance.dag_id,
        run_id=instance.run_id,
        task_id=instance.task_id,
        map_index=-1 if instance.map_index is None else instance.map_index,
    )
