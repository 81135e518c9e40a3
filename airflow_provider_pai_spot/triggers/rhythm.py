"""
How fast one account of DLC is asked: slower by half when it throttles, faster again by steps as it stays quiet.

Pure arithmetic over a monotonic clock that the caller reads. DLC publishes no limits of its own.
"""

from __future__ import annotations

SHORTEST_GAP = 0.1
"""Seconds between two ListJobs at least: a triggerer that restarts asks for everything at once."""
SINGLE_GAP = 0.02
"""Seconds between two GetJob at least: many jobs can end in the same moment."""
_SLOWEST = 1 / 32
_RISE = 0.5  # of the full pace, for each period without throttling
_QUIET = 0.5  # periods after a throttled call before the pace rises
_ONE_EVENT = 1.0  # seconds within which further throttled calls were under way already
_LONGEST_GAP = 2.0  # periods
_LONGEST_PAUSE = 120.0
"""Seconds; whether DLC's x-acs-retry-after counts milliseconds is not documented, and nobody waits for an hour."""


class Rhythm:
    """
    The pace of all calls for one account: a share of the full one, and a moment before which nothing is sent.

    :param period: seconds in which every job is looked at once at full pace; what rising is counted in.
    """

    def __init__(self, period: float) -> None:
        self.period = period
        self.open_at = 0.0
        """Before this moment nothing is sent, because DLC said so."""
        self._share = 1.0
        self._since = 0.0
        self._halved_at: float | None = None

    def share(self, now: float) -> float:
        """Return the present fraction of the full pace, above 0 and at most 1."""
        quiet = now - self._since - _QUIET * self.period
        return min(1.0, self._share + max(0.0, quiet) / self.period * _RISE)

    def wait(self, now: float, retry_after: float | None) -> None:
        """
        Send nothing for a while.

        :param retry_after: seconds that DLC asks to wait, whatever for; None if it does not.
        """
        if retry_after:
            self.open_at = max(self.open_at, now + min(retry_after, _LONGEST_PAUSE))

    def throttled(self, now: float, retry_after: float | None = None) -> bool:
        """
        Take a throttled call; return whether the pace was full until now.

        :param retry_after: seconds DLC asks to wait.
        """
        was = self.share(now)
        self.wait(now, retry_after)
        if self._halved_at is None or now - self._halved_at >= _ONE_EVENT:
            self._share = max(_SLOWEST, was / 2)
            self._halved_at = now
        self._since = now
        return was >= 1.0

    def gap(self, now: float, full: float) -> float:
        """
        Return the seconds between two calls now.

        :param full: the same at full pace.
        """
        share = self.share(now)
        if share >= 1.0:
            return SHORTEST_GAP
        return min(max(full, SHORTEST_GAP) / share, max(_LONGEST_GAP * self.period, SHORTEST_GAP))

    def single_gap(self, now: float) -> float:
        """Return the seconds between two calls for one job each."""
        return SINGLE_GAP / self.share(now)
