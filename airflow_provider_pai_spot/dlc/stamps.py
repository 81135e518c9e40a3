"""
The time that DLC puts in front of a log or event line, as in `2021-01-28 14:07:45  My Job started` (documented).

It names no zone. Event lines were seen in China's local time (observed); of log lines nobody says. So a zone is either
told by whoever calls, or found out: a line can neither come from the future nor from before its pod.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

CHINA = timedelta(hours=8)
SECOND_FORMAT = "%Y-%m-%d %H:%M:%S"
_CANDIDATES = (timedelta(0), CHINA)
_CLOCKS_DIFFER = timedelta(minutes=30)  # any other zone's answer is off by hours
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)([.,]\d+)?(Z|[+-]\d\d:?\d\d)?(?=\s|$)")
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")


def second_of(line: str) -> str:
    """Return the whole second that a line begins with, as `2021-01-28 14:07:45`; '' if it begins with none."""
    found = _STAMP.match(line)
    return f"{found[1]} {found[2]}" if found and _read(found) is not None else ""


def moment_of(second: str, offset: timedelta) -> datetime:
    """
    Return a second of `second_of` as aware UTC.

    :param offset: how far its zone is ahead of UTC.
    """
    return datetime.fromisoformat(second).replace(tzinfo=UTC) - offset


def zoned_moment(line: str) -> datetime | None:
    """Return the time that a line begins with as aware UTC; None if there is none, or none with a zone."""
    found = _STAMP.match(line)
    if found is None or not found[4] or (local := _read(found)) is None:
        return None
    offset = offset_of(found[4])
    try:
        return None if offset is None else local.replace(tzinfo=UTC) - offset
    except OverflowError:
        return None


def in_utc(line: str, offset: timedelta | None) -> str:
    """
    Return a line with its time in UTC (`2021-01-28T06:07:45Z`), so that it can be laid beside a task log.

    :param offset: how far its zone is ahead of UTC; None, like a line without a time or with a zone, changes nothing.
    """
    found = _STAMP.match(line)
    if found is None or found[4] or offset is None or (local := _read(found)) is None:
        return line
    try:
        utc = local - offset
    except OverflowError:
        return line
    return f"{utc:%Y-%m-%dT%H:%M:%S}{found[3] or ''}Z{line[found.end() :]}"


def offset_of(zone: str) -> timedelta | None:
    """Return how far a zone (`UTC`, `Z`, `+08:00`) is ahead of UTC; None for anything else."""
    text = zone.strip()
    if text.upper() in ("UTC", "Z"):
        return timedelta(0)
    found = _OFFSET.fullmatch(text)
    if found is None:
        return None
    size = timedelta(hours=int(found[2]), minutes=int(found[3]))
    return -size if found[1] == "-" else size


def likely_offset(seconds: Iterable[str], *, earliest: datetime | None, latest: datetime) -> timedelta | None:
    """
    Find out whether lines carry UTC or China's time; None if both are possible, or neither.

    :param seconds: of `second_of`.
    :param earliest: nothing was written before it, such as the start of the pod; None if that is not known.
    :param latest: nothing was written after it: now.
    """
    known = sorted({second for second in seconds if second})
    if not known:
        return None
    possible = [offset for offset in _CANDIDATES if _fits(known, offset, earliest, latest)]
    return possible[0] if len(possible) == 1 else None


def _fits(seconds: list[str], offset: timedelta, earliest: datetime | None, latest: datetime) -> bool:
    first, last = moment_of(seconds[0], offset), moment_of(seconds[-1], offset)
    return last <= latest + _CLOCKS_DIFFER and (earliest is None or first >= earliest - _CLOCKS_DIFFER)


def _read(found: re.Match[str]) -> datetime | None:
    try:
        return datetime.fromisoformat(f"{found[1]} {found[2]}")
    except ValueError:  # month 13
        return None
