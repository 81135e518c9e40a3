"""`pai-spot sweep --apply`, a quarter of an hour from now: its grace has passed without anybody waiting for it."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from datetime import UTC, datetime, timedelta

from airflow_provider_pai_spot.cli.sweep import add_arguments, run

_LATER = timedelta(minutes=15)


class LaterClock:
    """A clock that is ahead, and otherwise goes like any other."""

    def now(self) -> datetime:
        """Return the time a quarter of an hour from now."""
        return datetime.now(UTC) + _LATER

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)

    async def asleep(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)


def main() -> int:
    """Sweep as the command line says."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    parser.add_argument("--debug", action="store_true")
    return run(parser.parse_args(), LaterClock())


if __name__ == "__main__":
    sys.exit(main())
