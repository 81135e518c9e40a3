"""How the triggerer answers what following a job asks: from the watcher's lists, by single calls where it matters."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from airflow_provider_pai_spot.attempts.commands import Command, Do, Following, Look, Missed, Pause, Stop, Wait
from airflow_provider_pai_spot.attempts.drive import answer
from airflow_provider_pai_spot.attempts.limits import WaitLimits
from airflow_provider_pai_spot.clock import Clock
from airflow_provider_pai_spot.dlc.outcome import JobOutcome
from airflow_provider_pai_spot.dlc.status import JobStatus, is_decided
from airflow_provider_pai_spot.exceptions import PaiDlcError, PaiDlcUnavailable
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.triggers.dlc_threads import in_aside_thread, in_dlc_thread
from airflow_provider_pai_spot.triggers.job_news import is_denied, says_enough
from airflow_provider_pai_spot.triggers.job_watcher import News, Seat
from airflow_provider_pai_spot.triggers.watchers import watcher_for

_JITTER = (1.0, 1.2)
_HAS_MACHINES = (JobStatus.ENV_PREPARING, JobStatus.SANITY_CHECKING)


def prepares_machines(status: str) -> bool:
    """Whether a job has its machines and prepares them; what it then waits for shows in the events of its pods."""
    return status in _HAS_MACHINES


class _Read(NamedTuple):
    """What GetJob told of a job, when the list was at this version."""

    version: int
    item: Mapping[str, Any]
    at: datetime


class Pursuit:
    """
    One job on its way to its end.

    :param renew: reads the connection again and returns its hook.
    :param limits: what ends the waiting; a limit is believed only after a fresh look.
    :param pods_needed: whether somebody looks at the pods of a job with this status; a list may not show them.
    """

    def __init__(
        self,
        job_id: str,
        *,
        hook: PaiDlcHook,
        renew: Callable[[], Awaitable[PaiDlcHook]],
        limits: WaitLimits,
        poll_interval: float,
        clock: Clock,
        pods_needed: Callable[[str], bool] = prepares_machines,
    ) -> None:
        self._job_id = job_id
        self._hook = hook
        self._renew = renew
        self._limits = limits
        self._poll_interval = poll_interval
        self._clock = clock
        self._pods_needed = pods_needed
        self._seat: Seat | None = None
        self._acted_on = 0
        self._read: _Read | None = None
        self._restless = False
        self._heard: datetime | None = None
        self._stopped = False

    async def to_the_end(self, following: Following) -> JobOutcome:
        """Answer until the job's end is known."""
        self._sit_down()
        try:
            reply: Any = None
            while True:
                try:
                    command = following.send(reply)
                except StopIteration as end:
                    outcome: JobOutcome = end.value
                    return outcome
                reply = await self._answer(command)
        finally:
            self._leave()

    async def _answer(self, command: Command) -> Any:
        match command:
            case Wait():
                return await self._wait(command)
            case Pause(seconds):
                return await self._clock.asleep(seconds)
            case Do():
                return await in_aside_thread(answer, command, self._hook)
            case Look() if self._seat is not None:
                return await self._look(command, self._seat)
            case Stop():
                self._leave()  # from now on the job is looked at every few seconds, singly
        return await in_dlc_thread(answer, command, self._hook)

    # --- waiting ----------------------------------------------------------------------------------------

    async def _wait(self, wait: Wait) -> None:
        in_a_while = wait.seconds * random.uniform(*_JITTER)  # noqa: S311 - spreads the calls of many triggers
        if self._seat is None:
            await self._clock.asleep(in_a_while)
        else:
            longest = float("inf") if wait.longest is None else wait.longest
            until = min(longest, in_a_while) if self._restless else longest
            await self._seat.change(self._acted_on, None if until == float("inf") else until)

    # --- looking ----------------------------------------------------------------------------------------

    async def _look(self, look: Look, seat: Seat) -> Any:
        news = await seat.first_news()
        if news.error is not None and is_denied(news.error) and await self._moved(news):
            return await self._look(look, self._sit_down())
        self._acted_on = news.version
        # The list does not show the job, or calls it over: if GetJob sees that otherwise, no change will be told.
        self._restless = news.error is None and (news.item is None or is_decided(str(news.item.get("Status"))))
        if news.error is not None:
            return Missed(_about_lists(news.error), self._last_good(news))
        known = self._known(news)
        if self._restless or known is None or not self._is_enough(known):
            return await self._look_singly(look, seat, news)
        return known

    def _known(self, news: News) -> Mapping[str, Any] | None:
        """Return the newest item; what GetJob told serves as long as the list tells of no change."""
        read, item = self._read, news.item
        if read is None or read.version != news.version or item is None:
            return item
        pods_change_unseen = "Pods" not in item and self._pods_needed(str(item.get("Status")))
        is_old = (self._clock.now() - read.at).total_seconds() >= self._poll_interval
        return item if pods_change_unseen and is_old else read.item

    def _is_enough(self, item: Mapping[str, Any]) -> bool:
        pods_needed = self._pods_needed(str(item.get("Status")))
        return says_enough(item, self._limits, self._clock.now(), pods_needed=pods_needed)

    async def _look_singly(self, look: Look, seat: Seat, news: News) -> Any:
        version = news.version
        found = await seat.watcher.pace.ask(partial(answer, look, self._hook))
        if isinstance(found, PaiDlcError) and is_denied(found) and await self._moved(news):
            return await self._look(look, self._sit_down())
        if isinstance(found, Exception):
            self._restless = True
            return Missed(found, self._last_good(news))
        self._read = _Read(version, found, self._clock.now())
        return found

    def _last_good(self, news: News) -> datetime | None:
        """Return when a good list came last, also by way of the credentials that the connection had before."""
        seen = () if news.seen_at is None else (self._moment(news.seen_at),)
        heard = () if self._heard is None else (self._heard,)
        return max((*seen, *heard), default=None)

    def _moment(self, loop_time: float) -> datetime:
        return self._clock.now() - timedelta(seconds=asyncio.get_running_loop().time() - loop_time)

    # --- seats ------------------------------------------------------------------------------------------

    def _sit_down(self) -> Seat:
        self._seat = watcher_for(self._hook).sit_down(self._job_id, self._poll_interval)
        self._acted_on, self._read = 0, None
        return self._seat

    def _leave(self) -> None:
        if self._seat is not None:
            self._seat.leave()
            self._seat = None

    async def _moved(self, news: News) -> bool:
        """Whether the connection has other credentials by now; they are used from now on, and may be wrong as well."""
        try:
            hook = await self._renew()
        except Exception:  # noqa: BLE001 - why DLC refuses is told; that Airflow does not answer either is no news
            return False
        if hook.fingerprint == self._hook.fingerprint:
            return False
        self._heard = self._last_good(news)
        self._leave()
        self._hook = hook
        return True


def _about_lists(error: PaiDlcError) -> PaiDlcError:
    """Return the error of a list without what would be understood as said of one job: a 404 means that it is gone."""
    if error.status_code != 404:  # noqa: PLR2004 - HTTP's own number
        return error
    return PaiDlcUnavailable(str(error), code=error.code, request_id=error.request_id)
