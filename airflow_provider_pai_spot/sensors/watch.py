"""What a sensor remembers from one try to the next, in Airflow's task state store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any, Self

from airflow_provider_pai_spot.attempts.ledger import StateStore

WATCH_KEY = "pai_spot_watch"
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """
    One watch over a piece of work, whose job may be replaced along the way.

    :param job_ids: the job that the sensor was pointed at, then its successors; the last one is watched now.
    :param started_at: when the first try began, ISO 8601 UTC; the sensor's `timeout` counts from here.
    :param lost: whether `job_id` was seen revoked and its successor is still to be submitted.
    :param losses: how many jobs were lost so far.
    :param generation: `ti.max_tries`; a person's clear begins a new watch.
    """

    job_ids: tuple[str, ...]
    started_at: str
    generation: int
    lost: bool = False
    losses: int = 0

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
    stored = _read(store.get(WATCH_KEY))
    if stored and stored.generation == generation and job_id in stored.job_ids:
        return stored
    return Watch(job_ids=(job_id,), started_at=now.isoformat(), generation=generation)


def keep(store: StateStore, watch: Watch) -> None:
    """Store the watch."""
    store.set(WATCH_KEY, {"version": _VERSION, **asdict(watch), "job_ids": list(watch.job_ids)})


def _read(value: Any) -> Watch | None:
    """Read what is stored; somebody may have edited it in the UI, so anything unreadable begins a new watch."""
    if not isinstance(value, Mapping) or not isinstance(value.get("job_ids"), list) or not value["job_ids"]:
        return None
    known = {field.name for field in fields(Watch)}
    try:
        watch = Watch(**{key: item for key, item in value.items() if key in known})
        watch.start  # noqa: B018 - a text that is no time raises here
    except (TypeError, ValueError):
        return None
    return replace(watch, job_ids=tuple(watch.job_ids))
