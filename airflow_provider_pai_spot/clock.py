"""What time it is, and how to wait. Injected wherever time decides something, so that tests need no sleep."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of UTC time and of waiting."""

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Block the calling thread for `seconds`."""
        ...

    async def asleep(self, seconds: float) -> None:
        """Give the event loop back for `seconds`."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Block the calling thread for `seconds`."""
        time.sleep(seconds)

    async def asleep(self, seconds: float) -> None:
        """Give the event loop back for `seconds`."""
        await asyncio.sleep(seconds)


SYSTEM_CLOCK: Clock = SystemClock()
