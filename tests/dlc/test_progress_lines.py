"""The last `PAI_SPOT_PROGRESS {json}` of a log."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.dlc.progress import MAX_PROGRESS_BYTES, last_progress

STAMP = "2021-01-28 14:07:45  "


def test_the_last_progress_line_counts() -> None:
    lines = [f'{STAMP}PAI_SPOT_PROGRESS {{"step": 1}}', f'{STAMP}PAI_SPOT_PROGRESS {{"step": 2}}', f"{STAMP}bye"]
    assert last_progress(lines) == {"step": 2}


@pytest.mark.parametrize(
    "line",
    [
        'PAI_SPOT_PROGRESS {"step": 9',
        "PAI_SPOT_PROGRESS [9]",
        "PAI_SPOT_PROGRESS 9",
        'PAI_SPOT_PROGRESS {"loss": NaN}',
        'PAI_SPOT_PROGRESS {"loss": 1e999}',
        'MY_PAI_SPOT_PROGRESS {"step": 9}',
        "+ echo 'PAI_SPOT_PROGRESS {\"step\": 9}'",
        'PAI_SPOT_PROGRESS {"a":' * 50,
        f'PAI_SPOT_PROGRESS {{"note": "{"x" * MAX_PROGRESS_BYTES}"}}',
    ],
    ids=[
        "cut off",
        "a list",
        "a number",
        "NaN is not JSON",
        "infinity is not JSON",
        "another word",
        "an echo of the shell",
        "nested without end",
        "too large",
    ],
)
def test_a_line_that_is_not_progress_is_passed_over(line: str) -> None:
    assert last_progress(['PAI_SPOT_PROGRESS {"step": 1}', STAMP + line]) == {"step": 1}


@given(st.lists(st.text()))
def test_no_log_makes_it_fail(lines: list[str]) -> None:
    assert last_progress(lines) is None


VALUES = st.one_of(st.integers(-(10**9), 10**9), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=9))


@given(st.dictionaries(st.text(max_size=9), VALUES, max_size=3))
def test_any_small_object_is_read_back(progress: dict[str, Any]) -> None:
    assert last_progress([f"{STAMP}PAI_SPOT_PROGRESS {json.dumps(progress)}"]) == progress
