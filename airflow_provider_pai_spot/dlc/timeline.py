"""
What a job did when, from its `StatusHistory`.

Neither the order of the entries nor the form of an open end is documented, so both orders and a missing,
empty or wrong `EndTime` are read; entries never overlap afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from airflow_provider_pai_spot.dlc.status import Phase, phase_of
from airflow_provider_pai_spot.dlc.wire import mappings_of, text_of, time_of


class Stretch(NamedTuple):
    """
    A time spent in one status.

    :param end: None while it lasts.
    """

    status: str
    start: datetime
    end: datetime | None


def read_timeline(status_history: object) -> list[Stretch]:
    """Return the stretches of a `StatusHistory`, oldest first, each ending no later than the next begins."""
    entries = [
        (text_of(item.get("Status")), start, time_of(item.get("EndTime")))
        for item in mappings_of(status_history)
        if (start := time_of(item.get("StartTime"))) is not None
    ]
    if len(entries) > 1 and entries[0][1] > entries[-1][1]:
        entries.reverse()  # newest first; a stable sort alone would leave equal seconds the wrong way round
    entries.sort(key=lambda entry: entry[1])
    followings: list[datetime | None] = [*(start for _, start, _ in entries[1:]), None]
    return [_closed(*entry, following) for entry, following in zip(entries, followings, strict=False)]


def seconds_in(timeline: Iterable[Stretch], phase: Phase, until: datetime | None) -> float:
    """Return the seconds spent in a phase; `until` ends what is still open (None: it does not count)."""
    return sum(
        seconds_between(stretch.start, _earlier(stretch.end, until))
        for stretch in timeline
        if phase_of(stretch.status) is phase
    )


def present_pending_start(timeline: Sequence[Stretch]) -> datetime | None:
    """Return when the pending stretch at the end of the timeline began, None if it does not end in one."""
    start = None
    for stretch in reversed(timeline):
        if phase_of(stretch.status) not in (Phase.PENDING, Phase.UNKNOWN):
            break
        start = stretch.start
    return start


def began_again_after(timeline: Iterable[Stretch], moment: datetime) -> bool:
    """Whether the job entered Running after a moment."""
    return any(stretch.start > moment for stretch in timeline if phase_of(stretch.status) is Phase.RUNNING)


def seconds_between(start: datetime | None, end: datetime | None) -> float:
    """Return the seconds from start to end; 0 if one is unknown or they are the wrong way round."""
    if start is None or end is None:
        return 0.0
    return max(0.0, (end - start).total_seconds())


def _closed(status: str, start: datetime, end: datetime | None, following: datetime | None) -> Stretch:
    end = _earlier(end, following)
    return Stretch(status, start, end if end is None else max(start, end))


def _earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    known = [moment for moment in (one, other) if moment is not None]
    return min(known) if known else None
