"""One poller for many: what it asks, whom it wakes, what trouble it tells, and that nothing of it stays behind."""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from scripted_dlc import ScriptedDlc, ids, raising
from virtual_time import LoopClock, at_once, in_virtual_time

from airflow_provider_pai_spot.exceptions import (
    PaiDlcCredentialsError,
    PaiDlcError,
    PaiDlcRefused,
    PaiDlcThrottled,
    PaiDlcUnavailable,
)
from airflow_provider_pai_spot.triggers.job_watcher import JobWatcher, Seat

PERIOD = 30.0
UNAVAILABLE = PaiDlcUnavailable("ListJobs: HTTP 503", status_code=503)
FORBIDDEN = PaiDlcRefused("ListJobs: HTTP 403 Forbidden", code="Forbidden", status_code=403)


@asynccontextmanager
async def watching(dlc: ScriptedDlc, **options: Any) -> AsyncIterator[JobWatcher]:
    """Yield a watcher of `dlc` on the running loop; whatever it started is over at the end."""
    dlc.time = asyncio.get_running_loop().time
    read = options.pop("read", dlc.list_page)
    yield JobWatcher(read, **{"batch_size": 100, "in_thread": at_once, "clock": LoopClock(), **options})
    await asyncio.sleep(0.01)
    assert asyncio.all_tasks() == {asyncio.current_task()}


def seats_of(watcher: JobWatcher, job_ids: Sequence[str], period: float = PERIOD) -> list[Seat]:
    return [watcher.sit_down(job_id, period) for job_id in job_ids]


def leave(seats: Sequence[Seat]) -> None:
    for seat in seats:
        seat.leave()


def test_a_thousand_jobs_cost_ten_lists_at_once_and_ten_a_period() -> None:
    async def story() -> None:
        dlc = ScriptedDlc()
        async with watching(dlc) as watcher:
            seats = seats_of(watcher, dlc.add(ids(1000)))
            await asyncio.gather(*(seat.first_news() for seat in seats))
            assert len(dlc.lists) == 10
            assert asyncio.get_running_loop().time() <= 3.0
            await asyncio.sleep(3600.0)
            assert 1150 <= dlc.calls_between(60.0, 3600.0) <= 1300
            leave(seats)
        assert dlc.singles == []

    in_virtual_time(story())


def test_a_change_wakes_who_waits_for_that_job_and_nobody_else() -> None:
    async def story() -> None:
        dlc = ScriptedDlc()
        async with watching(dlc) as watcher:
            quiet, moving = seats_of(watcher, dlc.add(ids(2)))
            before = [(await seat.first_news()).version for seat in (quiet, moving)]
            asyncio.get_running_loop().call_later(300.0, dlc.put, ids(2)[1], "Running")
            assert await moving.change(before[1], None)
            assert asyncio.get_running_loop().time() <= 300.0 + 1.1 * PERIOD
            assert moving.news.item is not None
            assert moving.news.item["Status"] == "Running"
            assert not await quiet.change(before[0], 600.0)
            leave([quiet, moving])

    in_virtual_time(story())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"Status": "Running"}, True),
        ({"SubStatus": "Restarting"}, True),
        ({"ReasonCode": "JobDequeued"}, True),
        ({"ReasonMessage": {"odd": "shape"}}, True),
        ({"RestartTimes": "1"}, True),
        ({"Pods": [{"PodId": "p", "Status": "Running"}]}, True),
        ({"Duration": 4711, "GmtModifiedTime": "2026-11-30T13:00:00Z"}, False),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_only_what_somebody_waits_for_is_a_change(change: dict[str, Any], told: bool) -> None:
    async def story() -> None:
        dlc = ScriptedDlc()
        async with watching(dlc) as watcher:
            [seat] = seats_of(watcher, dlc.add(ids(1)))
            version = (await seat.first_news()).version
            dlc.jobs[ids(1)[0]] |= change
            assert await seat.change(version, 3 * PERIOD) is told
            leave([seat])

    in_virtual_time(story())


