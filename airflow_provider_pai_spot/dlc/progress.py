"""The last `PAI_SPOT_PROGRESS {json}` line that a command printed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

MAX_PROGRESS_BYTES = 1_000
"""A progress object travels in the trigger's event, which must stay small; a larger one is ignored."""

# DLC puts a timestamp before each line, so the marker begins a word, not a line.
_MARKER = re.compile(r"(?:^|\s)PAI_SPOT_PROGRESS\s+(\{.*\})\s*$", re.DOTALL)


def last_progress(lines: Sequence[str]) -> dict[str, Any] | None:
    """Return the last well-formed progress object, None if there is none."""
    for line in reversed(lines):
        progress = _progress(line)
        if progress is not None:
            return progress
    return None


def shortened(progress: Mapping[str, Any] | None, limit: int) -> dict[str, Any] | None:
    """Return as many of the first entries as fit into `limit` characters of JSON; None for nothing."""
    if progress is None:
        return None
    kept: dict[str, Any] = {}
    for key, value in progress.items():
        if len(json.dumps({**kept, key: value})) <= limit:
            kept[key] = value
    return kept


def _progress(line: str) -> dict[str, Any] | None:
    found = _MARKER.search(line)
    if found is None or len(found[1]) > MAX_PROGRESS_BYTES:
        return None
    try:
        value = json.loads(found[1])
        size = len(json.dumps(value, allow_nan=False))  # JSON has no NaN; Python's reader takes it
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and size <= MAX_PROGRESS_BYTES else None
