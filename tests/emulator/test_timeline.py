"""Emulated time: everything due happens, in order, each at its own moment."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.emulator.clock import ManualClock, ScaledClock
from airflow_provider_pai_spot.emulator.timeline import Timeline

WAITS = st.lists(st.floats(0, 1000), max_size=30)


@given(WAITS)
def test_things_happen_in_order_and_at_their_own_moment(waits: list[float]) -> None:
    timeline = Timeline(ManualClock(start=0.0))
    seen: list[tuple[float, float]] = []
    for wait in waits:
        timeline.after(wait, lambda wait=wait: seen.append((wait, timeline.now)))
    timeline.advance(1000)
    assert [wait for wait, _ in seen] == sorted(waits)
    assert all(wait == now for wait, now in seen)


@given(WAITS, st.lists(st.floats(0, 100), min_size=1, max_size=10))
def test_it_does_not_matter_in_how_many_steps_time_passes(waits: list[float], steps: list[float]) -> None:
    def happened(pieces: list[float]) -> list[float]:
        timeline = Timeline(ManualClock(start=0.0))
        seen: list[float] = []
        for wait in waits:
            timeline.after(wait, lambda wait=wait: seen.append(wait))
        for piece in pieces:
            timeline.advance(piece)
        timeline.advance(2000 - sum(pieces))
        return seen

    assert happened(steps) == happened([])


def test_what_follows_from_something_due_happens_in_the_same_advance() -> None:
    timeline = Timeline(ManualClock(start=0.0))
    seen: list[float] = []

    def again() -> None:
        seen.append(timeline.now)
        timeline.after(10, again)

    timeline.after(10, again)
    timeline.advance(35)
    assert seen == [10.0, 20.0, 30.0]


def test_a_scaled_clock_knows_how_long_emulated_time_really_takes() -> None:
    assert ScaledClock(60).real_seconds(120) == 2.0


def test_a_manual_clock_never_moves_by_itself() -> None:
    clock = ManualClock(start=5.0)
    assert clock.real_seconds(1) is None
    clock.advance(2)
    assert clock.now() == 7.0
