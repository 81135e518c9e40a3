"""What a sensor saw of its job, from one look to the next: each look may be a process of its own (`reschedule`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from airflow_provider_pai_spot.attempts.follow import GONE_PATIENCE
from airflow_provider_pai_spot.attempts.ledger import StateStore
from airflow_provider_pai_spot.attempts.queue_word import Spoken
from airflow_provider_pai_spot.attempts.unseen import gone, not_observed
from airflow_provider_pai_spot.dlc.outcome import JobOutcome
from airflow_provider_pai_spot.exceptions import PaiDlcError, PaiDlcNotFound

LOOKS_KEY = "pai_spot_looks"
_LONGEST = 1e9  # thirty years


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """
    What is remembered.

    :param try_number: an outage is borne anew in each try.
    :param missed_since: the first of the looks that found no answer, ISO 8601 UTC; empty if DLC answers.
    :param gone_since: the first of the looks that DLC answered with 404.
    :param spoken_since: of `Spoken`, as are the two after it.
    """

    job_id: str
    try_number: int
    status: str = ""
    missed_since: str = ""
    gone_since: str = ""
    spoken_since: str = ""
    spoken_after: float = 0.0
    spoken_refused: bool = False


class Looks:
    """
    Says what changed, once, and how long a DLC that does not tell is waited for.

    :param tolerance: seconds without an answer after which waiting is given up.
    :param now: the current time, aware UTC.
    """

    def __init__(
        self,
        store: StateStore,
        *,
        job_id: str,
        try_number: int,
        tolerance: float,
        now: Callable[[], datetime],
        log: Any,
    ) -> None:
        self._store = store
        self._blank = _Seen(job_id=job_id, try_number=try_number)
        self._tolerance = tolerance
        self._now = now
        self._log = log

    def answered(self, status: str) -> None:
        """Take a look that DLC answered."""
        seen = self._recall()
        if seen.missed_since:
            self._log.info("%s: DLC answers again", seen.job_id)
        if seen.status != status:
            self._log.info("%s: %s", seen.job_id, status)
        self._remember(seen, replace(seen, status=status, missed_since="", gone_since=""))

    @property
    def spoken(self) -> Spoken:
        """What was said about the wait for capacity."""
        seen = self._recall()
        return Spoken(seen.spoken_since, seen.spoken_after, seen.spoken_refused)

    def spoke(self, spoken: Spoken) -> None:
        """Remember what was said, for a next look that may be another process."""
        seen = self._recall()
        said = replace(seen, spoken_since=spoken.since, spoken_after=spoken.after, spoken_refused=spoken.refused)
        self._remember(seen, said)

    def missed(self, error: PaiDlcError) -> JobOutcome | None:
        """Take a look that failed; the outcome if it is time to give up, None while it may still pass."""
        seen, now = self._recall(), self._now()
        if not seen.missed_since:
            self._log.warning("%s: DLC could not be asked, waiting on: %s", seen.job_id, error)
        gone_since = (seen.gone_since or now.isoformat()) if isinstance(error, PaiDlcNotFound) else seen.gone_since
        borne = replace(seen, missed_since=seen.missed_since or now.isoformat(), gone_since=gone_since)
        outcome = self._verdict(borne, error, now)
        # Given up: whoever goes on all the same (a retry, silent_fail) bears it anew.
        self._remember(seen, borne if outcome is None else replace(borne, missed_since="", gone_since=""))
        return outcome

    def _verdict(self, seen: _Seen, error: PaiDlcError, now: datetime) -> JobOutcome | None:
        if isinstance(error, PaiDlcNotFound):
            if _seconds(seen.gone_since, now) >= GONE_PATIENCE:
                return gone(seen.job_id, seen.status, error)
        elif _seconds(seen.missed_since, now) >= self._tolerance:
            return not_observed(seen.job_id, seen.status, error)
        return None

    def _recall(self) -> _Seen:
        """Read what is stored; anything that was not written here, for this job, counts as nothing seen."""
        value = self._store.get(LOOKS_KEY)
        if not isinstance(value, Mapping) or value.get("job_id") != self._blank.job_id:
            return self._blank
        status = value.get("status")
        seen = replace(
            self._blank,
            status=status if isinstance(status, str) else "",
            spoken_since=_time(value.get("spoken_since")),
            spoken_after=_number(value.get("spoken_after")),
            spoken_refused=value.get("spoken_refused") is True,
        )
        if value.get("try_number") != self._blank.try_number:
            return seen
        return replace(seen, missed_since=_time(value.get("missed_since")), gone_since=_time(value.get("gone_since")))

    def _remember(self, before: _Seen, after: _Seen) -> None:
        if after != before:
            self._store.set(LOOKS_KEY, asdict(after))


def _seconds(since: str, now: datetime) -> float:
    return (now - datetime.fromisoformat(since)).total_seconds()


def _number(value: Any) -> float:
    """Return a stored number of seconds, 0 if it is none."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= _LONGEST else 0.0


def _time(value: Any) -> str:
    """Return a stored time, '' if it is none that can be counted from."""
    try:
        return value if isinstance(value, str) and datetime.fromisoformat(value).tzinfo else ""
    except ValueError:
        return ""
