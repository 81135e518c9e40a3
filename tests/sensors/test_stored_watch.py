"""What is stored of a watch, and what somebody may have made of it in Airflow's UI."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.attempts.ledger import MemoryStore
from airflow_provider_pai_spot.sensors.watch import WATCH_KEY, Watch, is_left_to_earlier_try, keep, open_watch

NOW = datetime(2026, 11, 30, 22, 0, tzinfo=UTC)
EARLIER = (NOW - timedelta(hours=1)).isoformat()
OLDER = {"job_ids": ["dlc1"], "started_at": EARLIER, "generation": 3, "lost": True, "losses": 1}
WRITTEN = OLDER | {"try_number": 2}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def opened(stored: Any) -> Watch:
    store = MemoryStore()
    store.set(WATCH_KEY, stored)
    return open_watch(store, "dlc1", 3, NOW)


def test_what_was_written_is_read() -> None:
    store = MemoryStore()
    watch = Watch(job_ids=("dlc0", "dlc1"), started_at=EARLIER, generation=3).after_loss()
    keep(store, watch)
    assert open_watch(store, "dlc0", 3, NOW) == open_watch(store, "dlc1", 3, NOW) == watch
    assert opened(WRITTEN | {"of_a_newer_release": 1}).lost


@pytest.mark.parametrize(
    ("stored", "now_begins", "is_left"),
    [(WRITTEN, 3, True), (WRITTEN, 2, False), (OLDER, 3, False), (None, 3, False), ("edited", 3, False)],
    ids=["by an earlier try", "by this one", "by an older release", "never", "unreadable"],
)
def test_whose_trigger_it_was_left_to(stored: Any, now_begins: int, is_left: bool) -> None:
    store = MemoryStore()
    store.set(WATCH_KEY, stored)
    assert is_left_to_earlier_try(store, now_begins, NOW) is is_left


def test_what_an_older_release_stored_is_read() -> None:
    assert (opened(OLDER).lost, opened(OLDER).try_number) == (True, 0)


@pytest.mark.parametrize(
    "edited",
    [
        {"started_at": "2026-11-30T20:00:00"},
        {"started_at": "yesterday"},
        {"started_at": 1764540000},
        {"started_at": "9999-12-31T23:59:59+00:00"},
        {"lost": "false"},
        {"lost": 1},
        {"losses": "1"},
        {"losses": -1},
        {"losses": True},
        {"try_number": "2"},
        {"try_number": None},
        {"generation": "3"},
        {"generation": 3.0},
        {"job_ids": "dlc1"},
        {"job_ids": ["dlc1", 2]},
        {"job_ids": ["dlc1", ""]},
        {"job_ids": []},
    ],
    ids=str,
)
def test_an_edited_watch_begins_anew_and_submits_nothing(edited: dict[str, Any]) -> None:
    watch = opened(WRITTEN | edited)
    assert (watch.lost, watch.losses, watch.job_ids, watch.start) == (False, 0, ("dlc1",), NOW)


@pytest.mark.parametrize("missing", ["job_ids", "started_at", "generation"])
def test_a_watch_without_its_essentials_begins_anew(missing: str) -> None:
    assert not opened({key: value for key, value in WRITTEN.items() if key != missing}).lost


@given(st.dictionaries(st.sampled_from(sorted(WRITTEN)), JSON))
def test_nothing_that_is_stored_crashes_the_sensor(edited: dict[str, Any]) -> None:
    watch = opened(WRITTEN | edited)
    assert watch.start <= NOW
    assert watch.job_ids
    assert type(watch.lost) is bool
