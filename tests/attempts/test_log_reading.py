"""Every line once: whatever DLC gives of a window, however often it is asked, wherever the asking starts anew."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.attempts import log_reading
from airflow_provider_pai_spot.attempts.commands import ReadLogs
from airflow_provider_pai_spot.attempts.log_cursor import Cursor
from airflow_provider_pai_spot.attempts.log_reading import LogSource, Reading, read_new
from airflow_provider_pai_spot.exceptions import PaiDlcUnavailable

START = datetime(2026, 11, 30, 22, 0, tzinfo=UTC)
SOURCE = LogSource("dlc1", "dlc1-worker-0", "u1", START)
LAG = timedelta(seconds=3)
MAX = 4  # lines an answer holds at most, in these tests


@dataclass
class ModelOfDlc:
    """
    GetPodLogs as it may be: `keeps` the first or last lines of a window; EndTime belongs to it, or does not.

    :param delay: of each line, the seconds after which it shows.
    """

    keeps: str = "tail"
    end_belongs: bool = True
    offset: timedelta = timedelta(0)
    lines: list[tuple[int, str]] = field(default_factory=list)
    delays: list[int] = field(default_factory=list)
    now: int = 0
    asked: int = 0

    def answer(self, command: ReadLogs) -> list[str]:
        self.asked += 1
        assert command.start is not None
        first = int((command.start - START).total_seconds())
        last = self.now if command.end is None else int((command.end - START).total_seconds())
        last -= 0 if self.end_belongs or command.end is None else 1
        delays = self.delays or [0] * len(self.lines)
        window = [
            self.written(second, text)
            for (second, text), delay in zip(self.lines, delays, strict=True)
            if first <= second <= last and second + delay <= self.now
        ]
        return window[-MAX:] if self.keeps == "tail" else window[:MAX]

    def written(self, second: int, text: str) -> str:
        return f"{(START + self.offset + timedelta(seconds=second)).replace(tzinfo=None)}  {text}"

    def answer_all(self) -> list[str]:
        return [self.written(second, text) for second, text in self.lines]

    def read(
        self, cursor: Cursor, *, most: int = 10_000, offset: timedelta | None = timedelta(0), **more: Any
    ) -> Reading:
        now = START + timedelta(seconds=self.now)
        asking = read_new(SOURCE, cursor, now=now, overlap=LAG, offset=offset, most=most, **more)
        answer: Any = None
        while True:
            try:
                answer = self.answer(asking.send(answer))
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def _small_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reading, "MAX_LINES", MAX)
    monkeypatch.setattr(log_reading, "_MAX_REQUESTS", 60)


def texts(reading: Reading) -> list[str]:
    return [line.text.split("  ")[1] for line in reading.lines]


WINDOWS = pytest.mark.parametrize("keeps", ["head", "tail"])
ENDS = pytest.mark.parametrize("end_belongs", [True, False], ids=["end belongs", "end does not"])
# At most three lines a second: what more lines than MAX in one second do is a test of its own.
STREAMS = st.lists(st.lists(st.sampled_from("aab"), max_size=3), max_size=24)
POLLS = st.sets(st.integers(0, 26), max_size=9)


def stream_of(seconds: list[list[str]]) -> list[tuple[int, str]]:
    return [(second, text) for second, of_second in enumerate(seconds) for text in of_second]


@WINDOWS
@ENDS
@given(seconds=STREAMS, polls=POLLS)
def test_every_line_comes_once_and_in_order(
    keeps: str, end_belongs: bool, seconds: list[list[str]], polls: set[int]
) -> None:
    dlc = ModelOfDlc(keeps, end_belongs, lines=stream_of(seconds))
    cursor, seen = Cursor(), []
    for dlc.now in [*sorted(polls), 30]:
        reading = dlc.read(cursor)
        cursor = Cursor.from_json(json.loads(json.dumps(reading.cursor.to_json())))  # as if restarted at each look
        assert (reading.problem, reading.crowded, reading.flooded, reading.reached) == (None, "", False, None)
        seen += texts(reading)
    assert seen == [text for _, text in dlc.lines]


@WINDOWS
@given(seconds=STREAMS, polls=POLLS, data=st.data())
def test_lines_that_show_late_are_neither_lost_nor_doubled(
    keeps: str, seconds: list[list[str]], polls: set[int], data: st.DataObject
) -> None:
    """Later lines may show before earlier ones, as far apart as the overlap."""
    lines = stream_of(seconds)
    late = st.lists(st.integers(0, int(LAG.total_seconds())), min_size=len(lines), max_size=len(lines))
    dlc = ModelOfDlc(keeps, lines=lines, delays=data.draw(late))
    cursor, seen = Cursor(), []
    for dlc.now in [*sorted(polls), 34]:
        reading = dlc.read(cursor)
        cursor = reading.cursor
        seen += [line.text for line in reading.lines]
    assert Counter(seen) == Counter(dlc.answer_all())


@given(seconds=STREAMS, polls=POLLS, order=st.randoms(use_true_random=False))
def test_the_order_in_which_dlc_shows_one_second_does_not_matter(
    seconds: list[list[str]], polls: set[int], order: Any
) -> None:
    dlc = ModelOfDlc(lines=stream_of(seconds))
    cursor, seen = Cursor(), []
    for dlc.now in [*sorted(polls), 30]:
        shuffled = sorted(dlc.lines, key=lambda line: (line[0], order.random()))
        dlc.lines = shuffled
        reading = dlc.read(cursor)
        cursor = reading.cursor
        seen += [line.text for line in reading.lines]
    assert Counter(seen) == Counter(dlc.answer_all())


@WINDOWS
@ENDS
def test_more_lines_in_one_second_than_dlc_gives_are_told_and_the_rest_is_read(keeps: str, end_belongs: bool) -> None:
    lines = [(10, "before"), *[(20, f"burst {n}") for n in range(9)], (30, "after")]
    dlc = ModelOfDlc(keeps, end_belongs, lines=lines, now=60)
    reading = dlc.read(Cursor())
    assert reading.crowded == "2026-11-30 22:00:20"
    seen = texts(reading)
    assert (seen[0], seen[-1]) == ("before", "after")
    assert len(seen) == MAX + 2
    assert dlc.read(reading.cursor).lines == []


@WINDOWS
def test_two_seconds_that_are_too_much_together_are_read_one_by_one(keeps: str) -> None:
    lines = [(second, f"{second} {n}") for second in (58, 59, 60) for n in range(3)]
    dlc = ModelOfDlc(keeps, lines=lines, now=60)
    reading = dlc.read(Cursor())
    assert (texts(reading), reading.crowded) == ([text for _, text in lines], "")


def test_a_flood_is_cut_and_said_to_be() -> None:
    dlc = ModelOfDlc(lines=[(second, f"{second}") for second in range(60)], now=60)
    reading = dlc.read(Cursor(), most=10)
    assert texts(reading) == [str(second) for second in range(10)]
    assert reading.flooded


def test_what_is_too_much_for_one_look_is_read_at_the_next() -> None:
    lines = [(second, f"{second}") for second in range(300)]
    dlc = ModelOfDlc("head", lines=lines, now=300)
    cursor, seen, not_before = Cursor(), [], None
    for _ in range(20):
        reading = dlc.read(cursor, not_before=not_before)
        seen += texts(reading)
        cursor, not_before = reading.cursor, reading.reached
    assert seen == [text for _, text in lines]
    assert not_before is None


def test_a_quiet_log_is_one_request_a_look() -> None:
    dlc = ModelOfDlc(lines=[(0, "a"), (1, "a")], now=7200)
    first = dlc.read(Cursor())
    assert dlc.read(first.cursor).lines == []
    assert dlc.asked == 2


def test_in_an_unknown_zone_the_window_is_too_large_rather_than_too_small() -> None:
    hours = timedelta(hours=8)
    for truth in (timedelta(0), hours):
        dlc = ModelOfDlc(offset=truth, lines=[(0, "a"), (5, "b")], now=6)
        reading = dlc.read(Cursor(), offset=None)
        dlc.lines.append((7, "c"))
        dlc.now = 8
        assert texts(dlc.read(reading.cursor, offset=None)) == ["c"]


def test_an_error_on_the_way_loses_nothing() -> None:
    asking = read_new(SOURCE, Cursor(), now=START + timedelta(seconds=60), overlap=LAG, offset=None, most=100)
    next(asking)
    with pytest.raises(StopIteration) as end:
        asking.send(PaiDlcUnavailable("down"))
    assert (end.value.value.cursor, str(end.value.value.problem)) == (Cursor(), "down")


@pytest.mark.parametrize(
    ("answers", "new"),
    [
        ([["no time at all"], ["no time at all", "nor here"]], ["no time at all", "nor here"]),
        (
            [
                ["2026-11-30 22:00:01  Traceback", "  line 1"],
                ["2026-11-30 22:00:01  Traceback", "  line 1", "  line 2"],
            ],
            ["2026-11-30 22:00:01  Traceback", "  line 1", "  line 2"],
        ),
        (
            [["2026-11-30 22:00:01  a", "  of a"], ["  of a", "2026-11-30 22:00:09  b"]],
            ["2026-11-30 22:00:01  a", "  of a", "2026-11-30 22:00:09  b"],
        ),
    ],
    ids=["none has a stamp", "they go on", "the line above is not in the window"],
)
def test_lines_without_a_stamp_belong_to_the_line_above(answers: list[list[str]], new: list[str]) -> None:
    cursor, seen = Cursor(), []
    for answer in answers:
        found, cursor = cursor.take(answer, LAG)
        seen += [line.text for line in found]
    assert seen == new


@pytest.mark.parametrize(
    "value", [None, "x", 5, [], {}, {"newest": ""}, {"newest": 3}, {"newest": "2026-11-30"}], ids=repr
)
def test_what_somebody_has_made_of_a_stored_cursor_reads_as_nothing_read(value: Any) -> None:
    assert Cursor.from_json(value) == Cursor()
    known = Cursor.from_json({"newest": "2026-11-30 22:00:00", "seen": value, "floor": value})
    assert known.newest == "2026-11-30 22:00:00"
    assert known.take(["2026-11-30 22:00:00  a"], LAG)[0]


def test_a_stored_cursor_is_small_even_in_a_flood_and_doubles_nothing() -> None:
    stamp = "2026-11-30 22:00:{:02}  {}"
    flood = [stamp.format(second, n) for second in range(4) for n in range(600)]
    _, cursor = Cursor().take(flood, LAG)
    stored = cursor.to_json()
    assert len(json.dumps(stored)) < 20_000
    found, _ = Cursor.from_json(stored).take([*flood, stamp.format(3, "new")], LAG)
    assert [line.text for line in found] == [stamp.format(3, "new")]


def test_a_cursor_tells_again_what_it_has_read_and_nothing_else() -> None:
    lines = [f"2026-11-30 22:00:0{second}  {text}" for second, text in ((0, "a"), (1, "b"), (1, "b"), (2, "c"))]
    _, early = Cursor().take(lines[:2], LAG)
    everything, _ = Cursor().take(lines, LAG)
    assert [line.text for line in early.covered(everything, LAG)] == lines[:2]
    assert (
        early.closed().covered(everything, LAG) == everything[:3]
    )  # a closed log has no more lines of its last second
