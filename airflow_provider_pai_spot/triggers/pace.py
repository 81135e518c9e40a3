"""
The pace of one connection's calls: what DLC's answers make of it, and whose turn it is to ask or stop one job.

Many jobs may end, or pass their limit, in the same moment. Who asks for one job waits in line for a permit; it is
given when the line gets there, by the pace of that moment, and the call is then made in the asking task's own context.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from airflow_provider_pai_spot.exceptions import PaiDlcError, PaiDlcThrottled, PaiDlcUnavailable
from airflow_provider_pai_spot.triggers.dlc_threads import LONGEST_CALL, in_single_thread, in_stop_thread, within
from airflow_provider_pai_spot.triggers.rhythm import Rhythm

log = logging.getLogger(__name__)

InThread = Callable[..., Awaitable[Any]]

_DEFAULT_PERIOD = 30.0
_LOOKS_IN_FLIGHT = 2
_STOPS_IN_FLIGHT = 4
_STOPS_IN_A_ROW = 3  # while somebody waits to look: the end of other jobs must show, too
_AT_ONCE = 1e-4
"""Seconds that are not worth a sleep."""


class _Line:
    """Those who wait for one kind of call, first come, first served; `free` more calls may be under way."""

    def __init__(self, in_thread: InThread, in_flight: int) -> None:
        self.in_thread = in_thread
        self.free = in_flight
        self._waiting: deque[asyncio.Future[None]] = deque()

    def join(self, permit: asyncio.Future[None]) -> None:
        self._waiting.append(permit)

    @property
    def is_due(self) -> bool:
        """Whether somebody waits who may be let go."""
        while self._waiting and self._waiting[0].done():  # cancelled
            self._waiting.popleft()
        return self.free > 0 and bool(self._waiting)

    def let_one_go(self) -> None:
        self.free -= 1
        self._waiting.popleft().set_result(None)


class Pace:
    """
    What the calls of one connection share.

    :param name: of the connection, for the log.
    :param in_thread: runs a blocking look at one job.
    :param in_stop_thread: runs a blocking stop.
    """

    def __init__(
        self, name: str = "", *, in_thread: InThread = in_single_thread, in_stop_thread: InThread = in_stop_thread
    ) -> None:
        self.rhythm = Rhythm(_DEFAULT_PERIOD)
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._looks = _Line(in_thread, _LOOKS_IN_FLIGHT)
        self._stops = _Line(in_stop_thread, _STOPS_IN_FLIGHT)
        self._last_at = float("-inf")
        self._in_a_row = 0
        self._ushering: asyncio.Task[None] | None = None
        self._slow = False

    # --- calls for one job ------------------------------------------------------------------------------

    async def ask(self, call: Callable[[], Any]) -> Any:
        """
        Look at one job, when DLC's pace allows it.

        :param call: blocks; its PaiDlcError may be its answer, or be raised.
        """
        return await self._in_turn(self._looks, call)

    async def stop(self, call: Callable[[], Any]) -> Any:
        """Stop one job; most stops come before looks, because what is to be stopped costs money."""
        return await self._in_turn(self._stops, call)

    async def _in_turn(self, line: _Line, call: Callable[[], Any]) -> Any:
        await self._permit(line)
        try:
            answer = await within(LONGEST_CALL, line.in_thread, call)
        except TimeoutError:
            return PaiDlcUnavailable(f"DLC did not answer a call for one job within {LONGEST_CALL:.0f} s.")
        except PaiDlcError as error:
            self.heed(error)
            raise
        finally:
            line.free += 1
            self._usher()
        if isinstance(answer, PaiDlcError):
            self.heed(answer)
        return answer

    async def _permit(self, line: _Line) -> None:
        permit: asyncio.Future[None] = self._loop.create_future()
        line.join(permit)
        self._usher()
        try:
            await permit
        except asyncio.CancelledError:
            if not permit.cancelled():  # it was given in the same moment
                line.free += 1
            self._usher()
            raise

    def _usher(self) -> None:
        """See to it that somebody lets those go who wait, exactly as long as there are any."""
        if self._due_line() is None:
            if self._ushering is not None:
                self._ushering.cancel()
                self._ushering = None
        elif self._ushering is None:
            self._ushering = contextvars.Context().run(self._loop.create_task, self._let_go())

    async def _let_go(self) -> None:
        while (line := self._due_line()) is not None:
            pause = self._next_at() - self._loop.time()
            if pause > _AT_ONCE:
                await asyncio.sleep(pause)  # and then look again: DLC may have asked for more time
                continue
            self._last_at = self._loop.time()
            self._in_a_row = self._in_a_row + 1 if line is self._stops else 0
            line.let_one_go()
        self._ushering = None

    def _due_line(self) -> _Line | None:
        if self._stops.is_due and not (self._looks.is_due and self._in_a_row >= _STOPS_IN_A_ROW):
            return self._stops
        return self._looks if self._looks.is_due else None

    def _next_at(self) -> float:
        return max(self._last_at + self.rhythm.single_gap(self._loop.time()), self.rhythm.open_at)

    # --- what DLC's answers make of it ------------------------------------------------------------------

    def heed(self, error: PaiDlcError) -> None:
        """Wait as long as an error asks for; slow down if DLC throttles."""
        now = self._loop.time()
        retry_after = getattr(error, "retry_after", None)
        if not isinstance(error, PaiDlcThrottled):
            self.rhythm.wait(now, retry_after)
        elif self.rhythm.throttled(now, retry_after) and not self._slow:
            self._slow = True
            log.warning("Connection %s: DLC asks for fewer calls; asking more slowly. %s", self._name, error)

    def say_if_recovered(self) -> None:
        """Log that the pace is full again, once."""
        if self._slow and self.rhythm.share(self._loop.time()) >= 1.0:
            self._slow = False
            log.info("Connection %s: asking DLC at full pace again", self._name)