def test_two_who_wait_for_one_job_share_its_look_and_the_shorter_interval_counts() -> None:
    async def story() -> None:
        dlc = ScriptedDlc()
        async with watching(dlc) as watcher:
            [job] = dlc.add(ids(1))
            patient, hasty = watcher.sit_down(job, 300.0), watcher.sit_down(job, 10.0)
            version = (await patient.first_news()).version
            dlc.put(job, "Running")
            both = await asyncio.gather(patient.change(version, 20.0), hasty.change(version, 20.0))
            assert both == [True, True]
            patient.leave()
            patient.leave()  # harmless
            dlc.put(job, "Stopping")
            assert await hasty.change(hasty.news.version, 20.0)
            hasty.leave()
        assert all(batch == [job] for _, batch in dlc.lists)

    in_virtual_time(story())


def test_a_waiter_that_is_cancelled_ends_neither_the_watcher_nor_others() -> None:
    async def story() -> None:
        dlc = ScriptedDlc()

        async def wait(job: str) -> str:
            with watcher.seat(job, PERIOD) as seat:
                await seat.change((await seat.first_news()).version, None)
                return str(seat.news.item and seat.news.item["Status"])

        async with watching(dlc) as watcher:
            jobs = dlc.add(ids(3))
            first, *others = [asyncio.create_task(wait(job)) for job in jobs]
            await asyncio.sleep(100.0)
            first.cancel()
            await asyncio.sleep(100.0)
            for job in jobs:
                dlc.put(job, "Running")
            assert await asyncio.gather(*others) == ["Running", "Running"]
            assert first.cancelled()
        assert not any(jobs[0] in batch for at, batch in dlc.lists if at > 101.0)

    in_virtual_time(story())


def test_a_list_that_leaves_out_a_job_or_holds_nonsense_tells_of_the_others() -> None:
    async def story() -> None:
        dlc = ScriptedDlc()
        gone, odd, fine = dlc.add(ids(3))

        def read(job_ids: Sequence[str]) -> list[Any]:
            items = {item["JobId"]: item for item in dlc.list_page(job_ids)}
            return [None, 7, {"JobId": None}, items[odd] | {"Status": {"is": "no text"}}, items[fine]]

        async with watching(dlc, read=read) as watcher:
            seats = seats_of(watcher, [gone, odd, fine])
            shown = [(await seat.first_news()).item is not None for seat in seats]
            assert shown == [False, False, True]
            assert [seat.news.error for seat in seats] == [None, None, None]
            leave(seats)

    in_virtual_time(story())


def test_a_failing_list_that_passes_soon_is_told_to_nobody() -> None:
    async def story() -> None:
        dlc = ScriptedDlc()
        async with watching(dlc) as watcher:
            seats = seats_of(watcher, dlc.add(ids(250)))
            versions = [(await seat.first_news()).version for seat in seats]
            dlc.fault = raising(UNAVAILABLE)
            await asyncio.sleep(1.5 * PERIOD)
            dlc.fault = lambda _operation, _ids: None
            await asyncio.sleep(10 * PERIOD)
            assert [seat.news.version for seat in seats] == versions
            leave(seats)

    in_virtual_time(story())


def test_trouble_that_lasts_is_told_when_it_begins_and_when_it_ends() -> None:
    async def story() -> None:
        dlc = ScriptedDlc()
        async with watching(dlc) as watcher:
            [seat] = seats_of(watcher, dlc.add(ids(1)))
            version = (await seat.first_news()).version
            began = asyncio.get_running_loop().time()
            dlc.fault = raising(UNAVAILABLE)
            assert await seat.change(version, None)
            assert 2 * PERIOD <= asyncio.get_running_loop().time() - began <= 5 * PERIOD
            assert seat.news.error is UNAVAILABLE
            assert seat.news.seen_at is not None
            assert seat.news.seen_at <= began
            assert not await seat.change(seat.news.version, 10 * PERIOD)
            dlc.fault = lambda _operation, _ids: None
            assert await seat.change(seat.news.version, 1.1 * PERIOD)
            assert seat.news.error is None
            leave([seat])

    in_virtual_time(story())


