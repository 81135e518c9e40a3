"""Whose turn it is: how many lists it takes, how evenly they are spread, and what a refused list leads to."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from airflow_provider_pai_spot.triggers.rhythm import Rhythm
from airflow_provider_pai_spot.triggers.rounds import Rounds, Turn

PERIOD = 30.0
SIZE = 100


class Walk:
    """Rounds, walked through on a clock of our own with a DLC that answers at once."""

    def __init__(self, seed: int = 1) -> None:
        self.now = 0.0
        self.rounds = Rounds(SIZE, Rhythm(PERIOD), random.Random(seed))
        self.turns: dict[str, Turn] = {}
        self.lists: list[tuple[float, list[str]]] = []
        self.refuses: set[str] = set()
        self.largest = SIZE

    def enter(self, *names: str, period: float = PERIOD) -> None:
        for name in names:
            self.turns[name] = self.rounds.enter(name, period, self.now)

    def until(self, end: float) -> None:
        while (due := self.rounds.next_at(self.now)) is not None and max(due, self.now) < end:
            self.now = max(due, self.now)
            batch = self.rounds.take(self.now)
            assert batch
            names = [turn.job_id for turn in batch]
            self.lists.append((self.now, names))
            if len(batch) > self.largest or self.refuses & set(names):
                self.rounds.refused(batch, self.now)
            else:
                self.rounds.answered(batch, self.now)
        self.now = end

    def lists_within(self, start: float, end: float) -> list[list[str]]:
        return [names for at, names in self.lists if start <= at < end]


def names(count: int) -> list[str]:
    return [f"job{number}" for number in range(count)]


def test_ten_thousand_jobs_cost_a_hundred_lists_a_period_spread_evenly() -> None:
    walk = Walk()
    walk.enter(*names(10_000))
    walk.until(20 * PERIOD)
    for period in range(2, 20):
        start = period * PERIOD
        assert 95 <= len(walk.lists_within(start, start + PERIOD)) <= 110
    tenths = Counter(int(at / 3.0) for at, _ in walk.lists if at >= 10 * PERIOD)
    assert max(tenths.values()) <= 20


def test_no_job_waits_for_longer_than_its_period_and_the_jitter() -> None:
    walk = Walk()
    walk.enter(*names(1_000))
    walk.until(20 * PERIOD)
    seen: dict[str, float] = {}
    longest = 0.0
    for at, batch in walk.lists:
        for name in batch:
            longest = max(longest, at - seen.get(name, at))
            seen[name] = at
    assert len(seen) == 1_000
    assert longest <= 1.1 * PERIOD


def test_those_who_come_within_a_second_are_asked_for_together() -> None:
    walk = Walk()
    for _ in range(20):  # a triggerer that restarts takes up 50 triggers a second
        walk.enter(*names(50))
        walk.until(walk.now + 1.0)
    walk.until(walk.now + 2.0)
    assert len(walk.lists) <= 40
    assert sum(len(batch) for _, batch in walk.lists) >= 1_000


def test_one_who_comes_alone_does_not_wait() -> None:
    walk = Walk()
    walk.enter("first")
    walk.until(10.0)
    walk.enter("second")
    walk.until(11.0)
    assert [at for at, batch in walk.lists if batch == ["second"] or "second" in batch] == [pytest.approx(10.05)]


def test_few_jobs_come_together_in_one_list() -> None:
    walk = Walk()
    for name in names(10):
        walk.enter(name)
        walk.until(walk.now + 2.9)
    walk.until(20 * PERIOD)
    assert len(walk.lists_within(10 * PERIOD, 20 * PERIOD)) <= 12


def test_each_is_asked_for_at_its_own_interval() -> None:
    walk = Walk()
    walk.enter("hasty", period=5.0)
    walk.enter(*names(500))
    walk.until(600.0)
    asked = Counter(name for _, batch in walk.lists if _ >= 300.0 for name in batch)
    assert 58 <= asked["hasty"] <= 80
    assert 9 <= asked["job7"] <= 22


def test_somebody_in_more_haste_quickens_a_job() -> None:
    walk = Walk()
    walk.enter("one", period=300.0)
    walk.until(100.0)
    walk.rounds.quicken(walk.turns["one"], 10.0, walk.now)
    walk.until(200.0)
    assert 9 <= len(walk.lists_within(100.0, 200.0)) <= 12


def test_a_young_job_is_looked_at_twice_as_often() -> None:
    walk = Walk()
    walk.enter("young")
    walk.turns["young"].young_until = 300.0
    walk.until(900.0)
    assert 18 <= len(walk.lists_within(0.0, 300.0)) <= 23
    assert 18 <= len(walk.lists_within(300.0, 900.0)) <= 22


def test_who_left_is_not_asked_for() -> None:
    walk = Walk()
    walk.enter("stays", "leaves")
    walk.until(100.0)
    walk.rounds.leave(walk.turns["leaves"])
    walk.until(300.0)
    assert {name for batch in walk.lists_within(100.0, 300.0) for name in batch} == {"stays"}
    walk.rounds.leave(walk.turns["stays"])
    assert walk.rounds.next_at(walk.now) is None
    assert len(walk.rounds) == 0


def test_a_list_refused_as_too_large_is_asked_for_in_halves() -> None:
    walk = Walk()
    walk.largest = 40
    walk.enter(*names(100))
    walk.until(5.0)
    assert [len(batch) for _, batch in walk.lists] == [100, 50, 50, 25, 25, 25, 25]
    walk.until(10 * PERIOD)
    assert max(len(batch) for batch in walk.lists_within(5.0, 10 * PERIOD)) <= 40
    assert len(walk.lists_within(PERIOD, 9 * PERIOD)) <= 8 * 6


def test_lists_that_are_refused_for_some_minutes_leave_nobody_alone_for_long() -> None:
    walk = Walk()
    walk.enter(*names(1_000))
    walk.until(5 * PERIOD)
    walk.largest = 0
    walk.until(15 * PERIOD)
    walk.largest = SIZE
    assert any(turn.alone for turn in walk.turns.values())
    walk.until(40 * PERIOD)
    assert not any(turn.alone for turn in walk.turns.values())
    walk.until(60 * PERIOD)
    assert len(walk.lists_within(58 * PERIOD, 60 * PERIOD)) <= 30
    assert {name for batch in walk.lists_within(58 * PERIOD, 60 * PERIOD) for name in batch} == set(names(1_000))


def test_an_id_that_spoils_every_list_is_left_out_and_the_others_grow_together_again() -> None:
    walk = Walk()
    walk.refuses = {"job33"}
    walk.enter(*names(100))
    walk.until(PERIOD)
    assert walk.turns["job33"].alone
    answered = {name for _, batch in walk.lists if not walk.refuses & set(batch) for name in batch}
    assert answered == set(names(100)) - {"job33"}
    walk.until(300 * PERIOD)
    last = walk.lists_within(270 * PERIOD, 300 * PERIOD)
    assert 1 <= len([batch for batch in last if batch == ["job33"]]) <= 2  # whether it still holds
    assert not any("job33" in batch for batch in last if len(batch) > 1)
    assert len(last) <= 30 * 3


def test_what_failed_is_asked_for_soon_then_later_never_later_than_its_period() -> None:
    rounds = Rounds(SIZE, Rhythm(PERIOD), random.Random(1))
    turn, now, pauses = rounds.enter("one", PERIOD, 0.0), 0.05, []
    for _ in range(12):
        rounds.failed(rounds.take(now), now)
        pauses.append(turn.due - now)
        now = max(turn.due, rounds.next_at(now) or 0.0)
    assert 0.5 <= pauses[0] <= 1.0
    assert pauses[3] > pauses[1]
    assert max(pauses) <= PERIOD


@pytest.mark.parametrize("count", [300, 3_000, 10_000])
def test_an_outage_costs_fewer_lists_than_full_pace_and_is_over_for_all_within_a_period(count: int) -> None:
    rounds, began, end = Rounds(SIZE, Rhythm(PERIOD), random.Random(1)), 300.0, 600.0
    for name in names(count):
        rounds.enter(name, PERIOD, 0.0)
    now, sent, recovered = 0.0, [], {}
    while (due := rounds.next_at(now)) is not None and max(due, now) < end + 3 * PERIOD:
        now = max(due, now)
        batch = rounds.take(now)
        sent.append(now)
        if began <= now < end:
            rounds.failed(batch, now, everywhere=True)
            continue
        rounds.answered(batch, now)
        if now >= end:
            recovered |= {turn.job_id: now for turn in batch if turn.job_id not in recovered}
    before = sum(began - PERIOD <= at < began for at in sent)
    during = [sum(start <= at < start + PERIOD for at in sent) for start in range(300, 600, 30)]
    assert max(during) <= max(before, 7)
    assert max(during[2:]) <= 3
    assert len(recovered) == count
    assert max(recovered.values()) <= end + PERIOD * 1.5


def test_a_list_that_always_fails_does_not_hold_up_the_others() -> None:
    rounds = Rounds(SIZE, Rhythm(PERIOD), random.Random(1))
    turns = [rounds.enter(name, PERIOD, 0.0) for name in names(1_000)]
    now, seen, longest = 0.0, dict.fromkeys(turns, 0.0), 0.0
    while (due := rounds.next_at(now)) is not None and max(due, now) < 20 * PERIOD:
        now = max(due, now)
        batch = rounds.take(now)
        if turns[33] in batch:
            rounds.failed(batch, now, everywhere=True)
            continue
        rounds.answered(batch, now)
        longest = max(longest, *(now - seen[turn] for turn in set(batch).difference(turns[:SIZE])), 0.0)
        seen |= dict.fromkeys(batch, now)
    assert longest <= 1.2 * PERIOD


class Spoiled(Walk):
    """A DLC that fails on some ids, or on some of all lists."""

    def __init__(self, *spoilers: str) -> None:
        super().__init__()
        self.spoilers = {*spoilers}
        self.fails_at_random = 0.0
        self.rng = random.Random(1)
        self.heard: dict[str, list[float]] = {}

    def until(self, end: float) -> None:
        while (due := self.rounds.next_at(self.now)) is not None and max(due, self.now) < end:
            self.now = max(due, self.now)
            batch = self.rounds.take(self.now)
            asked = [turn.job_id for turn in batch]
            self.lists.append((self.now, asked))
            if self.spoilers.isdisjoint(asked) and self.rng.random() >= self.fails_at_random:
                self.rounds.answered(batch, self.now)
                for name in asked:
                    self.heard.setdefault(name, [0.0]).append(self.now)
            elif not self.rounds.left_alone(batch, self.now):
                self.rounds.failed(batch, self.now, everywhere=True)
        self.now = end

    def longest_gap(self, name: str, start: float = 0.0) -> float:
        times = [at for at in self.heard[name] if at >= start]
        return max(later - earlier for earlier, later in itertools.pairwise([*times, self.now]))


@pytest.mark.parametrize("at", [0, 20, 39])
@pytest.mark.parametrize("count", [40, 100, 1_000])
def test_an_id_that_dlc_fails_on_silences_its_neighbours_for_minutes_only(count: int, at: int) -> None:
    walk = Spoiled(f"job{at}")
    walk.enter(*names(count))
    walk.until(60 * PERIOD)
    neighbours = [name for name in names(count) if name != f"job{at}"]
    assert f"job{at}" not in walk.heard
    assert max(walk.longest_gap(name) for name in neighbours) <= 12 * PERIOD
    assert max(walk.longest_gap(name, 15 * PERIOD) for name in neighbours) <= 2 * PERIOD


@pytest.mark.parametrize("bad", [1, 5, 15])
def test_once_they_are_found_ids_that_dlc_fails_on_cost_the_others_nothing(bad: int) -> None:
    walk = Spoiled(*(f"job{number * 60}" for number in range(bad)))
    walk.enter(*names(1_000))
    walk.until(120 * PERIOD)
    good = [name for name in names(1_000) if name not in walk.spoilers]
    assert max(walk.longest_gap(name, 60 * PERIOD) for name in good) <= 1.5 * PERIOD
    assert len(walk.lists_within(60 * PERIOD, 120 * PERIOD)) <= 1.3 * 60 * 10 + 3 * bad


@pytest.mark.parametrize("count", [100, 1_000, 3_000])
@pytest.mark.parametrize("rate", [0.5, 0.7])
def test_a_dlc_that_failed_at_random_is_not_asked_much_more_once_it_does_not(count: int, rate: float) -> None:
    walk = Spoiled()
    walk.enter(*names(count))
    walk.fails_at_random = rate
    walk.until(30 * PERIOD)
    walk.fails_at_random = 0.0
    walk.until(50 * PERIOD)
    full = 10 * max(1, count // SIZE)
    assert len(walk.lists_within(30 * PERIOD, 40 * PERIOD)) <= 2 * full + 10
    assert len(walk.lists_within(40 * PERIOD, 50 * PERIOD)) <= 1.3 * full + 2


def test_what_will_not_pass_by_itself_is_asked_for_once_a_period() -> None:
    rounds = Rounds(SIZE, Rhythm(PERIOD))
    turn = rounds.enter("one", PERIOD, 0.0)
    rounds.failed(rounds.take(0.05), 0.05, hopeless=True)
    assert turn.due == pytest.approx(30.05)
