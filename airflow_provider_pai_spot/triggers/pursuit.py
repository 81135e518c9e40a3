"""How the triggerer answers what following a job asks: from the watcher's lists, by single calls where it matters."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from airflow_provider_pai_spot.attempts.commands import (
    Command,
    Do,
    Following,
    Look,
    Missed,
    Pause,
    ReadEvents,
    ReadPodEvents,
    Stop,
    Wait,
)
from airflow_provider_pai_spot.attempts.drive import answer
from airflow_provider_pai_spot.attempts.limits import WaitLimits, breached
from airflow_provider_pai_spot.clock import Clock
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import JobOutcome
from airflow_provider_pai_spot.dlc.status import has_machines, is_decided
from airflow_provider_pai_spot.exceptions import PaiDlcError, PaiDlcThrottled, PaiDlcUnavailable
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.triggers.dlc_threads import in_aside_thread, in_dlc_thread
from airflow_provider_pai_spot.triggers.job_news import is_denied, says_enough
from airflow_provider_pai_spot.triggers.job_watcher import News, Seat
from airflow_provider_pai_spot.triggers.pace import Pace
from airflow_provider_pai_spot.triggers.watchers import pace_of, watcher_for

_JITTER = (1.0, 1.2)
_MAY_PASS = (PaiDlcThrottled, PaiDlcUnavailable)
_EVENT_PAUSES = (2.0, 5.0, 10.0, 20.0, 30.0, 50.0)
"""Seconds between two readings of the events of a job that is over: two minutes in all."""


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
        pods_needed: Callable[[str], bool] = has_machines,
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
        self._is_over = False
        self._heard = clock.now()
        self._alone_failing_since: datetime | None = None
        self._pace: Pace | None = None
        self._home: PaiDlcHook | None = None
        self._workspace: str | None = None
        """Where the job turned out to be, '' if it cannot be listed there; None while that is not known."""

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
                return self._noted(await self._look(command, self._seat))
            case Look() | Stop():
                return self._noted(await self._singly(command))
            case ReadEvents() | ReadPodEvents() if self._is_over:
                call = self._last_words(command)
            case _:
                call = in_dlc_thread(answer, command, self._hook)
        return await call

    async def _singly(self, command: Look | Stop) -> Any:
        """Carry out a stop, from which on the job is looked at every few seconds, and in no list."""
        if self._pace is None:
            self._pace = pace_of(self._hook)
            self._leave()
        call = partial(answer, command, self._hook)
        return await (self._pace.stop(call) if isinstance(command, Stop) else self._pace.ask(call))

    def _noted(self, found: Any) -> Any:
        self._is_over = isinstance(found, Mapping) and is_decided(str(found.get("Status")))
        return found

    async def _last_words(self, command: ReadEvents | ReadPodEvents) -> Any:
        """Read the events of a job that is over: they may be all that tells a loss from a failure, so ask again."""
        ask = partial(answer, command, self._hook)
        for pause in (*_EVENT_PAUSES, None):
            found = await pace_of(self._hook).ask(ask)
            if pause is None or not isinstance(found, _MAY_PASS):
                break
            await self._clock.asleep(pause * random.uniform(*_JITTER))  # noqa: S311 - spreads the calls of many triggers
        return found

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
        if news.error is not None and await self._changes_seat(news, news.error):
            return await self._look(look, self._sit_down())
        self._acted_on = news.version
        # The list does not show the job, or calls it over: if GetJob sees that otherwise, no change will be told.
        self._restless = news.error is None and (news.item is None or is_decided(str(news.item.get("Status"))))
        if news.error is not None:
            return await self._look_in_trouble(look, seat, news.error)
        known = self._known(news)
        if self._restless or known is None or not self._is_enough(known):
            return await self._look_singly(look, seat)
        self._alone_failing_since = None
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

    async def _look_in_trouble(self, look: Look, seat: Seat, error: PaiDlcError) -> Any:
        """
        Lists with this job fail; read it singly where that must not be waited out.

        While DLC throttles it is asked slowly, and a job's turn may come after half an hour: DLC is there as long as
        it answers anybody. A job that it does not tell about singly either is not waited for any longer.
        """
        own = self._last_good(seat.news)
        answered = self._last_answer(seat) if isinstance(error, _MAY_PASS) else own
        if not self._cannot_wait(seat, own, answered, error):
            return Missed(_about_lists(error), answered)
        self._restless = True
        found = await self._ask_alone(look, seat)
        failing_since = self._alone_failing_since
        return found if failing_since is None else Missed(_about_lists(error), min(answered, max(own, failing_since)))

    def _cannot_wait(self, seat: Seat, own: datetime, answered: datetime, error: PaiDlcError) -> bool:
        """
        Whether a limit may have passed, or lists with this job fail for too long.

        Its id may be why, as others are answered, or the workspace that it was followed to.
        """
        item = seat.news.item
        if item is not None and breached(Job(item), self._limits, self._clock.now()):
            return True
        others_are_answered = answered > own or self._home is not None
        return isinstance(error, PaiDlcUnavailable) and others_are_answered and self._is_over_tolerance(own)

    async def _look_singly(self, look: Look, seat: Seat) -> Any:
        """Read the job singly; where that fails for too long while lists are good, what they say must do."""
        news = seat.news
        found = await self._ask_alone(look, seat)
        if isinstance(found, PaiDlcError) and is_denied(found) and await self._moved(news):
            return await self._look(look, self._sit_down())
        failing_since = self._alone_failing_since
        if failing_since is None:
            if news.item is None and news.error is None:
                self._go_to_workspace_of(found)
            return found
        if news.item is not None and news.error is None and self._is_over_tolerance(failing_since):
            return news.item
        return Missed(found, failing_since)

    async def _ask_alone(self, look: Look, seat: Seat) -> Any:
        version = seat.news.version
        found = await seat.watcher.pace.ask(partial(answer, look, self._hook))
        if isinstance(found, Exception):
            self._restless = True
            self._alone_failing_since = self._alone_failing_since or self._clock.now()
        else:
            self._alone_failing_since = None
            self._read = _Read(version, found, self._clock.now())
        return found

    # --- how long ago something good was heard ----------------------------------------------------------

    def _last_good(self, news: News) -> datetime:
        """Return when a good list came last, also by way of the credentials that the connection had before."""
        return self._heard if news.seen_at is None else max(self._heard, self._moment(news.seen_at))

    def _last_answer(self, seat: Seat) -> datetime:
        """Return when the connection's last list was answered, whichever jobs it was about."""
        own, answered_at = self._last_good(seat.news), seat.watcher.answered_at
        return own if answered_at is None else max(own, self._moment(answered_at))

    def _moment(self, loop_time: float) -> datetime:
        return self._clock.now() - timedelta(seconds=asyncio.get_running_loop().time() - loop_time)

    def _is_over_tolerance(self, since: datetime) -> bool:
        return (self._clock.now() - since).total_seconds() >= self._limits.poll_error_tolerance

    # --- seats ------------------------------------------------------------------------------------------

    def _sit_down(self) -> Seat:
        self._seat = watcher_for(self._hook).sit_down(self._job_id, self._poll_interval)
        self._acted_on, self._read, self._alone_failing_since = 0, None, None
        return self._seat

    def _leave(self) -> None:
        if self._seat is not None:
            self._seat.leave()
            self._seat = None

    def _go_to_workspace_of(self, found: Mapping[str, Any]) -> None:
        """Sit where lists show the job: GetJob tells of any workspace's, ListJobs of those of one."""
        workspace = str(found.get("WorkspaceId") or "")
        if self._workspace is not None or workspace in ("", self._hook.workspace_id):
            return
        self._workspace, self._home, self._heard = workspace, self._hook, self._clock.now()
        self._leave()
        self._hook = self._hook.in_workspace(workspace)
        self._sit_down()

    async def _changes_seat(self, news: News, error: PaiDlcError) -> bool:
        """Whether to ask by another way from now on: with other credentials, or at home again."""
        if is_denied(error) and await self._moved(news):
            return True
        may_pass = isinstance(error, PaiDlcThrottled) or (isinstance(error, PaiDlcUnavailable) and news.seen_at)
        return not may_pass and self._went_home()

    def _went_home(self) -> bool:
        """Whether the job was looked for in a workspace whose jobs cannot be listed; it is not again."""
        if self._home is None:
            return False
        self._leave()
        self._hook, self._home, self._workspace = self._home, None, ""
        return True

    async def _moved(self, news: News) -> bool:
        """Whether the connection has other credentials by now; they are used from now on, and may be wrong as well."""
        try:
            hook = await self._renew()
        except Exception:  # noqa: BLE001 - why DLC refuses is told; that Airflow does not answer either is no news
            return False
        home = hook if self._workspace else None
        if self._workspace:
            hook = hook.in_workspace(self._workspace)
        if hook.fingerprint == self._hook.fingerprint:
            return False
        self._home = home
        self._heard = self._last_good(news)
        self._leave()
        self._hook = hook
        return True


def _about_lists(error: PaiDlcError) -> PaiDlcError:
    """Return the error of a list without what would be understood as said of one job: a 404 means that it is gone."""
    if error.status_code != 404:  # noqa: PLR2004 - HTTP's own number
        return error
    return PaiDlcUnavailable(str(error), code=error.code, request_id=error.request_id)
