"""Limits are durations above zero: a timedelta, or a number of seconds."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_pai_spot.dlc.duration import as_timedelta


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), float("-inf"), 1e300, 10**400, 1e14, 1e11, timedelta.max, 0, -1, timedelta(0)],
    ids=str,
)
def test_a_limit_that_is_no_duration_above_zero_is_refused_by_name(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^pending_timeout is "):
        as_timedelta("pending_timeout", value)


@pytest.mark.parametrize(
    ("value", "limit"),
    [(None, None), (90, timedelta(seconds=90)), (0.5, timedelta(seconds=0.5)), (timedelta(days=7), timedelta(days=7))],
)
def test_numbers_are_seconds(value: Any, limit: timedelta | None) -> None:
    assert as_timedelta("pending_timeout", value) == limit