def test_an_outage_is_found_out_by_one_list_at_a_time_and_told_to_all() -> None:
    async def story() -> None:
        dlc = ScriptedDlc()
        async with watching(dlc) as watcher:
            seats = seats_of(watcher, dlc.add(ids(3000)))
            await asyncio.sleep(10 * PERIOD)
            dlc.fault = raising(UNAVAILABLE)
            await asyncio.sleep(10 * PERIOD)
            assert all(seat.news.error is UNAVAILABLE for seat in seats)
            calls = [dlc.calls_between(start * PERIOD, (start + 1) * PERIOD) for start in range(9, 20)]
            assert 29 <= calls[0] <= 32
            assert max(calls[1:]) <= calls[0]
            [late] = seats_of(watcher, dlc.add(ids(1, start=5000)))
            assert (await asyncio.wait_for(late.first_news(), 1.1 * PERIOD)).error is UNAVAILABLE
            dlc.fault = lambda _operation, _ids: None
            await asyncio.sleep(2 * PERIOD)
            assert all(seat.news.error is None and seat.news.item for seat in [*seats, late])
            leave([*seats, late])

    in_virtual_time(story())


@pytest.mark.parametrize(
    "error",
    [
        FORBIDDEN,
        PaiDlcRefused("no such key", code="InvalidAccessKeyId.NotFound", status_code=404),
        PaiDlcRefused("unauthorized", status_code=401),
        PaiDlcCredentialsError("no credentials"),
    ],
    ids=["forbidden", "revoked key", "unauthorized", "no credentials"],
)
def test_credentials_that_are_refused_are_told_to_all_at_once_and_asked_with_once_a_period(error: PaiDlcError) -> None:
    async def story() -> None:
        dlc = ScriptedDlc()
        async with watching(dlc) as watcher:
            seats = seats_of(watcher, dlc.add(ids(300)))
            await asyncio.gather(*(seat.first_news() for seat in seats))
            dlc.fault, began = raising(error), asyncio.get_running_loop().time()
            await asyncio.gather(*(seat.change(seat.news.version, None) for seat in seats))
            assert asyncio.get_running_loop().time() - began <= 1.1 * PERIOD
            assert all(seat.news.error is error for seat in seats)
            calls = len(dlc.lists)
            await asyncio.sleep(10 * PERIOD)
            assert len(dlc.lists) - calls <= 10 * 5
            leave(seats)

    in_virtual_time(story())


def test_who_comes_during_an_outage_is_told_after_a_second_try() -> None:
    async def story() -> None:
        dlc = ScriptedDlc(fault=raising(UNAVAILABLE))
        async with watching(dlc) as watcher:
            [seat] = seats_of(watcher, dlc.add(ids(1)))
            assert (await seat.first_news()).error is UNAVAILABLE
            assert len(dlc.lists) == 2
            assert asyncio.get_running_loop().time() <= 5.0
            leave([seat])

    in_virtual_time(story())


def test_an_id_that_dlc_refuses_in_every_list_is_told_as_not_shown() -> None:
    async def story() -> None:
        dlc = ScriptedDlc()
        jobs = dlc.add(ids(100))

        def refuse(_operation: str, job_ids: Sequence[str]) -> None:
            if jobs[33] in job_ids:
                raise PaiDlcRefused("HTTP 400", code="InvalidParameter", status_code=400)

        dlc.fault = refuse
        async with watching(dlc) as watcher:
            seats = seats_of(watcher, jobs)
            news = await asyncio.gather(*(seat.first_news() for seat in seats))
            assert [one.turn.job_id for one in news if one.item is None] == [jobs[33]]
            assert all(one.error is None for one in news)
            leave(seats)

    in_virtual_time(story())


