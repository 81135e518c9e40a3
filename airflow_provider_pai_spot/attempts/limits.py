"""How long a job may take: pure arithmetic over what DLC shows of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Self

from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import StopReason
from airflow_provider_pai_spot.dlc.status import JobStatus, Phase, phase_of


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

    def stored_deadlines(self) -> dict[str, Any]:
        """Return the deadlines as they are stored with an attempt: DLC shows whole seconds of when a job ended."""
        return {"total_deadline": _stored(self.total_deadline), "execution_deadline": _stored(self.execution_deadline)}

    def with_deadlines(self, *, total_deadline: str, execution_deadline: str) -> Self:
        """Return the same limits with the deadlines that were stored, those of another try."""
        return replace(self, total_deadline=_read(total_deadline), execution_deadline=_read(execution_deadline))


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


def _status(item: Any) -> str:
    return str(item.get("Status", "")) if isinstance(item, Mapping) else ""


def _stored(deadline: datetime | None) -> str:
    return "" if deadline is None else deadline.astimezone(UTC).replace(microsecond=0).isoformat()


def _read(deadline: str) -> datetime | None:
    return datetime.fromisoformat(deadline).astimezone(UTC) if deadline else None
