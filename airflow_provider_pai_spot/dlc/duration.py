"""Durations as people write them in an argument, and read them in a log line: `41 min`, `2 h 10 min`, `35 s`."""

from __future__ import annotations

from datetime import timedelta
from typing import overload

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_LONGEST = timedelta(days=36_500)  # a deadline must still be a date, and dates end with the year 9999


def duration(seconds: float) -> str:
    """Return `seconds` in its two largest units; whole seconds below a minute."""
    whole = max(0, round(seconds))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return _two(whole, _MINUTE, "min", 1, "s") if whole < 10 * _MINUTE else f"{whole // _MINUTE} min"
    if whole < _DAY:
        return _two(whole, _HOUR, "h", _MINUTE, "min")
    return _two(whole, _DAY, "d", _HOUR, "h")


@overload
def as_timedelta(argument: str, value: timedelta | float) -> timedelta: ...
@overload
def as_timedelta(argument: str, value: None) -> None: ...
@overload
def as_timedelta(argument: str, value: timedelta | float | None) -> timedelta | None: ...
def as_timedelta(argument: str, value: timedelta | float | None) -> timedelta | None:
    """
    Return a limit as timedelta; numbers are seconds.

    :raises TypeError: not a duration.
    :raises ValueError: not above zero, or longer than a hundred years.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float, timedelta)):
        raise TypeError(f"{argument} is {value!r}: expected a timedelta or a number of seconds.")
    try:
        limit = value if isinstance(value, timedelta) else timedelta(seconds=value)
    except (ValueError, OverflowError):  # not a number, infinite, or beyond what a timedelta holds
        limit = None
    if limit is None or not timedelta(0) < limit <= _LONGEST:
        raise ValueError(f"{argument} is {value!r}: expected a duration above zero, a hundred years at most.")
    return limit


def _two(whole: int, large: int, large_name: str, small: int, small_name: str) -> str:
    count, rest = divmod(whole, large)
    rest //= small
    return f"{count} {large_name} {rest} {small_name}" if rest else f"{count} {large_name}"
