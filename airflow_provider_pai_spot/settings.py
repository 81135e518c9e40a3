"""
The `[pai_spot]` section of airflow.cfg, read when asked, never at import.

Defaults live in `provider_info`, which Airflow reads; this module repeats none of them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, cast

from airflow.sdk.configuration import conf

SECTION = "pai_spot"
DEFAULT_CONN_ID = "pai_dlc_default"
SHORTEST_MASKED_SECRET = 5
"""Characters; Airflow's masker refuses less by default, with a warning in every task log."""


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


def submissions_per_second() -> float:
    """How many jobs one machine's workers submit a second at most; 0 for no limit."""
    return _seconds("submissions_per_second")


def poll_error_tolerance() -> float:
    """Seconds without one good answer from DLC after which waiting is given up."""
    return _seconds("poll_error_tolerance")


def unusual_wait() -> float:
    """Seconds of waiting for capacity after which the log says why; 0 for never."""
    return _seconds("unusual_wait")


def checkpoint_storage() -> str:
    """How a worker reaches the checkpoints: `''` as their URI says, `scheme://conn_id` otherwise, or `off`."""
    text = str(conf.get(SECTION, "checkpoint_storage")).strip()
    if text not in ("", "off") and not text.partition("://")[1]:
        raise ValueError(
            f"[{SECTION}] checkpoint_storage is {text!r}: expected a scheme and a connection, such as "
            "s3://oss_default, or off, or nothing."
        )
    return text


def jobs_per_list() -> int:
    """How many jobs the triggerer asks for with one ListJobs: 1 to 100, DLC's largest page."""
    return max(1, min(100, int(_seconds("jobs_per_list"))))


def log_tail_lines() -> int:
    """How many lines of each failing pod's log go into the task log."""
    return int(_seconds("log_tail_lines"))


def log_lines_per_look() -> int:
    """How many new log lines of one job are copied at one look at most; the rest is left out."""
    return max(1, int(_seconds("log_lines_per_look")))


def log_pods() -> int:
    """How many pods of one job are streamed at most."""
    return max(1, int(_seconds("log_pods")))


def log_lag() -> timedelta:
    """How late a log line may show in GetPodLogs, in whole seconds (assumed)."""
    return timedelta(seconds=int(_seconds("log_lag")))


def log_time_zone() -> str:
    """Zone of the times in front of log lines: `auto` to find it out, `UTC` or an offset such as `+08:00`."""
    return str(conf.get(SECTION, "log_time_zone")).strip()


def event_time_zone() -> str:
    """Zone of the times in front of event lines: `UTC` or an offset such as `+08:00`."""
    return str(conf.get(SECTION, "event_time_zone")).strip()


def repeat_trigger_logs() -> Literal["auto", "all", "no"]:
    """Which log lines that earlier triggers of a try have copied are copied again; see `LogOptions.repeats`."""
    return cast(Literal["auto", "all", "no"], _choice("repeat_trigger_logs", ("auto", "all", "no")))


def verdict_rules() -> str:
    """Return the import path of a user's own rules of how jobs ended, or ''."""
    return str(conf.get(SECTION, "verdict_rules")).strip()


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
