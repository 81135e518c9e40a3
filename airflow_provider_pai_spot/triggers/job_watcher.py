"""
One poller for all jobs that an event loop waits for with one connection: ListJobs by ids, in batches, in a thread.

A task for each job would ask DLC once per job and period. Here the triggers take a seat each and are woken when
something happened to their job. The poller runs in an empty context: it must not write into the log of the trigger
that happened to be first, nor end with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_pai_spot.clock import SYSTEM_CLOCK, Clock
from airflow_provider_pai_spot.dlc.wire import time_of
from airflow_provider_pai_spot.exceptions import PaiDlcError, PaiDlcThrottled, PaiDlcUnavailable
from airflow_provider_pai_spot.triggers.dlc_threads import LONGEST_CALL, in_watch_thread, within
from airflow_provider_pai_spot.triggers.job_news import is_denied, is_too_large, is_usable, signature, slim
from airflow_provider_pai_spot.triggers.pace import InThread, Pace
from airflow_provider_pai_spot.triggers.rounds import Rounds, Turn

log = logging.getLogger(__name__)

ReadJobs = Callable[[Sequence[str]], Sequence[Any]]

_IN_FLIGHT = 2
_TOLD_AFTER = 3.0
"""Periods without a good look after which a job's waiters are told, so that they can say so in their logs."""
_YOUNG_FOR = 120.0
"""Seconds from GmtCreateTime in which a job is looked at twice as often: what fails at once is known at once."""


@dataclass(slots=True, eq=False)
class News:
    """
    What is known of one job.

    :param version: counts what happened: a change of its item, trouble that began or ended.
    :param item: its newest list item, None if the list does not show it.
    :param error: why nothing good was heard lately.
    :param seen_at: the loop's time of the last list that was answered.
    """

    turn: Turn
    version: int = 0
    item: Mapping[str, Any] | None = None
    error: PaiDlcError | None = None
    seen_at: float | None = None
    mark: Hashable = None
    seats: set[Seat] = field(default_factory=set)

    def tell(self) -> None:
        """Count one more thing that happened, and wake whoever waits for it."""
        self.version += 1
        for seat in self.seats:
            seat.wake()


class Sleeper:
    """A sleep that somebody else may end."""

    __slots__ = ("_until",)

    def __init__(self) -> None:
        self._until: asyncio.Future[None] | None = None

    async def sleep(self, seconds: float | None) -> None:
        """Sleep until woken, or for `seconds`."""
        loop = asyncio.get_running_loop()
        self._until = loop.create_future()
        alarm = None if seconds is None else loop.call_later(seconds, self.wake)
        try:
            await self._until
        finally:
            self._until = None
            if alarm is not None:
                alarm.cancel()

    def wake(self) -> None:
        """End the sleep, if there is one."""
        if self._until is not None and not self._until.done():
            self._until.set_result(None)


class Seat(Sleeper):
    """One trigger's place at the watcher; give it back with `leave`."""

    __slots__ = ("_watcher", "news")

    def __init__(self, watcher: JobWatcher, news: News) -> None:
        super().__init__()
        self._watcher = watcher
        self.news = news

    @property
    def watcher(self) -> JobWatcher:
        """The watcher it is a seat of."""
        return self._watcher

    async def first_news(self) -> News:
        """Return what is known of the job, waiting for the first look at it."""
        while self.news.version == 0:
            await self.sleep(None)
        return self.news

    async def change(self, since: int, timeout: float | None) -> bool:  # noqa: ASYNC109 - its end is no error
        """Wait until more than `since` happened, or for `timeout` seconds; return whether something happened."""
        if self.news.version == since:
            await self.sleep(timeout)
        return self.news.version != since

    def leave(self) -> None:
        """Give the seat back; the last one to leave ends the watcher."""
        self._watcher.vacate(self)


