"""Durations as people read them in a log line: `41 min`, `2 h 10 min`, `35 s`."""

from __future__ import annotations

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR


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


def _two(whole: int, large: int, large_name: str, small: int, small_name: str) -> str:
    count, rest = divmod(whole, large)
    rest //= small
    return f"{count} {large_name} {rest} {small_name}" if rest else f"{count} {large_name}"
