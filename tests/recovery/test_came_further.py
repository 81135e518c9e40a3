"""Whether a job came further than those before it."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_pai_spot.recovery.progress import came_further, either, newer_checkpoint

CASES: dict[str, tuple[dict[str, Any] | None, list[dict[str, Any] | None], bool | None]] = {
    "nobody ever printed": (None, [], None),
    "nobody ever printed, twice": (None, [None], None),
    "the first one printed": ({"step": 1}, [], True),
    "silence after words": (None, [{"step": 5}], False),
    "further": ({"step": 6, "loss": 0.2}, [{"step": 5, "loss": 0.3}], True),
    "the same step": ({"step": 5, "loss": 0.2}, [{"step": 5, "loss": 0.3}], False),
    "back at the start": ({"step": 3}, [{"step": 5}, {"step": 2}], False),
    "an epoch where there is no step": ({"epoch": 2, "step": "?"}, [{"epoch": 1}], True),
    "a step that begins anew in each epoch": ({"step": 4, "epoch": 2}, [{"step": 5, "epoch": 1}], True),
    "a step back in the same epoch": ({"step": 4, "epoch": 1}, [{"step": 5, "epoch": 1}], False),
    "a counter that only one has": ({"percent": 4}, [{"step": 5}], True),
    "other words without a counter": ({"file": "b"}, [{"file": "a"}], True),
    "the same words without a counter": ({"file": "a"}, [{"file": "a"}], False),
    "a flag is no number": ({"step": True}, [{"step": True}], False),
}


@pytest.mark.parametrize(("progress", "before", "expected"), CASES.values(), ids=CASES)
def test_progress_is_what_lies_beyond_all_that_was_reached(
    progress: dict[str, Any] | None, before: list[dict[str, Any] | None], expected: bool | None
) -> None:
    assert came_further(progress, before) is expected


FILES: dict[str, tuple[str | None, list[str | None], bool | None]] = {
    "nobody could look": (None, ["2026-11-30T12:00:00Z a"], None),
    "an empty folder": ("", [], False),
    "the first one": ("2026-11-30T12:00:00Z a", [None, ""], True),
    "a newer one": ("2026-11-30T12:10:00Z b", ["2026-11-30T12:00:00Z a"], True),
    "the same one": ("2026-11-30T12:00:00Z a", ["2026-11-30T12:00:00Z a"], False),
    "an older one, the newest was deleted": ("2026-11-30T11:00:00Z z", ["2026-11-30T12:00:00Z a"], False),
}


@pytest.mark.parametrize(("newest", "before", "expected"), FILES.values(), ids=FILES)
def test_a_checkpoint_is_progress_if_it_is_newer(
    newest: str | None, before: list[str | None], expected: bool | None
) -> None:
    assert newer_checkpoint(newest, before) is expected


@pytest.mark.parametrize(
    ("signs", "expected"), [((None, None), None), ((False, None), False), ((False, True), True), ((None, True), True)]
)
def test_one_sign_of_progress_is_enough(signs: tuple[bool | None, ...], expected: bool | None) -> None:
    assert either(*signs) is expected
