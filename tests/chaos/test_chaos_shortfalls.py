"""A seed in which too little went wrong proves nothing, and is not ok."""

from __future__ import annotations

from typing import Any

import pytest
from figures import shortfalls
from timetable import KILLS, Trouble

ENOUGH: dict[str, Any] = {
    "kills": dict.fromkeys((one.value for one in KILLS), 3),
    "ambiguous_answers": 20,
    "slow_stops": 3,
    "losing_share": 0.3,
}


def test_enough_is_enough() -> None:
    assert shortfalls(ENOUGH, tuple(Trouble)) == []


@pytest.mark.parametrize("kind", [one.value for one in KILLS])
def test_each_kind_of_kill_is_wanted_three_times(kind: str) -> None:
    figures = {**ENOUGH, "kills": {**ENOUGH["kills"], kind: 2}}
    assert shortfalls(figures, tuple(Trouble)) == [f"kills of kind {kind}: 2 of 3"]


@pytest.mark.parametrize("name", ["ambiguous_answers", "slow_stops", "losing_share"])
def test_each_trouble_is_wanted(name: str) -> None:
    assert len(shortfalls({**ENOUGH, name: 0}, tuple(Trouble))) == 1


def test_what_was_not_asked_for_is_not_missed() -> None:
    nothing = {"kills": {}, "ambiguous_answers": 0, "slow_stops": 0, "losing_share": 0.0}
    assert shortfalls(nothing, ()) == []
