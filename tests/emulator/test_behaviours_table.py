"""The table says what the code does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import airflow_provider_pai_spot.emulator as room
from airflow_provider_pai_spot.emulator import BEHAVIOURS
from airflow_provider_pai_spot.emulator.behaviours import Behaviours

CODE = "".join(
    path.read_text(encoding="utf-8") for path in Path(room.__file__).parent.glob("*.py") if path.name != "behaviours.py"
)
SWITCHES = [row for row in BEHAVIOURS if row.switchable and row.allowed != (row.default,)]


def test_names_are_unique() -> None:
    names = [row.name for row in BEHAVIOURS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("row", SWITCHES, ids=lambda row: row.name)
def test_every_switch_is_read_somewhere(row: Any) -> None:
    assert f'["{row.name}"]' in CODE


@pytest.mark.parametrize("row", BEHAVIOURS, ids=lambda row: row.name)
def test_every_row_says_where_it_comes_from(row: Any) -> None:
    assert len(row.source) > 10


@pytest.mark.parametrize("row", [row for row in BEHAVIOURS if not row.switchable], ids=lambda row: row.name)
def test_what_is_documented_cannot_be_switched(row: Any) -> None:
    with pytest.raises(ValueError, match="documented"):
        Behaviours({row.name: "anything"})


def test_an_unknown_switch_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="timeout_status"):
        Behaviours({"no_such": 1})


def test_a_value_that_is_not_allowed_names_those_that_are() -> None:
    with pytest.raises(ValueError, match="Stopped"):
        Behaviours({"timeout_status": "Gone"})