def test_an_id_that_dlc_fails_on_lets_its_neighbours_be_heard_of() -> None:
    """All of them were in its list, and no other list tells that DLC is there."""

    async def story() -> None:
        dlc = ScriptedDlc()
        async with watching(dlc) as watcher:
            jobs = dlc.add(ids(60))
            seats = seats_of(watcher, jobs)
            await asyncio.gather(*(seat.first_news() for seat in seats))

            def spoil(_operation: str, asked: Sequence[str]) -> None:
                if jobs[7] in asked:
                    raise PaiDlcUnavailable("HTTP 500", status_code=500)

            dlc.fault = spoil
            await asyncio.sleep(10 * PERIOD)
            spoiled = seats.pop(7)
            assert (spoiled.news.error, spoiled.news.item) == (None, None)  # to be asked for singly
            assert all(seat.news.error is None for seat in seats)
            dlc.put(jobs[3], "Running")
            await asyncio.sleep(1.2 * PERIOD)
            assert seats[3].news.item is not None
            assert seats[3].news.item["Status"] == "Running"
            leave([*seats, spoiled])

    in_virtual_time(story())


def test_a_clock_that_is_off_for_some_minutes_leaves_lists_whole() -> None:
    async def story() -> None:
        dlc = ScriptedDlc()
        async with watching(dlc) as watcher:
            seats = seats_of(watcher, dlc.add(ids(1000)))
            await asyncio.gather(*(seat.first_news() for seat in seats))
            dlc.fault = raising(PaiDlcRefused("clock", code="InvalidTimeStamp.Expired", status_code=400))
            await asyncio.sleep(10 * PERIOD)
            assert all("clock" in str(seat.news.error) for seat in seats)
            dlc.fault = lambda _operation, _ids: None
            await asyncio.sleep(2 * PERIOD)
            assert all(seat.news.error is None and seat.news.item for seat in seats)
            dlc.lists.clear()
            await asyncio.sleep(2 * PERIOD)
            assert {len(batch) for _, batch in dlc.lists} == {100}
            leave(seats)

    in_virtual_time(story())


@pytest.mark.parametrize(
    "error",
    [
        PaiDlcThrottled("HTTP 429", status_code=429, retry_after=20.0),
        PaiDlcUnavailable("HTTP 503", status_code=503, retry_after=20.0),
    ],
    ids=["throttled", "unavailable"],
)
def test_what_dlc_asks_to_wait_holds_for_every_job_of_the_connection(error: PaiDlcError) -> None:
    async def story() -> None:
        dlc = ScriptedDlc()
        async with watching(dlc) as watcher:
            seats = seats_of(watcher, dlc.add(ids(2000)))
            await asyncio.gather(*(seat.first_news() for seat in seats))
            await asyncio.sleep(100.0)
            struck = asyncio.get_running_loop().time()
            dlc.fault = raising(error)
            await asyncio.sleep(10.0)  # a list is due every 1.5 s
            dlc.fault = lambda _operation, _ids: None
            await asyncio.sleep(30.0)
            struck = next(at for at, _ in dlc.lists if at >= struck)
            assert dlc.calls_between(struck + 0.3, struck + 20.0) == 0
            assert dlc.calls_between(struck + 20.0, struck + 31.0) > 0
            leave(seats)

    in_virtual_time(story())


def test_a_call_that_never_returns_is_given_up_and_told() -> None:
    async def story() -> None:
        dlc = ScriptedDlc()

        async def hang(call: Callable[..., Any], *_: Any) -> Any:
            call()
            await asyncio.Event().wait()

        async with watching(dlc, in_thread=hang) as watcher:
            [seat] = seats_of(watcher, dlc.add(ids(1)))
            error = (await seat.first_news()).error
            assert isinstance(error, PaiDlcUnavailable)
            assert asyncio.get_running_loop().time() <= 130.0
            leave([seat])

    in_virtual_time(story())


def test_a_list_that_waits_for_a_thread_is_not_taken_for_unanswered() -> None:
    async def story() -> None:
        dlc = ScriptedDlc()

        async def crowded(call: Callable[..., Any], *args: Any) -> Any:
            await asyncio.sleep(90.0)
            return call(*args)

        async with watching(dlc, in_thread=crowded) as watcher:
            [seat] = seats_of(watcher, dlc.add(ids(1)))
            assert (await seat.first_news()).error is None
            leave([seat])

    in_virtual_time(story())


