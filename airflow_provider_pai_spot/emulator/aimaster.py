"""AIMaster, DLC's automatic fault tolerance: what a job's Settings ask of it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any


def monitoring_flags(arguments: str) -> dict[str, str]:
    """Read Settings.ErrorMonitoringArgs, where both `--key=value` and `--key value` are in use."""
    flags: dict[str, str] = {}
    waiting = ""
    for word in shlex.split(arguments):
        if word.startswith("--"):
            key, separator, value = word[2:].partition("=")
            flags[key] = value
            waiting = "" if separator else key
        elif waiting:
            flags[waiting], waiting = word, ""
    return flags


def is_on(settings: Mapping[str, Any]) -> bool:
    """Whether AIMaster watches the job."""
    return settings.get("EnableErrorMonitoringInAIMaster") is True


def restarts_allowed(settings: Mapping[str, Any], default: int) -> int:
    """Return how often AIMaster may start the job again; 0 if it is off, or restarting is."""
    if not is_on(settings):
        return 0
    flags = monitoring_flags(str(settings.get("ErrorMonitoringArgs") or ""))
    if flags.get("enable-job-restart", "False").lower() != "true":
        return 0
    return int(flags.get("max-num-of-job-restart") or default)


def restarts_pods_alone(settings: Mapping[str, Any]) -> bool:
    """Whether only the lost pods start again (Async) rather than the whole job (Sync, the default)."""
    flags = monitoring_flags(str(settings.get("ErrorMonitoringArgs") or ""))
    return flags.get("job-execution-mode", "Sync") == "Async"
