"""The time in front of DLC's lines: what it is, and in which zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_pai_spot.dlc.stamps import (
    CHINA,
    in_utc,
    likely_offset,
    moment_of,
    offset_of,
    second_of,
    zoned_moment,
)

UTC_OFFSET = timedelta(0)


@pytest.mark.parametrize(
    ("line", "offset", "shown"),
    [
        ("2021-01-28 14:07:24 Created pod: x", CHINA, "2021-01-28T06:07:24Z Created pod: x"),
        ("2021-01-28 14:07:45  My Job started.", CHINA, "2021-01-28T06:07:45Z  My Job started."),
        ("2021-01-28 03:00:00 after midnight in China", CHINA, "2021-01-27T19:00:00Z after midnight in China"),
        ("2021-01-28 14:07:24 Created pod: x", UTC_OFFSET, "2021-01-28T14:07:24Z Created pod: x"),
        ("2021-01-28 14:07:24.25 Created", CHINA, "2021-01-28T06:07:24.25Z Created"),
        ("2021-01-28T14:07:24+08:00 has a zone", CHINA, "2021-01-28T14:07:24+08:00 has a zone"),
        ("2021-01-28T06:07:24Z has a zone", CHINA, "2021-01-28T06:07:24Z has a zone"),
        ("2021-01-28 14:07:24 nobody knows", None, "2021-01-28 14:07:24 nobody knows"),
        ("2021-13-28 14:07:24 no date", CHINA, "2021-13-28 14:07:24 no date"),
        ("0001-01-01 00:00:00 the first hour", CHINA, "0001-01-01 00:00:00 the first hour"),
        ("Created pod at 2021-01-28 14:07:24", CHINA, "Created pod at 2021-01-28 14:07:24"),
        ("", CHINA, ""),
    ],
)
def test_a_line_shows_its_time_in_utc(line: str, offset: timedelta | None, shown: str) -> None:
    assert in_utc(line, offset) == shown


@pytest.mark.parametrize(
    ("line", "second"),
    [
        ("2021-01-28 14:07:45  My Job started.", "2021-01-28 14:07:45"),
        ("2021-01-28T14:07:45.123+08:00 x", "2021-01-28 14:07:45"),
        ("2021-01-28 14:07:45", "2021-01-28 14:07:45"),
        ("2021-01-28 14:07:453 x", ""),
        ("2021-01-32 14:07:45 x", ""),
        ("  at 2021-01-28 14:07:45", ""),
    ],
)
def test_the_second_a_line_begins_with(line: str, second: str) -> None:
    assert second_of(line) == second


@pytest.mark.parametrize(
    ("line", "moment"),
    [
        ("2021-01-28T06:07:45Z x", datetime(2021, 1, 28, 6, 7, 45, tzinfo=UTC)),
        ("2021-01-28 14:07:45.5+08:00 x", datetime(2021, 1, 28, 6, 7, 45, tzinfo=UTC)),
        ("2021-01-28 14:07:45 no zone", None),
        ("2021-13-28T14:07:45Z no date", None),
        ("0001-01-01T00:00:00+08:00 the first hour", None),
        ("at 2021-01-28T06:07:45Z", None),
        ("", None),
    ],
)
def test_a_line_with_a_zone_tells_its_moment(line: str, moment: datetime | None) -> None:
    assert zoned_moment(line) == moment


def test_a_second_is_a_moment_once_its_zone_is_known() -> None:
    assert moment_of("2021-01-28 14:07:45", CHINA) == datetime(2021, 1, 28, 6, 7, 45, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("UTC", UTC_OFFSET),
        ("z", UTC_OFFSET),
        ("+08:00", CHINA),
        ("+0800", CHINA),
        ("-03:30", -timedelta(hours=3, minutes=30)),
        ("Asia/Shanghai", None),
        ("8", None),
        ("", None),
    ],
)
def test_zones_as_options_name_them(text: str, offset: timedelta | None) -> None:
    assert offset_of(text) == offset


MORNING = datetime(2026, 11, 30, 6, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "began_hours_ago", "offset"),
    [
        (["2026-11-30 05:59:00"], 1, UTC_OFFSET),
        (["2026-11-30 13:59:00"], 1, CHINA),
        (["2026-11-30 13:59:00"], None, CHINA),  # else it would be from the future
        (["2026-11-30 05:59:00"], None, None),  # an old line in China's time, or a new one in UTC
        (["2026-11-30 05:59:00"], 12, None),
        (["2026-11-29 18:00:01", "2026-11-30 05:59:00"], 12, UTC_OFFSET),  # else it would be from before the pod
        (["2026-11-30 18:00:00"], 1, None),  # a zone nobody has heard of
        (["", ""], 1, None),
        ([], 1, None),
    ],
)
def test_a_line_is_neither_from_the_future_nor_from_before_its_pod(
    seconds: list[str], began_hours_ago: float | None, offset: timedelta | None
) -> None:
    earliest = None if began_hours_ago is None else MORNING - timedelta(hours=began_hours_ago)
    assert likely_offset(seconds, earliest=earliest, latest=MORNING) == offset
