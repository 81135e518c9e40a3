"""Which logs a job has: one for each incarnation of each pod, and how far each was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Self

from airflow_provider_pai_spot.attempts.log_cursor import Cursor
from airflow_provider_pai_spot.attempts.log_reading import LogSource, Reading
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.pods import Pod

_ENDED = ("Succeeded", "Failed")
_BEFORE_START = timedelta(minutes=1)
"""How much earlier than DLC says a pod may have begun: it is another machine's clock."""
_CLOCKS_DIFFER = timedelta(minutes=1)
_MAX_CLOSED = 40
"""Ended incarnations that are remembered at most; AIMaster may start a pod again hundreds of times."""
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True, kw_only=True)
class PodLog:
    """
    One incarnation's log.

    :param number: counts the logs of a job; that of a former incarnation is smaller.
    :param not_before: what is older was read or left out.
    :param read_at: when it was read last.
    :param reached: where lines begin that were too much for the last look; None if it read all there were.
    :param ended_at: when it was first seen that the incarnation has ended, by our clock.
    :param is_closed: whether all of it was read.
    """

    source: LogSource
    cursor: Cursor = field(default_factory=Cursor)
    number: int = 0
    not_before: datetime | None = None
    read_at: datetime = _NEVER
    reached: datetime | None = None
    ended_at: datetime | None = None
    is_closed: bool = False

    @classmethod
    def of_key(cls, job_id: str, key: str, *, begins_at: datetime, cursor: Cursor | None) -> Self:
        """Return the log of a stored key."""
        pod_id, _, pod_uid = key.partition("/")
        return cls(source=LogSource(job_id, pod_id, pod_uid, begins_at), cursor=cursor or Cursor())

    @property
    def key(self) -> str:
        """What it is stored under."""
        return f"{self.source.pod_id}/{self.source.pod_uid}"

    def took(self, reading: Reading, now: datetime, lag: timedelta) -> None:
        """Go on after a reading; a log that ended is closed once its last lines must have shown."""
        self.cursor, self.read_at = reading.cursor, now
        self.reached = None if reading.flooded else reading.reached
        if reading.flooded:
            self.not_before = now - lag
        elif self.reached is not None:
            self.not_before = min(self.reached, now - lag)
        is_complete = reading.problem is None and self.reached is None
        if self.ended_at is not None and is_complete and now - self.ended_at >= lag:
            self.close()

    def close(self) -> None:
        """Read it no more."""
        self.is_closed, self.cursor = True, self.cursor.closed()


class PodLogs:
    """
    The logs of one job.

    :param cursors: how far they were read before, by `PodLog.key`.
    :param most: pods at most, as DLC lists them; AIMaster's own is read beside them.
    :param read_at: when they were read before; None: never.
    """

    def __init__(self, cursors: Mapping[str, Cursor], *, most: int, read_at: datetime | None = None) -> None:
        self._known = dict(cursors)
        self._most = most
        self._read_at = read_at
        self._logs: dict[str, PodLog] = {}
        self.since = _NEVER
        self.pod_ids: list[str] = []

    def see(self, job: Job, now: datetime) -> None:
        """Take up incarnations that are new, and note which have ended."""
        self.since = (job.created_at or now) - _BEFORE_START
        own = [pod.pod_id for pod in job.pods if pod.type == "aimaster"]
        self.pod_ids = [*[pod.pod_id for pod in job.pods if pod.pod_id not in own][: self._most], *own]
        former = sorted(job.history_pods, key=lambda pod: pod.started_at or _NEVER)
        for pod in (*former, *job.pods):
            if pod.pod_id in self.pod_ids and _has_begun(pod):
                log = self._log_of(job, pod)
                ended = pod.is_history or pod.status in _ENDED or job.is_decided
                log.ended_at = (log.ended_at or now) if ended else None

    def open(self) -> list[PodLog]:
        """Return the logs that are still to be read, those first that were not read for longest."""
        return sorted((log for log in self._logs.values() if not log.is_closed), key=lambda log: log.read_at)

    def behind(self) -> list[PodLog]:
        """Return the logs that had more lines than one look could read."""
        return [log for log in self.open() if log.reached is not None]

    def left_out(self, job: Job) -> int:
        """Return how many pods are more than are read."""
        return len({pod.pod_id for pod in job.pods} - {*self.pod_ids})

    def cursors(self) -> dict[str, Cursor]:
        """Return how far each log was read, of the newest incarnations."""
        open_now = {log.key for log in self.open()}
        every = {**self._known, **{log.key: log.cursor for log in self._logs.values()}}
        dropped = [key for key in every if key not in open_now][:-_MAX_CLOSED]
        return {key: cursor for key, cursor in every.items() if key not in dropped}

    def close(self) -> dict[str, Cursor]:
        """Read no more of any; return how far each was read."""
        for log in self._logs.values():
            log.close()
        return self.cursors()

    def _log_of(self, job: Job, pod: Pod) -> PodLog:
        begins_at = (pod.started_at - _BEFORE_START) if pod.started_at else self.since
        log = PodLog(source=LogSource(job.job_id, pod.pod_id, pod.pod_uid, begins_at))
        if log.key not in self._logs:
            log.cursor, log.number = self._known.get(log.key, log.cursor), len(self._logs)
            log.is_closed = log.key not in self._known and self._was_over(pod)
            self._logs[log.key] = log
        return self._logs[log.key]

    def _was_over(self, pod: Pod) -> bool:
        """Whether an incarnation that is not remembered had ended, and so been read, when logs were read before."""
        ended, read = pod.finished_at, self._read_at
        return pod.is_history and ended is not None and read is not None and ended < read - _CLOCKS_DIFFER


def _has_begun(pod: Pod) -> bool:
    return pod.started_at is not None or pod.status not in ("", "Pending")
