"""A loop whose time passes by itself: hours of waiting in milliseconds."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

Result = TypeVar("Result")
_PATIENCE = 10.0  # real seconds
EPOCH = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class _Impatient(selectors.DefaultSelector):
    """Waits for what threads and sockets bring; where only time would pass, lets it pass at once."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if self._loop.in_threads:
            return super().select(0.01 if timeout is None else min(timeout, 0.01))
        ready = super().select(_PATIENCE if timeout is None else 0)  # a loop that closes waits for its threads
        if not ready and timeout is None:
            raise RuntimeError("Everybody waits, and nobody for anything that will happen.")
        if not ready and timeout:
            self._loop.let_pass(timeout)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """
    An event loop that never sleeps; its time stands still while a thread works.

    :param along: told of all seconds that pass, so that another clock can go along.
    """

    def __init__(self, along: Callable[[float], object] | None = None) -> None:
        self.passed = 0.0
        self._along = along
        self.in_threads = 0
        super().__init__(_Impatient(self))

    def time(self) -> float:
        return self.passed

    def let_pass(self, seconds: float) -> None:
        """Let time pass."""
        self.passed += seconds
        if self._along is not None:
            self._along(seconds)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        future = super().run_in_executor(executor, func, *args)
        self.in_threads += 1
        future.add_done_callback(self._back)
        return future

    def _back(self, _: Any) -> None:
        self.in_threads -= 1


class LoopClock:
    """Wall-clock time that goes with a loop's own."""

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=asyncio.get_running_loop().time())

    def sleep(self, seconds: float) -> None:
        raise AssertionError(f"slept {seconds} s on the event loop")

    async def asleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def in_virtual_time(work: Coroutine[Any, Any, Result], along: Callable[[float], object] | None = None) -> Result:
    """Run `work` to its end on a loop of its own; see `VirtualTimeLoop`."""
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(along)) as runner:
        return runner.run(work)


async def at_once(call: Callable[..., Any], *args: Any) -> Any:
    """Run a call where threads would; no time passes."""
    return call(*args)
