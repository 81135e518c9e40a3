"""What tests put in the place of time and of a task's log."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from airflow_provider_pai_spot.emulator import DlcEmulator


class EmulatedClock:
    """The provider's clock is the emulator's: sleeping here lets time pass there."""

    def __init__(self, emulator: DlcEmulator) -> None:
        self._emulator = emulator

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._emulator.control.now(), UTC)

    def sleep(self, seconds: float) -> None:
        self._emulator.control.advance(seconds)

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)


class KeptLog(logging.LoggerAdapter[logging.Logger]):
    """A logger whose lines can be read back."""

    def __init__(self) -> None:
        super().__init__(logging.getLogger("pai-spot-test"), {})
        self.lines: list[str] = []

    def log(self, level: int, msg: object, *args: object, **_kwargs: object) -> None:  # type: ignore[override]
        self.lines.append(f"{logging.getLevelName(level)} {str(msg) % args if args else msg}")
