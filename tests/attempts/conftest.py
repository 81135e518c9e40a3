"""A clock that moves only when told to, and a logger that keeps its lines."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest


class ManualClock:
    """Time stands still until somebody sleeps."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 30, 22, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)


class KeptLog(logging.LoggerAdapter[logging.Logger]):
    """A logger whose lines can be read back."""

    def __init__(self) -> None:
        super().__init__(logging.getLogger("pai-spot-test"), {})
        self.lines: list[str] = []

    def log(self, level: int, msg: object, *args: object, **_kwargs: object) -> None:  # type: ignore[override]
        self.lines.append(f"{logging.getLevelName(level)} {str(msg) % args if args else msg}")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def kept_log() -> KeptLog:
    return KeptLog()
