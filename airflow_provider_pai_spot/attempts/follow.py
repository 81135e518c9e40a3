"""
Waiting for one job, as a generator that asks for what it needs and never touches a socket.

It yields commands (`Look`, `Stop`, `Wait`, …) and is sent the answers, so the worker drives it with
blocking calls and the triggerer with its event loop, and both behave the same. Tests drive it with a list.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from datetime import datetime
from typing import Any, Protocol

from airflow_provider_pai_spot.attempts.commands import (
    Command,
    Following,
    Look,
    Missed,
    ReadEvents,
    ReadPodEvents,
    Stop,
    Wait,
)
from airflow_provider_pai_spot.attempts.judging import event_lines, judge, judging
from airflow_provider_pai_spot.attempts.limits import (
    WaitLimits,
    breached,
    breached_before_stop,
    seconds_to_next_limit,
)
from airflow_provider_pai_spot.attempts.stop_patience import StopPatience
from airflow_provider_pai_spot.attempts.unseen import gone, not_observed
from airflow_provider_pai_spot.dlc.duration import duration
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import JobOutcome, StopReason, Verdict
from airflow_provider_pai_spot.dlc.status import Phase, is_decided, phase_of
from airflow_provider_pai_spot.exceptions import PaiDlcUnavailable

GONE_PATIENCE = 60.0
"""Seconds a 404 must last before it is believed: a new job may not be visible everywhere at once (assumed)."""
_STOP_POLL = 2.0
_PODS_ASKED = 2
_EVENTS_QUOTED = 3
_SHORTEST_WAIT = 0.05


class Companion(Protocol):
    """Something done beside the waiting, such as copying pod logs into the task log. Its trouble must not end it."""

    def look(self, job: Job) -> Generator[Command, Any, None]:
        """Do what is due; called after each good look at a job that is not decided."""
        ...

    def seconds_to_next(self, job: Job) -> float | None:
        """Return when `look` should be called again at the latest, though the job may not change; None: no matter."""
        ...

    def end(self, job: Job) -> Generator[Command, Any, None]:
        """Do the last of it; called once the job is decided, before its outcome is returned."""
        ...


def follow(
    job_id: str,
    *,
    limits: WaitLimits,
    poll_interval: float,
    now: Callable[[], datetime],
    log: logging.Logger | logging.LoggerAdapter[Any] | Any,
    spot: bool | None = None,
    companions: Sequence[Companion] = (),
) -> Following:
    """
    Wait until the job's end is known or a limit passes; return how it ended.

    :param poll_interval: seconds between two looks.
    :param now: the current time, aware UTC.
    :param log: gets one line for each change of status.
    :param spot: whether the job bids, for a service that does not echo SpotSpec.
    :param companions: what else is done at each look.
    :return: the outcome, with `stop_reason` set if a limit ended it.
    """
    follower = _Follower(job_id, limits, now, log, spot=spot, companions=companions)
    while True:
        job = follower.read((yield Look(job_id)))
        if follower.given_up:
            return follower.given_up
        if job is None:
            yield Wait(poll_interval, longest=poll_interval)
            continue
        if is_decided(job.status):
            return (yield from follower.conclude(job))
        if reason := breached(job, limits, now()):
            return (yield from follower.end_at_limit(job, reason, min(_STOP_POLL, poll_interval)))
        for companion in companions:
            yield from companion.look(job)
        yield follower.pause(job, poll_interval)


class _Follower:
    """What is remembered between two looks at one job."""

    def __init__(
        self,
        job_id: str,
        limits: WaitLimits,
        now: Callable[[], datetime],
        log: Any,
        *,
        spot: bool | None,
        companions: Sequence[Companion],
    ) -> None:
        self.job_id = job_id
        self.limits = limits
        self.now = now
        self.log = log
        self.spot = spot
        self.companions = companions
        self.given_up: JobOutcome | None = None
        self._last_good = now()
        self._status = ""
        self._status_since = now()
        self._gone_since: datetime | None = None
        self._failing = False

    def read(self, answer: Any) -> Job | None:
        """Take one answer; None if it was an error that may pass."""
        if isinstance(answer, Missed):
            self._last_good = max(self._last_good, answer.last_good or self._last_good)
            answer = answer.error
        if isinstance(answer, Exception):
            self._missed(answer)
            return None
        job = Job(answer)
        if not job.status:
            self._missed(PaiDlcUnavailable("GetJob's answer shows no Status"))
            return None
        self._last_good, self._gone_since = self.now(), None
        if self._failing:
            self.log.info("%s: DLC answers again", self.job_id)
            self._failing = False
        self._note(job)
        return job

    def pause(self, job: Job, poll_interval: float) -> Wait:
        """Wait for the interval, or less if a limit or a companion comes first."""
        soonest = _soonest(
            seconds_to_next_limit(job, self.limits, self.now()),
            *(companion.seconds_to_next(job) for companion in self.companions),
        )
        if soonest is None:
            return Wait(poll_interval)
        longest = max(_SHORTEST_WAIT, soonest)
        return Wait(min(poll_interval, longest), longest=longest)

    def conclude(self, job: Job) -> Generator[Command, Any, JobOutcome]:
        """Say how a decided job ended; job events are read only when the job's own fields cannot tell."""
        for companion in self.companions:
            yield from companion.end(job)
        outcome = yield from judging(job, spot=self.spot)
        if outcome.reserving:
            self.log.warning(
                "%s: %s: the work is over but its nodes are still held, and perhaps billed, until the "
                "reservation ends (JobReservedMinutes)",
                self.job_id,
                job.status,
            )
        if outcome.verdict is Verdict.STOPPED and job.finished_at:
            outcome = outcome.with_stop_reason(breached_before_stop(job, self.limits))
        return outcome

    def end_at_limit(self, job: Job, reason: StopReason, look_every: float) -> Generator[Command, Any, JobOutcome]:
        """Stop the job, wait until it is over, and say which limit it was; a success in between stays one."""
        if not self.limits.stop_at_limit:
            return judge(job, spot=self.spot).with_stop_reason(reason)
        self.log.warning("%s: %s reached while %s; stopping the job", self.job_id, reason.value, job.status)
        obstacles = (yield from self.obstacles(job)) if reason is StopReason.PENDING_TIMEOUT else ()
        job = yield from self.stop(job, look_every)
        outcome = yield from self.conclude(job)
        return outcome if outcome.ended_by_itself else outcome.with_stop_reason(reason).with_evidence(obstacles)

    def stop(self, job: Job, look_every: float) -> Generator[Command, Any, Job]:
        """Stop the job, again and again if DLC does not take it, and return it as it was seen last."""
        patience, told = StopPatience(self.now), False
        answer = yield Stop(self.job_id)
        while True:
            patience.told(answer)
            if isinstance(answer, Exception) and not told:
                self.log.warning("%s: the stop did not go through, trying again: %s", self.job_id, answer)
                told = True
            yield Wait(look_every)
            seen = self.read((yield Look(self.job_id)))
            patience.looked(good=seen is not None or self.given_up is not None)
            job = seen or job
            if is_decided(job.status) or patience.is_over:
                return job
            if isinstance(answer, Exception):
                answer = yield Stop(self.job_id)

    def obstacles(self, job: Job) -> Generator[Command, Any, tuple[str, ...]]:
        """Return the last events of a job that waits, pods first: an image that cannot be pulled says so there."""
        of_pods: list[str] = []
        for pod in job.pods[:_PODS_ASKED]:
            of_pods += event_lines((yield ReadPodEvents(self.job_id, pod.pod_id)), _EVENTS_QUOTED)
        of_job = event_lines((yield ReadEvents(self.job_id)), _EVENTS_QUOTED)
        lines = (*of_pods[-_EVENTS_QUOTED:], *of_job)
        for line in lines:
            self.log.warning("%s: last seen: %s", self.job_id, line)
        return lines

    def _missed(self, error: Exception) -> None:
        now = self.now()
        if not self._failing:
            self.log.warning("%s: DLC could not be asked, waiting on: %s", self.job_id, error)
            self._failing = True
        if getattr(error, "status_code", None) == 404:  # noqa: PLR2004 - HTTP's own number
            self._gone_since = self._gone_since or now
            if (now - self._gone_since).total_seconds() >= GONE_PATIENCE:
                self.given_up = gone(self.job_id, self._status, error)
        elif (now - self._last_good).total_seconds() >= self.limits.poll_error_tolerance:
            self.given_up = not_observed(self.job_id, self._status, error)

    def _note(self, job: Job) -> None:
        """Log a change of status, once."""
        if job.status == self._status:
            return
        now = self.now()
        if self._status:
            spent = duration((now - self._status_since).total_seconds())
            self.log.info("%s: %s → %s after %s", self.job_id, self._status, job.status, spent)
        else:
            self.log.info("%s: %s", self.job_id, job.status)
        self._status, self._status_since = job.status, _since(job, now)
        if phase_of(job.status) is Phase.UNKNOWN:
            self.log.warning(
                "%s: status %r is not in DLC's reference as this release knows it; waiting on until it changes",
                self.job_id,
                job.status,
            )


def _soonest(*seconds: float | None) -> float | None:
    return min((one for one in seconds if one is not None), default=None)


def _since(job: Job, now: datetime) -> datetime:
    """Return when the job entered its status, by its own history; now if that says nothing plausible."""
    started = [start for status, start, _ in job.timeline if status == job.status and start is not None]
    return min(started[-1], now) if started else now
