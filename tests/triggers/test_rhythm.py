"""How fast DLC is asked: halved when it throttles, full again two and a half periods later."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.triggers.rhythm import SHORTEST_GAP, SINGLE_GAP, Rhythm

PERIOD = 30.0


def test_an_undisturbed_pace_is_full() -> None:
    rhythm = Rhythm(PERIOD)
    assert rhythm.share(1000.0) == 1.0
    assert rhythm.gap(1000.0, full=3.0) == SHORTEST_GAP
    assert rhythm.single_gap(1000.0) == SINGLE_GAP


def test_each_throttled_call_halves_the_pace_and_those_under_way_count_as_one() -> None:
    rhythm = Rhythm(PERIOD)
    assert rhythm.throttled(100.0)
    assert not rhythm.throttled(100.2)
    assert rhythm.share(100.2) == 0.5
    rhythm.throttled(103.0)
    assert rhythm.share(103.0) == 0.25
    assert rhythm.gap(103.0, full=3.0) == 12.0
    assert rhythm.single_gap(103.0) == SINGLE_GAP * 4


@pytest.mark.parametrize(
    ("periods_later", "share"), [(0.0, 0.25), (0.5, 0.25), (1.0, 0.5), (1.5, 0.75), (2.0, 1.0), (9.0, 1.0)]
)
def test_the_pace_rises_by_steps_once_it_is_quiet(periods_later: float, share: float) -> None:
    rhythm = Rhythm(PERIOD)
    rhythm.throttled(100.0)
    rhythm.throttled(110.0)
    assert rhythm.share(110.0 + periods_later * PERIOD) == pytest.approx(share)


def test_what_dlc_asks_for_is_waited_but_never_for_hours() -> None:
    rhythm = Rhythm(PERIOD)
    rhythm.throttled(100.0, retry_after=7.0)
    assert rhythm.open_at == 107.0
    rhythm.throttled(101.0, retry_after=2.0)
    assert rhythm.open_at == 107.0
    rhythm.throttled(102.0, retry_after=86_400.0)
    assert rhythm.open_at == 222.0


@given(st.lists(st.floats(0.0, 300.0), min_size=1, max_size=60))
def test_whatever_was_throttled_the_pace_is_full_within_three_periods(pauses: list[float]) -> None:
    rhythm, now = Rhythm(PERIOD), 0.0
    for pause in pauses:
        now += pause
        rhythm.throttled(now)
        assert 0.0 < rhythm.share(now) <= 1.0
        assert rhythm.gap(now, full=3.0) <= 2 * PERIOD
    assert rhythm.share(now + 2.5 * PERIOD) == 1.0
