"""Reading DLC's JSON without trust: a field of the wrong shape reads as absent, never as an exception."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def mapping_of(value: object) -> dict[str, Any]:
    """Return a JSON object's content, {} for anything else."""
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else {}


def mappings_of(value: object) -> list[dict[str, Any]]:
    """Return the JSON objects of a list, [] for anything else."""
    return [mapping_of(item) for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def text_of(value: object) -> str:
    """Return a text or number as text, '' for anything else."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    return str(value)


def integer_of(value: object) -> int | None:
    """Return an integer, also one written as text; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and re.fullmatch(r"\s*-?[0-9]{1,18}\s*", value):
        return int(value)
    return None


def time_of(value: object) -> datetime | None:
    """Return a timestamp in UTC, None if there is none; without a zone it is UTC, as all job fields are."""
    if not isinstance(value, str) or not value.strip():
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def iso(moment: datetime | None) -> str:
    """Return a timestamp as DLC writes it, '' for None."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""
