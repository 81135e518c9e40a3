"""What is noted down of copied lines: who showed what, what is gone, what is in doubt."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.log_cursor import Cursor
from airflow_provider_pai_spot.attempts.log_notes import Part, ShownSoFar

NOW = datetime(2026, 11, 30, 22, 0, tzinfo=UTC)
KEY = "dlc1-worker-0/u1"


def cursor(second: int) -> Cursor:
    newest = f"2026-11-30 22:00:{second:02}"
    return Cursor(newest=newest, seen={newest: {"abc": 2}})


def part(job_id: str, writer: str, second: int) -> Part:
    return Part(job_id=job_id, writer=writer, since=NOW, end={KEY: cursor(second)})


def shown(*parts: Part) -> ShownSoFar:
    notes = ShownSoFar(try_number=1)
    for one in parts:
        notes = notes.advanced(one, offset=timedelta(hours=8), at=NOW)
    return notes


def test_they_survive_being_stored() -> None:
    notes = replace(shown(part("dlc1", "a", 1), part("dlc1", "b", 2)), copying={KEY: cursor(1)})
    assert ShownSoFar.from_json(json.loads(json.dumps(notes.to_json())), 1) == notes


def test_a_part_grows_until_another_job_or_writer_comes() -> None:
    notes = shown(part("dlc1", "a", 1), part("dlc1", "a", 2), part("dlc1", "b", 3), part("dlc2", "b", 4))
    told = [(one.job_id, one.writer, dict(one.begin), dict(one.end)) for one in notes.parts]
    assert told == [
        ("dlc1", "a", {}, {KEY: cursor(2)}),
        ("dlc1", "b", {KEY: cursor(2)}, {KEY: cursor(3)}),
        ("dlc2", "b", {}, {KEY: cursor(4)}),
    ]
    assert notes.cursors("dlc1") == {KEY: cursor(3)}


def test_another_try_has_another_log() -> None:
    assert ShownSoFar.from_json(shown(part("dlc1", "a", 1)).to_json(), 2) == ShownSoFar(try_number=2)


def test_of_a_look_in_doubt_the_notes_know_where_it_began() -> None:
    doubtful = replace(shown(part("dlc1", "a", 5)), copying={KEY: cursor(3)})
    assert doubtful.in_doubt
    settled = doubtful.without_last_look()
    assert (settled.in_doubt, settled.cursors("dlc1")) == (False, {KEY: cursor(3)})


def test_what_was_shown_again_is_the_new_writer_s_and_has_not_ended() -> None:
    notes = shown(part("dlc1", "a", 1), part("dlc2", "b", 2)).ended("a")
    assert [one.has_ended for one in notes.parts] == [True, False]
    taken = notes.taken_over(notes.parts[:1], "c")
    assert [(one.writer, one.has_ended) for one in taken.parts] == [("c", False), ("b", False)]


def test_of_very_many_deferrals_the_newest_are_kept() -> None:
    notes = shown(*(part(f"dlc{number}", "a", 1) for number in range(50)))
    assert len(notes.parts) == 20
    assert notes.parts[-1].job_id == "dlc49"


@pytest.mark.parametrize(
    "value",
    [
        None,
        "x",
        [],
        {},
        {"version": 2, "try": 1},
        {"version": 1, "try": 1, "parts": "x"},
        {"version": 1, "try": 1, "parts": [{"job_id": 3, "writer": "a", "since": "2026-11-30T22:00:00Z"}]},
        {"version": 1, "try": 1, "parts": [{"job_id": "dlc1", "writer": "a", "since": "yesterday"}], "offset": "x"},
    ],
)
def test_what_was_not_written_here_reads_as_nothing_shown(value: Any) -> None:
    assert ShownSoFar.from_json(value, 1) == ShownSoFar(try_number=1)
