"""How log and event lines of DLC are read: the `[pai_spot]` options about them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from airflow.sdk.configuration import conf

from airflow_provider_pai_spot import settings
from airflow_provider_pai_spot.dlc.stamps import in_utc, offset_of

log = logging.getLogger(__name__)

_AUTO = "auto"
OVERWRITTEN = "overwritten"
"""Airflow 3.3's triggerer opens its log file of a try anew with each trigger. To a remote storage it appends."""
NOT_UPLOADED = "not uploaded"
"""It uploads that file when a trigger ends, and not when it is ended itself; a finished task shows remote logs only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """
    How pods' logs are followed.

    :param interval: seconds between two looks at the logs.
    :param lag: how late a line may show, in whole seconds.
    :param lines_per_look: new lines of one job that are copied at one look at most.
    :param pods: pods of one job that are followed at most.
    :param offset: how far the lines' times are ahead of UTC; None: found out from the lines.
    :param repeats: what a trigger writes again: `OVERWRITTEN`, `NOT_UPLOADED`.
    """

    interval: float
    lag: timedelta = timedelta(seconds=5)
    lines_per_look: int = 5_000
    pods: int = 8
    offset: timedelta | None = None
    repeats: frozenset[str] = frozenset()

    @classmethod
    def configured(cls, interval: float) -> LogOptions:
        """Return the options of this installation."""
        return cls(
            interval=interval,
            lag=settings.log_lag(),
            lines_per_look=settings.log_lines_per_look(),
            pods=settings.log_pods(),
            offset=_offset("log_time_zone", settings.log_time_zone()),
            repeats=_repeats(),
        )


def events_in_utc(lines: Iterable[str]) -> list[str]:
    """Let event lines show when they happened: they carry a local time without a zone (observed: China's)."""
    offset = _offset("event_time_zone", settings.event_time_zone())
    return [in_utc(line, offset) for line in lines]


def _repeats() -> frozenset[str]:
    match settings.repeat_trigger_logs():
        case "all":
            return frozenset({OVERWRITTEN, NOT_UPLOADED})
        case "no":
            return frozenset()
        case "auto":
            is_remote = conf.getboolean("logging", "remote_logging", fallback=False)
            return frozenset({NOT_UPLOADED if is_remote else OVERWRITTEN})


def _offset(option: str, zone: str) -> timedelta | None:
    """A wait must not end, and a job run on, because of how a line is shown: so an option that is wrong warns only."""
    if zone == _AUTO:
        return None
    offset = offset_of(zone)
    if offset is None:
        log.warning("[pai_spot] %s is %r: expected UTC, or an offset such as +08:00; it is ignored", option, zone)
    return offset
