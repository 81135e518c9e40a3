"""Restarts that DLC may make by itself: AIMaster's, and those of elastic spot jobs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, Final

from airflow_provider_pai_spot.dlc.wire import integer_of, mapping_of, text_of

DEFAULT_MAX_RESTARTS: Final = 3
"""AIMaster's own default of `--max-num-of-job-restart` (help page)."""
_ENABLE = "--enable-job-restart"
_MAX = "--max-num-of-job-restart"


def restarts_allowed(body: Mapping[str, Any]) -> int:
    """
    Return how often DLC itself may restart a job with this CreateJob body; 0 if it may not.

    `Settings.ElasticSpotJobMaxRestartTimes` counts, too: its name says what it is, no page does (assumed).
    """
    settings = mapping_of(body.get("Settings"))
    return max(_aimaster(settings), integer_of(settings.get("ElasticSpotJobMaxRestartTimes")) or 0)


def _aimaster(settings: Mapping[str, Any]) -> int:
    if settings.get("EnableErrorMonitoringInAIMaster") is not True:
        return 0
    flags = _flags(text_of(settings.get("ErrorMonitoringArgs")))
    if flags.get(_ENABLE, "").lower() != "true":  # restarts are off unless asked for
        return 0
    limit = integer_of(flags.get(_MAX))
    return DEFAULT_MAX_RESTARTS if limit is None else max(0, limit)


def _flags(text: str) -> dict[str, str]:
    """Read `--k=v` and `--k v`; both are in use."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    flags: dict[str, str] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name, _, value = word.partition("=")
            flags[name] = value
        elif name and not flags[name]:
            flags[name] = word
    return flags
