"""What a sensor remembers from one try to the next, in Airflow's task state store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Self

from airflow_provider_pai_spot.attempts.ledger import StateStore

WATCH_KEY = "pai_spot_watch"
_VERSION = 1
_TYPES: Mapping[str, type] = {"started_at": str, "generation": int, "lost": bool, "losses": int, "try_number": int}


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """
    One watch over a piece of work, whose job may be replaced along the way.

    :param job_ids: the job that the sensor was pointed at, then its successors; the last one is watched now.
    :param started_at: when the first try began, ISO 8601 UTC; the sensor's `timeout` counts from here.
    :param lost: whether `job_id` was seen revoked and its successor is still to be submitted.
    :param losses: how many jobs were lost so far.
    :param generation: `ti.max_tries`; a person's clear begins a new watch.
    :param try_number: the try of Airflow that watches; 0 where an older release did not store it.
    """

    job_ids: tuple[str, ...]
    started_at: str
    generation: int
    lost: bool = False
    losses: int = 0
    try_number: int = 0

    @property
    def job_id(self) -> str:
        """The job that is watched now."""
        return self.job_ids[-1]

    @property
    def start(self) -> datetime:
        """When the first try began."""
        return datetime.fromisoformat(self.started_at)

    def after_loss(self) -> Self:
        """Return the watch, knowing that its job was revoked."""
        return replace(self, lost=True, losses=self.losses + (not self.lost))

    def over(self, job_id: str) -> Self:
        """Return the watch over a successor."""
        return replace(self, job_ids=(*self.job_ids, job_id), lost=False)


def open_watch(store: StateStore, job_id: str, generation: int, now: datetime) -> Watch:
    """
    Return the stored watch, or a new one if the sensor was pointed at other work since.

    The submit task's XCom is overwritten with each successor's id, so `job_id` may be the first of them or any later.
    """
    stored = _read(store.get(WATCH_KEY), now)
    if stored and stored.generation == generation and job_id in stored.job_ids:
        return stored
    return Watch(job_ids=(job_id,), started_at=now.isoformat(), generation=generation)


def is_left_to_earlier_try(store: StateStore, try_number: int, now: datetime) -> bool:
    """Whether the sensor was last left to its trigger by an earlier try than this one, which has not begun yet."""
    stored = _read(store.get(WATCH_KEY), now)
    return stored is not None and 0 < stored.try_number < try_number


def keep(store: StateStore, watch: Watch) -> None:
    """Store the watch."""
    store.set(WATCH_KEY, {"version": _VERSION, **asdict(watch), "job_ids": list(watch.job_ids)})


def _read(value: Any, now: datetime) -> Watch | None:
    """
    Read what is stored; somebody may have edited it in the UI, so anything that is not as written begins a new watch.

    That costs one more look at the job at most. A guess could cost a job: `lost` submits one.
    """
    if not isinstance(value, Mapping):
        return None
    job_ids = value.get("job_ids")
    if not isinstance(job_ids, list) or not job_ids or not all(isinstance(one, str) and one for one in job_ids):
        return None
    known = {key: value[key] for key in _TYPES if key in value}
    if not {"started_at", "generation"} <= set(known) or any(type(known[key]) is not _TYPES[key] for key in known):
        return None
    watch = Watch(**known | {"job_ids": tuple(job_ids)})
    return watch if watch.losses >= 0 and _has_begun(watch, now) else None


def _has_begun(watch: Watch, now: datetime) -> bool:
    try:
        return watch.start <= now
    except (TypeError, ValueError):  # no time, or one without a zone
        return False
