"""
Waiting for one job, as a generator that asks for what it needs and never touches a socket.

It yields commands (`Look`, `Stop`, `Wait`, …) and is sent the answers, so the worker drives it with
blocking calls and the triggerer with its event loop, and both behave the same. Tests drive it with a list.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from airflow_provider_pai_spot.dlc.duration import duration
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import JobOutcome, StopReason, Verdict
from airflow_provider_pai_spot.dlc.status import JobStatus, Phase, is_decided, phase_of
from airflow_provider_pai_spot.dlc.verdict import classify
from airflow_provider_pai_spot.exceptions import PaiDlcUnavailable

NOT_OBSERVED = "not_observed"
"""`JobOutcome.rule` when DLC could not be asked for too long: the job may well be alive."""
JOB_GONE = "job_gone"
"""`JobOutcome.rule` when DLC no longer knows the job."""

_STOP_PATIENCE = 60.0
"""Seconds to wait for a stopped job to be over before its limit is reported (design: no event leaves a live job)."""
GONE_PATIENCE = 60.0
"""Seconds a 404 must last before it is believed: a new job may not be visible everywhere at once (assumed)."""
_STOP_POLL = 2.0
_PODS_ASKED = 2
_EVENTS_QUOTED = 3
_SHORTEST_WAIT = 0.05


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
class Wait:
    """Let `seconds` pass."""

    seconds: float


Command = Look | Stop | ReadEvents | ReadPodEvents | Wait
Following = Generator[Command, Any, JobOutcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitLimits:
    """
    How long a job may take. All but `poll_error_tolerance` may be absent.

    :param pending_timeout: seconds from GmtCreateTime (or from a restart) to Running.
    :param run_timeout: seconds in Running.
    :param total_deadline: when all attempts together must be over.
    :param execution_deadline: when Airflow's `execution_timeout` is used up, counted from `ti.start_date`.
    :param poll_error_tolerance: seconds without a good answer from DLC after which waiting is given up.
    :param stop_at_limit: whether the job is stopped when a limit passes; a watching sensor leaves it alone.
    """

    pending_timeout: float | None = None
    run_timeout: float | None = None
    total_deadline: datetime | None = None
    execution_deadline: datetime | None = None
    poll_error_tolerance: float = 900.0
    stop_at_limit: bool = True


def breached(job: Job, limits: WaitLimits, now: datetime) -> StopReason | None:
    """Return the limit that has passed at `now`, if any; whole-task deadlines first."""
    if limits.execution_deadline and now >= limits.execution_deadline:
        return StopReason.EXECUTION_TIMEOUT
    if limits.total_deadline and now >= limits.total_deadline:
        return StopReason.TOTAL_TIMEOUT
    if limits.pending_timeout is not None and phase_of(job.status) is Phase.PENDING:
        since = job.pending_since(now)
        if since and (now - since).total_seconds() >= limits.pending_timeout:
            return StopReason.PENDING_TIMEOUT
    if limits.run_timeout is not None and job.seconds_running(now) >= limits.run_timeout:
        return StopReason.RUN_TIMEOUT
    return None


def seconds_to_next_limit(job: Job, limits: WaitLimits, now: datetime) -> float | None:
    """Return the seconds until the nearest limit could pass, so that a poll does not sleep past it."""
    candidates = [
        (deadline - now).total_seconds() for deadline in (limits.execution_deadline, limits.total_deadline) if deadline
    ]
    phase = phase_of(job.status)
    since = job.pending_since(now)
    if limits.pending_timeout is not None and phase is Phase.PENDING and since:
        candidates.append(limits.pending_timeout - (now - since).total_seconds())
    if limits.run_timeout is not None and phase is Phase.RUNNING:
        candidates.append(limits.run_timeout - job.seconds_running(now))
    return min(candidates) if candidates else None


def follow(
    job_id: str,
    *,
    limits: WaitLimits,
    poll_interval: float,
    now: Callable[[], datetime],
    log: logging.Logger | logging.LoggerAdapter[Any] | Any,
    spot: bool | None = None,
) -> Following:
    """
    Wait until the job's end is known or a limit passes; return how it ended.

    :param poll_interval: seconds between two looks.
    :param now: the current time, aware UTC.
    :param log: gets one line for each change of status.
    :param spot: whether the job bids, for a service that does not echo SpotSpec.
    :return: the outcome, with `stop_reason` set if a limit ended it.
    """
    follower = _Follower(job_id, limits, now, log, spot)
    while True:
        answer = yield Look(job_id)
        job = follower.read(answer)
        if follower.given_up:
            return follower.given_up
        if job is None:
            yield Wait(poll_interval)
            continue
        if is_decided(job.status):
            return (yield from follower.conclude(job))
        if reason := breached(job, limits, now()):
            return (yield from follower.end_at_limit(job, reason))
        yield Wait(follower.pause(job, poll_interval))


class _Follower:
    """What is remembered between two looks at one job."""

    def __init__(
        self, job_id: str, limits: WaitLimits, now: Callable[[], datetime], log: Any, spot: bool | None
    ) -> None:
        self.job_id = job_id
        self.limits = limits
        self.now = now
        self.log = log
        self.spot = spot
        self.given_up: JobOutcome | None = None
        self._last_good = now()
        self._status = ""
        self._status_since = now()
        self._gone_since: datetime | None = None
        self._failing = False

    def read(self, answer: Any) -> Job | None:
        """Take one answer; None if it was an error that may pass."""
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

    def pause(self, job: Job, poll_interval: float) -> float:
        """Return the seconds until the next look: the interval, or less if a limit comes first."""
        left = seconds_to_next_limit(job, self.limits, self.now())
        return poll_interval if left is None else max(_SHORTEST_WAIT, min(poll_interval, left))

    def conclude(self, job: Job) -> Generator[Command, Any, JobOutcome]:
        """Say how a decided job ended; job events are read only when the job's own fields cannot tell."""
        outcome = classify(job, spot=self.spot)
        if outcome.verdict is Verdict.UNKNOWN:
            events = _lines((yield ReadEvents(self.job_id)))
            outcome = classify(job, events=events, spot=self.spot)
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

    def end_at_limit(self, job: Job, reason: StopReason) -> Generator[Command, Any, JobOutcome]:
        """Stop the job, wait until it is over, and say which limit it was; a success in between stays one."""
        if not self.limits.stop_at_limit:
            return classify(job, spot=self.spot).with_stop_reason(reason)
        self.log.warning("%s: %s reached while %s; stopping the job", self.job_id, reason.value, job.status)
        obstacles = (yield from self.obstacles(job)) if reason is StopReason.PENDING_TIMEOUT else ()
        give_up_at = self.now() + timedelta(seconds=_STOP_PATIENCE)
        answer = yield Stop(self.job_id)
        while not is_decided(job.status) and self.now() < give_up_at:
            if isinstance(answer, Exception):
                self.log.warning("%s: the stop did not go through, trying again: %s", self.job_id, answer)
                answer = yield Stop(self.job_id)
            yield Wait(_STOP_POLL)
            job = self.read((yield Look(self.job_id))) or job
        outcome = yield from self.conclude(job)
        ended_by_itself = outcome.verdict in (Verdict.SUCCEEDED, Verdict.REVOKED, Verdict.FAILED)
        return outcome if ended_by_itself else outcome.with_stop_reason(reason).with_evidence(obstacles)

    def obstacles(self, job: Job) -> Generator[Command, Any, tuple[str, ...]]:
        """Return the last events of a job that waits, pods first: an image that cannot be pulled says so there."""
        of_pods: list[str] = []
        for pod in job.pods[:_PODS_ASKED]:
            of_pods += _lines((yield ReadPodEvents(self.job_id, pod.pod_id)))
        of_job = _lines((yield ReadEvents(self.job_id)))
        lines = (*of_pods[-_EVENTS_QUOTED:], *of_job[-_EVENTS_QUOTED:])
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


