"""
The end of one pod's log, although GetPodLogs gives 2,000 lines at most.

Whether it gives the first or the last lines of a log that has more is not documented. Where it gives the last, any
later part of the log ends with the same line; where it gives the first, the part is looked for that fits one answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from airflow_provider_pai_spot.attempts.log_cursor import Cursor
from airflow_provider_pai_spot.attempts.log_reading import MAX_LINES
from airflow_provider_pai_spot.clock import SYSTEM_CLOCK
from airflow_provider_pai_spot.dlc.outcome import JobOutcome
from airflow_provider_pai_spot.dlc.wire import time_of
from airflow_provider_pai_spot.exceptions import PaiDlcError

_MAX_REQUESTS = 20
"""Halvings of a week into seconds."""
_ONE_SECOND = timedelta(seconds=1)
_LATE = timedelta(minutes=1)
_WEEK = timedelta(days=7)
"""How far back GetPodLogs looks by itself."""


class LogCalls(Protocol):
    """The call of the hook that is needed here."""

    def get_pod_logs(
        self, job_id: str, pod_id: str, *, max_lines: int | None = None, start_time: datetime | None = None
    ) -> list[str]:
        """Return log lines of one pod."""
        ...


@dataclass(frozen=True, slots=True)
class LogEnd:
    """
    The last lines of a log.

    :param is_whole: whether they are all there are.
    :param goes_on: whether lines may follow that could not be had.
    """

    lines: Sequence[str]
    is_whole: bool = False
    goes_on: bool = False


def read_end(hook: LogCalls, outcome: JobOutcome, pod_id: str, wanted: int) -> LogEnd:
    """
    Read the end of a log, `wanted` lines or more if it has as many.

    :raises PaiDlcError: nothing of it could be read.
    """
    lines = hook.get_pod_logs(outcome.job_id, pod_id, max_lines=MAX_LINES)
    if len(lines) < MAX_LINES:
        return LogEnd(lines, is_whole=True)
    try:
        return _search(hook, outcome, pod_id, lines, wanted)
    except PaiDlcError:
        return LogEnd(lines, goes_on=True)


def _search(hook: LogCalls, outcome: JobOutcome, pod_id: str, first: Sequence[str], wanted: int) -> LogEnd:
    begin, end = _span(outcome)
    full, short = first, list[str]()
    for _ in range(_MAX_REQUESTS):
        if end - begin <= _ONE_SECOND:
            break
        middle = begin + (end - begin) / 2
        found = hook.get_pod_logs(outcome.job_id, pod_id, max_lines=MAX_LINES, start_time=middle)
        if found and found[-1] == first[-1]:
            return LogEnd(first)
        if len(found) < MAX_LINES:
            end, short = middle, found
        else:
            begin, full = middle, found
        if len(short) >= max(wanted, 1):
            break
    _, cursor = Cursor().take(full, _LATE)
    return LogEnd([*full, *(line.text for line in cursor.take(short, _LATE)[0])], goes_on=not short)


def _span(outcome: JobOutcome) -> tuple[datetime, datetime]:
    """Return when the log may have begun and ended, by DLC's own clock if it tells."""
    moments = [moment for entry in outcome.timeline for moment in map(time_of, entry[1:]) if moment is not None]
    end = max(moments, default=SYSTEM_CLOCK.now()) + _LATE
    return min(moments, default=end - _WEEK), end
