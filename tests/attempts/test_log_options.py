"""The `[pai_spot]` options about log and event lines; a wrong one is told and costs no job."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from airflow_provider_pai_spot.attempts.log_options import NOT_UPLOADED, OVERWRITTEN, LogOptions, events_in_utc
from airflow_provider_pai_spot.dlc.stamps import CHINA

LINE = "2021-01-28 14:07:24 Created pod: x"


def test_the_defaults_are_those_of_the_configuration() -> None:
    assert LogOptions.configured(30.0) == LogOptions(interval=30.0, repeats=frozenset({OVERWRITTEN}))


@pytest.mark.parametrize(
    ("zone", "shown"),
    [("+08:00", "2021-01-28T06:07:24Z Created pod: x"), ("UTC", "2021-01-28T14:07:24Z Created pod: x")],
)
def test_events_show_when_they_happened(monkeypatch: pytest.MonkeyPatch, zone: str, shown: str) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__EVENT_TIME_ZONE", zone)
    assert events_in_utc([LINE]) == [shown]


def test_a_zone_that_is_none_leaves_lines_as_they_are_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__EVENT_TIME_ZONE", "Peking")
    with caplog.at_level(logging.WARNING):
        assert events_in_utc([LINE]) == [LINE]
    assert "[pai_spot] event_time_zone is 'Peking': expected UTC, or an offset such as +08:00" in caplog.text


@pytest.mark.parametrize(("zone", "offset"), [("auto", None), ("UTC", timedelta(0)), ("+08:00", CHINA)])
def test_the_zone_of_log_lines_is_found_out_or_told(
    monkeypatch: pytest.MonkeyPatch, zone: str, offset: timedelta | None
) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__LOG_TIME_ZONE", zone)
    assert LogOptions.configured(30.0).offset == offset


@pytest.mark.parametrize(
    ("choice", "remote", "repeats"),
    [
        ("auto", "False", {OVERWRITTEN}),
        ("auto", "True", {NOT_UPLOADED}),
        ("all", "True", {OVERWRITTEN, NOT_UPLOADED}),
        ("no", "False", set()),
    ],
)
def test_lines_are_written_again_where_airflow_does_not_keep_them(
    monkeypatch: pytest.MonkeyPatch, choice: str, remote: str, repeats: set[str]
) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__REPEAT_TRIGGER_LOGS", choice)
    monkeypatch.setenv("AIRFLOW__LOGGING__REMOTE_LOGGING", remote)
    assert LogOptions.configured(30.0).repeats == repeats