def gone(job_id: str, last_status: str, error: Exception) -> JobOutcome:
    """Return the outcome of a job that DLC does not know any more."""
    return _unseen(job_id, last_status, JOB_GONE, f"DLC does not know the job: {error}")


def not_observed(job_id: str, last_status: str, error: Exception) -> JobOutcome:
    """Return the outcome of a job that DLC did not tell about for too long; it may well be alive."""
    return _unseen(job_id, last_status, NOT_OBSERVED, f"no good answer from DLC: {error}")


def _unseen(job_id: str, last_status: str, rule: str, evidence: str) -> JobOutcome:
    return JobOutcome(
        job_id=job_id,
        verdict=Verdict.UNKNOWN,
        status=last_status,
        rule=rule,
        confidence="observed",
        evidence=(evidence[:500],),
    )


def breached_before_stop(job: Job, limits: WaitLimits) -> StopReason | None:
    """
    Tell a job stopped at a limit from one stopped by a person, when the stop itself was not seen.

    A triggerer that dies between StopJob and its event leaves a Stopped job behind; had a limit passed by the
    time the job ended, the stop was ours.
    """
    ended = job.finished_at
    if ended is None:
        return None
    before = _before_stop(job)
    return breached(before, limits, ended)


def _before_stop(job: Job) -> Job:
    """Return the job as it was before Stopping, as far as its history tells."""
    waiting = (JobStatus.STOPPING.value, JobStatus.STOPPED.value)
    earlier = [entry for entry in job.timeline if entry[0] not in waiting]
    if not earlier:
        return job
    raw: Mapping[str, Any] = {
        **job.raw,
        "Status": earlier[-1][0],
        "StatusHistory": [item for item in job.raw.get("StatusHistory") or [] if _status(item) not in waiting],
    }
    return Job(raw)


def _lines(answer: Any) -> list[str]:
    """Read an answer of event lines; an exception in its place is no lines."""
    return [str(line) for line in answer] if isinstance(answer, list) else []


def _status(item: Any) -> str:
    return str(item.get("Status", "")) if isinstance(item, Mapping) else ""


def _since(job: Job, now: datetime) -> datetime:
    """Return when the job entered its status, by its own history; now if that says nothing plausible."""
    started = [start for status, start, _ in job.timeline if status == job.status and start is not None]
    return min(started[-1], now) if started else now
