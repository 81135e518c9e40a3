"""
The `[pai_spot]` section of airflow.cfg, read when asked, never at import.

Defaults live in `provider_info`, which Airflow reads; this module repeats none of them.
"""

from __future__ import annotations

from typing import Literal, cast

from airflow.sdk.configuration import conf

SECTION = "pai_spot"
DEFAULT_CONN_ID = "pai_dlc_default"


def namespace() -> str:
    """Return what tells this Airflow installation's jobs from another's, or ''."""
    return str(conf.get(SECTION, "namespace")).strip()


def bid_grid() -> Literal["refuse", "warn"]:
    """What happens to a bid off the documented 10 % steps: `refuse` or `warn`."""
    return cast(Literal["refuse", "warn"], _choice("bid_grid", ("refuse", "warn")))


def verify_spot_terms() -> Literal["stop", "warn", "off"]:
    """What happens when a created job does not show the spot terms that were asked for."""
    return cast(Literal["stop", "warn", "off"], _choice("verify_spot_terms", ("stop", "warn", "off")))


def trigger_min_dwell() -> float:
    """Seconds a trigger waits at least before it fires (Airflow 3.3 can fail a try that resumes too fast)."""
    return _seconds("trigger_min_dwell")


def submit_lookup_patience() -> float:
    """Seconds to look for a job that may have been created before another one is submitted."""
    return _seconds("submit_lookup_patience")


def poll_error_tolerance() -> float:
    """Seconds without one good answer from DLC after which waiting is given up."""
    return _seconds("poll_error_tolerance")


def unusual_wait() -> float:
    """Seconds of waiting for capacity after which the log says why; 0 for never."""
    return _seconds("unusual_wait")


def log_tail_lines() -> int:
    """How many lines of each failing pod's log go into the task log."""
    return int(_seconds("log_tail_lines"))


def _seconds(option: str) -> float:
    text = str(conf.get(SECTION, option))
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if value < 0:
        raise ValueError(f"[{SECTION}] {option} is {text!r}: expected a number that is not negative.")
    return value


def _choice(option: str, allowed: tuple[str, ...]) -> str:
    text = str(conf.get(SECTION, option)).strip()
    if text not in allowed:
        raise ValueError(f"[{SECTION}] {option} is {text!r}: expected one of {', '.join(allowed)}.")
    return text
