"""
Reading what is new in one pod's log, although GetPodLogs gives 2,000 lines at most and has no cursor.

Whether it gives the first or the last lines of a window that holds more is not documented. So a window whose answer is
full is halved until the answers are not; that takes as many requests as there is to read, and is right in either case.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from airflow_provider_pai_spot.attempts.commands import ReadLogs
from airflow_provider_pai_spot.attempts.log_cursor import Cursor, Line
from airflow_provider_pai_spot.dlc.stamps import CHINA, moment_of

MAX_LINES = 2000
"""GetPodLogs' own default for MaxLines; more may not be allowed."""
_MAX_REQUESTS = 30
"""For one pod at one look; what is left then is read at the next. A week is halved into seconds in 20."""
_ONE_SECOND = timedelta(seconds=1)
_CLOCKS_DIFFER = timedelta(minutes=1)
"""DLC's now may be later than ours."""


class LogSource(NamedTuple):
    """
    Where a log comes from.

    :param pod_uid: one incarnation of the pod; '' if DLC does not tell.
    :param begins_at: aware; nothing was written before it.
    """

    job_id: str
    pod_id: str
    pod_uid: str
    begins_at: datetime


@dataclass(slots=True, kw_only=True)
class Reading:
    """
    What one look at a log found.

    :param lines: what is new, in order.
    :param cursor: where to go on.
    :param problem: the error that ended it before its time; nothing is lost by it.
    :param flooded: whether more was new than the caller has room for, and the rest was not read.
    :param reached: where what is left begins, if there was too much to read at one look; None if all was read.
    :param crowded: a second in which DLC has more lines than it gives; some of them cannot be had.
    """

    cursor: Cursor
    lines: list[Line] = field(default_factory=list)
    problem: Exception | None = None
    flooded: bool = False
    reached: datetime | None = None
    crowded: str = ""


def read_new(
    source: LogSource,
    cursor: Cursor,
    *,
    now: datetime,
    overlap: timedelta,
    offset: timedelta | None,
    most: int,
    not_before: datetime | None = None,
) -> Generator[ReadLogs, Any, Reading]:
    """
    Read what is new.

    :param overlap: how late a line may show after a younger one.
    :param offset: how far the lines' times are ahead of UTC; None if that is not known.
    :param most: how many new lines are wanted.
    :param not_before: what is older was read, or left out, by an earlier reading.
    """
    reading = Reading(cursor=cursor)
    windows = [_Window(_start(source, cursor, overlap, offset, not_before), None)]
    for _ in range(_MAX_REQUESTS):
        if not windows or reading.flooded:
            break
        window = windows.pop()
        answer = yield ReadLogs(
            source.job_id, source.pod_id, source.pod_uid, window.start, window.end, max_lines=MAX_LINES
        )
        if isinstance(answer, Exception) and window.otherwise:
            answer = []  # a window without length may be refused
        if isinstance(answer, Exception):
            reading.problem = answer
            break
        lines = [str(line) for line in answer] or window.otherwise
        is_full = len(lines) >= MAX_LINES
        if is_full and (parts := window.parts(now, lines)):
            windows += reversed(parts)
            continue
        found, reading.cursor = reading.cursor.take(lines, overlap)
        reading.crowded = found[-1].second if is_full and found else reading.crowded
        reading.lines += found
        reading.flooded = len(reading.lines) > most
    else:
        reading.reached = windows[-1].start if windows else None
    del reading.lines[most:]
    return reading


class _Window(NamedTuple):
    """
    A stretch of time to ask for.

    :param otherwise: what to take if the answer is empty.
    """

    start: datetime
    end: datetime | None
    otherwise: Sequence[str] = ()

    def parts(self, now: datetime, full: Sequence[str]) -> list[_Window]:
        """
        Cut it in two, in order; none if it is one second.

        Whether EndTime belongs to the window is not documented. So halves overlap in their cut; and of two seconds
        the first is asked for alone, which is empty if EndTime does not belong: then it was alone already.
        """
        seconds = int(((self.end or now + _CLOCKS_DIFFER) - self.start).total_seconds())
        if seconds > 1:
            middle = self.start + timedelta(seconds=seconds // 2)
            return [_Window(self.start, middle), _Window(middle, self.end)]
        if seconds == 1:
            rest = [_Window(self.start + _ONE_SECOND, None)] if self.end is None else []  # else it comes next anyway
            return [_Window(self.start, self.start, otherwise=full), *rest]
        return []


def _start(
    source: LogSource, cursor: Cursor, overlap: timedelta, offset: timedelta | None, not_before: datetime | None
) -> datetime:
    """Return where to begin; too early is right, if slow, for what was read before is known. Too late loses lines."""
    begin = source.begins_at - overlap
    if cursor.newest:
        # One second more: whether StartTime itself belongs to the window is not documented.
        begin = moment_of(cursor.newest, CHINA if offset is None else offset) - overlap - _ONE_SECOND
    return (begin if not_before is None else max(begin, not_before)).replace(microsecond=0)
