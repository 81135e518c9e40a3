"""The pace of one connection: who asks for one job waits in line, and the pace of the moment says who goes when."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from virtual_time import at_once, in_virtual_time

from airflow_provider_pai_spot.exceptions import PaiDlcError, PaiDlcThrottled, PaiDlcUnavailable
from airflow_provider_pai_spot.triggers.dlc_threads import in_single_thread, in_watch_thread
from airflow_provider_pai_spot.triggers.pace import Pace


class Line:
    """Calls through a pace whose calls take `seconds` each, and when each was sent."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.sent: list[tuple[float, str]] = []
        self.answers: list[Any] = []
        self.under_way = self.most_under_way = 0
        self.pace = Pace("'one'", in_thread=self.in_thread, in_stop_thread=self.in_thread)

    async def in_thread(self, call: Callable[[], Any]) -> Any:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await asyncio.sleep(self.seconds)
            return await at_once(call)
        finally:
            self.under_way -= 1

    def call(self, name: str) -> Callable[[], Any]:
        def sent() -> Any:
            self.sent.append((asyncio.get_running_loop().time(), name))
            return self.answers.pop(0) if self.answers else name

        return sent

    def asks(self, count: int) -> Awaitable[list[Any]]:
        return asyncio.gather(*(self.pace.ask(self.call(f"look {number}")) for number in range(count)))

    def stops(self, count: int) -> Awaitable[list[Any]]:
        return asyncio.gather(*(self.pace.stop(self.call(f"stop {number}")) for number in range(count)))

    @property
    def times(self) -> list[float]:
        return [at for at, _ in self.sent]


async def nothing_is_left() -> None:
    await asyncio.sleep(0.01)
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_calls_go_out_in_order_one_after_the_other() -> None:
    async def story() -> None:
        line = Line()
        assert await line.asks(50) == [f"look {number}" for number in range(50)]
        assert [name for _, name in line.sent] == [f"look {number}" for number in range(50)]
        assert len({round(at, 4) for at in line.times}) == 50
        await nothing_is_left()

    in_virtual_time(story())


@pytest.mark.parametrize(
    "error",
    [
        PaiDlcThrottled("HTTP 429", status_code=429, retry_after=60.0),
        PaiDlcUnavailable("HTTP 503", status_code=503, retry_after=60.0),
    ],
    ids=["throttled", "unavailable"],
)
@pytest.mark.parametrize("raised", [False, True], ids=["answered", "raised"])
def test_who_is_asked_to_wait_lets_all_wait_who_are_in_line_already(error: PaiDlcError, raised: bool) -> None:
    async def story() -> None:
        line = Line()

        def refuse() -> Any:
            if raised:
                raise error
            return error

        first = asyncio.create_task(line.pace.ask(refuse))
        rest = line.asks(1000)
        await asyncio.wait([first])
        assert (first.exception() or first.result()) is error
        await asyncio.gather(rest, line.stops(10))
        assert sum(at < 60.0 for at in line.times) <= 1
        assert max(line.times) <= 60.0 + 100.0

    in_virtual_time(story())


def test_a_pace_that_recovers_quickens_those_who_are_in_line_already() -> None:
    async def story() -> None:
        line, loop = Line(), asyncio.get_running_loop()
        for _ in range(6):
            line.pace.heed(PaiDlcThrottled("HTTP 429", status_code=429))
            await asyncio.sleep(1.1)
        began = loop.time()
        await line.asks(1000)
        assert loop.time() - began <= 90.0

    in_virtual_time(story())


@pytest.mark.parametrize(("kind", "most"), [("asks", 2), ("stops", 4)])
def test_few_are_under_way_at_once(kind: str, most: int) -> None:
    async def story() -> None:
        line = Line(seconds=1.0)
        await getattr(line, kind)(40)
        assert line.most_under_way == most
        await nothing_is_left()

    in_virtual_time(story())


def test_stops_do_not_wait_behind_looks() -> None:
    async def story() -> None:
        line = Line(seconds=1.0)
        looks = line.asks(100)
        await asyncio.sleep(3.0)
        began = asyncio.get_running_loop().time()
        await line.stops(4)
        assert asyncio.get_running_loop().time() - began <= 1.5
        await looks

    in_virtual_time(story())


def test_who_leaves_the_line_costs_no_call_and_nothing_of_it_stays_behind() -> None:
    async def story() -> None:
        line = Line(seconds=1.0)
        asking = [asyncio.create_task(line.pace.ask(line.call(str(number)))) for number in range(10)]
        await asyncio.sleep(0.5)
        for task in asking:
            task.cancel()
        await nothing_is_left()
        assert line.sent == []
        assert await line.asks(4) == ["look 0", "look 1", "look 2", "look 3"]
        assert line.most_under_way == 2

    in_virtual_time(story())


def test_who_leaves_as_his_turn_comes_gives_it_to_the_next() -> None:
    async def story() -> None:
        for yields in range(6):
            line = Line(seconds=1.0)
            leaving = [asyncio.create_task(line.pace.ask(line.call("left"))) for _ in range(2)]
            for _ in range(yields):
                await asyncio.sleep(0)
            for task in leaving:
                task.cancel()
            await asyncio.wait(leaving)
            assert await line.asks(3) == ["look 0", "look 1", "look 2"]
            assert line.most_under_way == 2

    in_virtual_time(story())


def test_a_call_that_never_returns_holds_up_nobody_for_ever() -> None:
    async def story() -> None:
        line = Line(seconds=1.0)

        async def hang(call: Callable[[], Any]) -> Any:
            call()
            await asyncio.Event().wait()

        line.pace = Pace(in_thread=hang)
        [*answers] = await line.asks(4)
        assert all(isinstance(answer, PaiDlcUnavailable) for answer in answers)
        assert asyncio.get_running_loop().time() <= 125.0

    in_virtual_time(story())


async def test_lists_do_not_queue_behind_single_calls() -> None:
    go_on = threading.Event()
    singles = [asyncio.create_task(in_single_thread(go_on.wait)) for _ in range(20)]
    await asyncio.sleep(0.1)
    assert await in_watch_thread(lambda: "listed") == "listed"
    go_on.set()
    assert all(await asyncio.gather(*singles))