class JobWatcher:
    """
    Looks at the jobs of one connection for all who have a seat.

    :param read: lists the jobs of these ids, with one request; called in a thread.
    :param batch_size: ids in one list at most.
    :param name: of the connection, for the log.
    :param in_thread: runs a blocking list.
    :param pace: of the connection's calls; one of its own, in the same threads, if None.
    :param clock: what a job's age is told by.
    :param on_empty: called when the last seat was given back.
    """

    def __init__(
        self,
        read: ReadJobs,
        *,
        batch_size: int,
        name: str = "",
        in_thread: InThread = in_watch_thread,
        pace: Pace | None = None,
        clock: Clock = SYSTEM_CLOCK,
        on_empty: Callable[[], None] = lambda: None,
    ) -> None:
        self._read = read
        self._name = name
        self._in_thread = in_thread
        self._clock = clock
        self._on_empty = on_empty
        self._loop = asyncio.get_running_loop()
        self.pace = pace or Pace(name, in_thread=in_thread, in_stop_thread=in_thread)
        """Of all calls of the connection; whoever asks for one job asks by it."""
        self._rounds = Rounds(batch_size, self.pace.rhythm)
        self._jobs: dict[str, News] = {}
        self._sleeper = Sleeper()
        self._looks: set[asyncio.Task[None]] = set()
        self._polling: asyncio.Task[None] | None = None
        self.answered_at: float | None = None
        """The loop's time of the last list that was answered, whichever jobs it was about."""

    # --- seats ------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def seat(self, job_id: str, period: float) -> Iterator[Seat]:
        """Take a seat for as long as the block runs."""
        seat = self.sit_down(job_id, period)
        try:
            yield seat
        finally:
            seat.leave()

    def sit_down(self, job_id: str, period: float) -> Seat:
        """
        Take a seat.

        :param period: seconds between two looks at the job; the shortest one wished for counts.
        """
        now = self._loop.time()
        news = self._jobs.get(job_id)
        if news is None:
            news = self._jobs[job_id] = News(self._rounds.enter(job_id, period, now))
        else:
            self._rounds.quicken(news.turn, period, now)
        seat = Seat(self, news)
        news.seats.add(seat)
        if self._polling is None:
            self._polling = self._in_empty_context(self._poll())
        self._sleeper.wake()
        return seat

    def vacate(self, seat: Seat) -> None:
        """Take a seat back; harmless the second time."""
        news = seat.news
        news.seats.discard(seat)
        if news.seats or self._jobs.get(news.turn.job_id) is not news:
            return
        del self._jobs[news.turn.job_id]
        self._rounds.leave(news.turn)
        if not self._jobs:
            self._close()

    # --- the poller -------------------------------------------------------------------------------------

    async def _poll(self) -> None:
        while True:
            await self._sleeper.sleep(self._send_what_is_due())

    def _send_what_is_due(self) -> float | None:
        """Send one batch after the other; return the seconds until the next, None if something must happen first."""
        while len(self._looks) < (1 if self._rounds.vain_probes else _IN_FLIGHT):
            now = self._loop.time()
            due = self._rounds.next_at(now)
            if due is None:
                break
            if due > now:
                self.pace.say_if_recovered()
                return min(due, self._rounds.may_change_at(now)) - now
            self._send(self._rounds.take(now))
        return None

    def _send(self, batch: list[Turn]) -> None:
        task = self._in_empty_context(self._look(batch))
        self._looks.add(task)
        task.add_done_callback(self._looked)

    def _looked(self, task: asyncio.Task[None]) -> None:
        self._looks.discard(task)
        self._sleeper.wake()

    async def _look(self, batch: list[Turn]) -> None:
        try:
            job_ids = [turn.job_id for turn in batch]
            self._answered(batch, await within(LONGEST_CALL, self._in_thread, self._read, job_ids))
        except PaiDlcError as error:
            self._failed(batch, error)
        except TimeoutError:
            self._failed(batch, PaiDlcUnavailable(f"ListJobs was not answered within {LONGEST_CALL:.0f} s."))
        except Exception as error:
            log.exception("Connection %s: a list of jobs could not be read", self._name)
            self._failed(batch, PaiDlcError(f"ListJobs could not be read ({type(error).__name__})."))

    def _answered(self, batch: list[Turn], items: Sequence[Any]) -> None:
        self.answered_at = now = self._loop.time()
        shown = {item["JobId"]: item for item in items if is_usable(item)}
        for turn in batch:
            news = self._jobs.get(turn.job_id)
            if news is not None and news.turn is turn:
                self._take_item(news, shown.get(turn.job_id), now)
        self._rounds.answered(batch, now)

    def _take_item(self, news: News, item: Mapping[str, Any] | None, now: float) -> None:
        """Note what a list shows of a job, or that it does not show it."""
        mark = None if item is None else signature(item)
        changed = news.version == 0 or news.error is not None or mark != news.mark
        if news.mark is None and item is not None:
            news.turn.young_until = now + self._young_seconds(item)
        news.error, news.seen_at, news.mark = None, now, mark
        if changed:
            news.item = None if item is None else slim(item)
            news.tell()

    def _young_seconds(self, item: Mapping[str, Any]) -> float:
        created = time_of(item.get("GmtCreateTime"))
        return 0.0 if created is None else _YOUNG_FOR - (self._clock.now() - created).total_seconds()

    def _failed(self, batch: list[Turn], error: PaiDlcError) -> None:
        now = self._loop.time()
        self.pace.heed(error)
        denied = is_denied(error)
        everywhere = not denied and not is_too_large(error) and not isinstance(error, PaiDlcThrottled)
        if is_too_large(error):
            self._rounds.refused(batch, now)
        elif everywhere and self._rounds.left_alone(batch, now):
            everywhere = False
        else:
            self._rounds.failed(batch, now, hopeless=denied, everywhere=everywhere)
        for news in self._concerned(batch, everywhere=everywhere):
            _take_error(news, error, now, again=everywhere and self._rounds.vain_probes > 1)

    def _concerned(self, batch: list[Turn], *, everywhere: bool) -> list[News]:
        """Return who hears nothing because a list failed: its jobs, or all that wait until lists are answered again."""
        asked = [news for turn in batch if (news := self._jobs.get(turn.job_id)) is not None and news.turn is turn]
        if not everywhere:
            return asked
        mine = set(batch)
        return asked + [news for news in self._jobs.values() if not news.turn.alone and news.turn not in mine]

    def _in_empty_context(self, work: Any) -> asyncio.Task[None]:
        return contextvars.Context().run(self._loop.create_task, work)

    def _close(self) -> None:
        for task in (self._polling, *self._looks):
            if task is not None:
                task.cancel()
        self._polling = None
        self._on_empty()


def _take_error(news: News, error: PaiDlcError, now: float, *, again: bool) -> None:
    """
    Note that nothing was heard of a job; its waiters are told when that lasts, or will not pass by itself.

    :param again: whether it is not the first list in a row.
    """
    turn = news.turn
    if turn.alone and not is_denied(error) and not isinstance(error, PaiDlcThrottled):
        news.error, news.item = None, None  # a list of this id and no other cannot be had: it is asked for singly
        news.tell()
        return
    lasts = (again or turn.failures > 1) and (news.seen_at is None or now - news.seen_at >= _TOLD_AFTER * turn.period)
    if news.error is None and (is_denied(error) or lasts):
        news.error = error
        news.tell()
    elif news.error is not None:
        news.error = error