def test_a_list_that_no_thread_ever_takes_up_is_told() -> None:
    async def story() -> None:
        async def hang(*_: Any) -> Any:
            await asyncio.Event().wait()

        dlc = ScriptedDlc()
        async with watching(dlc, in_thread=hang) as watcher:
            [seat] = seats_of(watcher, dlc.add(ids(1)))
            assert isinstance((await seat.first_news()).error, PaiDlcUnavailable)
            leave([seat])

    in_virtual_time(story())


def test_a_bug_in_reading_ends_no_watching(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        dlc = ScriptedDlc()

        def read(job_ids: Sequence[str]) -> list[Any]:
            if len(dlc.lists) < 2:
                dlc.lists.append((0.0, list(job_ids)))
                raise ZeroDivisionError
            return dlc.list_page(job_ids)

        async with watching(dlc, read=read) as watcher:
            [seat] = seats_of(watcher, dlc.add(ids(1)))
            assert "ZeroDivisionError" in str((await seat.first_news()).error)
            assert await seat.change(seat.news.version, PERIOD)
            assert seat.news.error is None
            leave([seat])

    in_virtual_time(story())
    assert any(record.exc_info for record in caplog.records)


def test_the_poller_inherits_nothing_of_the_trigger_that_came_first() -> None:
    trigger_id = contextvars.ContextVar("trigger_id", default="none")
    seen: list[str] = []

    async def story() -> None:
        dlc = ScriptedDlc()

        def read(job_ids: Sequence[str]) -> list[Any]:
            seen.append(trigger_id.get())
            return dlc.list_page(job_ids)

        async with watching(dlc, read=read) as watcher:
            trigger_id.set("first")
            [seat] = seats_of(watcher, dlc.add(ids(1)))
            await seat.first_news()
            await asyncio.sleep(5 * PERIOD)
            leave([seat])

    in_virtual_time(story())
    assert set(seen) == {"none"}


class TestThrottlingStorm:
    """DLC answers half of all calls with 429 for ten minutes."""

    BEGIN, END = 300.0, 900.0

    def storm(self, dlc: ScriptedDlc) -> Callable[[str, Sequence[str]], None]:
        dice = random.Random(7)

        def strike(_operation: str, _ids: Sequence[str]) -> None:
            if self.BEGIN <= dlc.time() < self.END and dice.random() < 0.5:
                raise PaiDlcThrottled("ListJobs: HTTP 429", code="Throttling.User", status_code=429)

        return strike

    @pytest.mark.parametrize("count", [1_000, 10_000])
    def test_calls_fall_by_half_and_recover_within_three_periods(self, count: int) -> None:
        dlc = ScriptedDlc()
        dlc.fault = self.storm(dlc)

        async def story() -> None:
            async with watching(dlc) as watcher:
                seats = seats_of(watcher, dlc.add(ids(count)))
                await asyncio.sleep(self.END + 10 * PERIOD)
                assert all(seat.news.error is None and seat.news.item for seat in seats)
                leave(seats)

        in_virtual_time(story())
        before = dlc.calls_between(self.BEGIN - 5 * PERIOD, self.BEGIN) / 5
        during = dlc.calls_between(self.BEGIN, self.END) / 20
        assert during <= before / 2
        recovered = self.END + 3 * PERIOD
        seen = Counter(name for at, batch in dlc.lists if recovered <= at < recovered + 1.1 * PERIOD for name in batch)
        assert len(seen) == count

    def test_the_watcher_says_so_once_and_once_that_it_is_over(self, caplog: pytest.LogCaptureFixture) -> None:
        dlc = ScriptedDlc()
        dlc.fault = self.storm(dlc)

        async def story() -> None:
            async with watching(dlc, name="'pai_dlc_default'") as watcher:
                seats = seats_of(watcher, dlc.add(ids(1000)))
                await asyncio.sleep(self.END + 10 * PERIOD)
                leave(seats)

        caplog.set_level("INFO")
        in_virtual_time(story())
        lines = [record.getMessage() for record in caplog.records if record.name.endswith("triggers.pace")]
        assert [line.split("; ")[0] for line in lines[:1]] == ["Connection 'pai_dlc_default': DLC asks for fewer calls"]
        assert len(lines) % 2 == 0
        assert len(lines) <= 6
        assert "at full pace again" in lines[-1]
