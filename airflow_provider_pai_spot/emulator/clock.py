"""Emulated time, as seconds since the epoch: real, scaled, or moved by hand."""

from __future__ import annotations

import time
from typing import Protocol


class EmulatorClock(Protocol):
    """What the emulator asks of a clock."""

    def now(self) -> float:
        """Return the emulated time in seconds since the epoch (UTC)."""
        ...

    def real_seconds(self, seconds: float) -> float | None:
        """Return how many real seconds `seconds` emulated ones take; None if they never pass by themselves."""
        ...


class RealClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Return the emulated time in seconds since the epoch (UTC)."""
        return time.time()

    def real_seconds(self, seconds: float) -> float | None:
        """Return `seconds`: emulated time is real time."""
        return seconds


class ScaledClock:
    """
    A clock that runs `factor` times as fast as the machine's.

    :param factor: emulated seconds per real second, above 0.
    :param start: first emulated time in seconds since the epoch; now if None.
    """

    def __init__(self, factor: float, start: float | None = None) -> None:
        if factor <= 0:
            raise ValueError(f"factor is {factor!r}: expected a number above 0.")
        self.factor = factor
        self._start = time.time() if start is None else start
        self._origin = time.monotonic()

    def now(self) -> float:
        """Return the emulated time in seconds since the epoch (UTC)."""
        return self._start + (time.monotonic() - self._origin) * self.factor

    def real_seconds(self, seconds: float) -> float | None:
        """Return how many real seconds `seconds` emulated ones take."""
        return seconds / self.factor


class ManualClock:
    """
    A clock that stands still until it is moved.

    :param start: first emulated time in seconds since the epoch; the current whole second if None.
    """

    def __init__(self, start: float | None = None) -> None:
        self._now = float(int(time.time())) if start is None else start

    def now(self) -> float:
        """Return the emulated time in seconds since the epoch (UTC)."""
        return self._now

    def real_seconds(self, seconds: float) -> float | None:  # noqa: ARG002 - the protocol's signature
        """Return None: time passes only when told to."""
        return None

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass at once."""
        if seconds < 0:
            raise ValueError(f"seconds is {seconds!r}: time does not run backwards.")
        self._now += seconds


def make_clock(clock: str | EmulatorClock) -> EmulatorClock:
    """Return the clock named `real` or `manual`, or the one given. Raises ValueError for another name."""
    if not isinstance(clock, str):
        return clock
    if clock == "real":
        return RealClock()
    if clock == "manual":
        return ManualClock()
    raise ValueError(f"clock is {clock!r}: expected 'real', 'manual' or a clock such as ScaledClock(60).")
