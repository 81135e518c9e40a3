"""A word on a wait that turns unusual: once, and again at doubled waits, never at each look."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from airflow_provider_pai_spot.attempts.commands import Command, DiagnoseQueue, ReadEvents, ReadOffers, ReadPodEvents
from airflow_provider_pai_spot.attempts.waiting_words import (
    Findings,
    has_machines,
    quota_of,
    waiting_line,
    wishes_of,
)
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.exceptions import PaiDlcError, PaiDlcRefused
from airflow_provider_pai_spot.market import read_offers

_PODS_ASKED = 2


@dataclass(frozen=True, slots=True)
class Spoken:
    """
    How much of a wait was spoken of.

    :param since: when that wait began, ISO 8601; a restart by AIMaster begins another one.
    :param after: seconds it had lasted.
    :param refused: whether it was said that prices, or a quota's diagnosis, are refused.
    """

    since: str = ""
    after: float = 0.0
    refused: bool = False


class QueueWord:
    """
    Rides along while a job is followed, and says why it waits.

    :param unusual_wait: seconds of waiting after which it speaks, then after 2, 4, 8 … times as many; 0: never.
    :param now: the current time, aware UTC.
    :param spoken: what was said in an earlier session, where each look is a process of its own (`reschedule`).
    :param patience: seconds from now in which it says nothing.
    """

    def __init__(
        self,
        *,
        unusual_wait: float,
        now: Callable[[], datetime],
        log: Any,
        spoken: Spoken | None = None,
        patience: float = 0.0,
    ) -> None:
        self._unusual_wait = unusual_wait
        self._now = now
        self._log = log
        self.spoken = spoken or Spoken()
        self._not_before = now() + timedelta(seconds=patience)

    def look(self, job: Job) -> Generator[Command, Any, None]:
        """Speak if the wait has turned unusual, or twice as unusual."""
        left = self.seconds_to_next(job)
        since = job.pending_since(self._now())
        if left is None or left > 0 or since is None:
            return
        waited = (self._now() - since).total_seconds()
        self.spoken = replace(self.spoken, since=since.isoformat(), after=waited)
        found = self._without_repetition((yield from inquire(job)))
        self._log.warning("%s", waiting_line(job, self._now(), found))

    def seconds_to_next(self, job: Job) -> float | None:
        """Return the seconds until there is something to say, if the job goes on waiting."""
        now = self._now()
        since = job.pending_since(now)
        if since is None or not self._unusual_wait:
            return None
        due_in = self._due(since) - (now - since).total_seconds()
        return max(0.0, due_in, (self._not_before - now).total_seconds())

    def end(self, job: Job) -> Generator[Command, Any, None]:
        """Say nothing: the job is over, and its outcome tells how long it waited."""
        del job
        yield from ()

    def _due(self, since: datetime) -> float:
        due = self._unusual_wait
        if self.spoken.since == since.isoformat():
            while due <= self.spoken.after:
                due *= 2
        return due

    def _without_repetition(self, found: Findings) -> Findings:
        """A missing permission is worth one mention; it will be missing the next time, too."""
        prices, quota = (isinstance(one, PaiDlcRefused) for one in (found.trouble, found.quota_trouble))
        if not prices and not quota:
            return found
        told, self.spoken = self.spoken.refused, replace(self.spoken, refused=True)
        if not told:
            return found
        return replace(
            found,
            trouble=None if prices else found.trouble,
            quota_trouble=None if quota else found.quota_trouble,
        )


def inquire(job: Job) -> Generator[Command, Any, Findings]:
    """Find out what a job waits for; what cannot be had is left out."""
    if has_machines(job):
        pod_events: list[str] = []
        for pod in job.pods[:_PODS_ASKED]:
            pod_events += _lines((yield ReadPodEvents(job.job_id, pod.pod_id)))
        return Findings(events=_lines((yield ReadEvents(job.job_id))), pod_events=pod_events)
    types = tuple(sorted({wish.instance_type for wish in wishes_of(job)}))
    offers = (yield ReadOffers(types)) if types else []
    diagnosis = (yield DiagnoseQueue(quota_of(job), job.job_id)) if quota_of(job) else None
    return Findings(
        offers=read_offers(offers) if isinstance(offers, list) else None,
        trouble=_error(offers),
        diagnosis=diagnosis if isinstance(diagnosis, dict) and diagnosis else None,
        quota_trouble=_error(diagnosis),
        events=_lines((yield ReadEvents(job.job_id))),
    )


def _error(answer: Any) -> PaiDlcError | None:
    return answer if isinstance(answer, PaiDlcError) else None


def _lines(answer: Any) -> list[str]:
    """Read an answer of event lines; an exception in its place is no lines."""
    return [str(line) for line in answer] if isinstance(answer, list) else []
