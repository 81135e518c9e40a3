"""How long a stop is waited for: long for DLC to take it, then shortly for it to show."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from airflow_provider_pai_spot.exceptions import PaiDlcThrottled, PaiDlcUnavailable

_TAKEN_WITHIN = timedelta(minutes=9)
"""A thousand jobs may pass one limit together, and DLC take few stops a second; Airflow's own deferral timeout, which
ends the trigger, comes 10 minutes after a deadline."""
_SHOWS_WITHIN = timedelta(seconds=60)
"""Time for a job to be over once DLC took its stop, or refused it (design: no event leaves a live job)."""


class StopPatience:
    """
    The patience with one stop, which begins now.

    :param now: the current time, aware UTC.
    :param taken_within: how long it may take altogether.
    :param shows_within: how long the job may go on after DLC answered.
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        *,
        taken_within: timedelta = _TAKEN_WITHIN,
        shows_within: timedelta = _SHOWS_WITHIN,
    ) -> None:
        self._now = now
        self._shows_within = shows_within
        self._ends_at = now() + taken_within
        self._shows_by: datetime | None = None
        self._seen = False

    def told(self, answer: Any) -> None:
        """Take what DLC answered to StopJob; throttling or an outage is no answer."""
        if self._shows_by is None and not isinstance(answer, PaiDlcThrottled | PaiDlcUnavailable):
            self._shows_by = self._now() + self._shows_within

    def looked(self, *, good: bool) -> None:
        """Take that the job was looked at, whether in vain or not."""
        self._seen = self._seen or (good and self._shows_by is not None)

    @property
    def is_over(self) -> bool:
        """Whether to give up; not before the job was seen once after DLC had answered, however long that took."""
        now = self._now()
        shows_no_more = self._shows_by is not None and now >= self._shows_by and self._seen
        return shows_no_more or now >= self._ends_at
