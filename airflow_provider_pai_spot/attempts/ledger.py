"""
What is stored about a task instance's attempts, in Airflow's task state store.

The store survives tries, deferrals, restarts and a person's clear; it goes with the DAG run. One key holds one
versioned JSON value, so that intent and submission can never be read apart from each other.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from types import NoneType
from typing import Any, NamedTuple, Protocol, Self

from airflow_provider_pai_spot.attempts.places import NOWHERE, Place
from airflow_provider_pai_spot.dlc.outcome import StopReason

STORE_KEY = "pai_spot"
STORE_VERSION = 1
HANDED_OVER = "handed_over"
"""Verdict of a job whose id was returned without waiting for its end (two-task form)."""
_ID_LENGTH = 16
_MAX_ATTEMPTS = 45  # at most about 50 kB: Airflow warns above 64 kB


class StateStore(Protocol):
    """The part of Airflow's `task_state_store` that is used here."""

    def get(self, key: str, default: Any = None) -> Any:
        """Return the stored JSON value."""
        ...

    def set(self, key: str, value: Any) -> None:
        """Store a JSON value."""
        ...


class MemoryStore:
    """A store that lasts as long as the process, for callers without an Airflow around them."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def get(self, key: str, default: Any = None) -> Any:
        """Return the stored JSON value."""
        return self._values.get(key, default)

    def set(self, key: str, value: Any) -> None:
        """Store a JSON value."""
        self._values[key] = value


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """
    One submission of the task instance's work.

    :param number: 0 for the first job, then counting up over all tries.
    :param generation: `ti.max_tries` at submission; a person's clear changes it, a retry does not.
    :param request_hash: hash of the request as the task asks for it, before recovery changes a bid.
    :param key_hashes: a short hash for each top-level key of the request, to name the keys that differ.
    :param try_number: the try of Airflow that submitted it; budgets of revocations are counted by it.
    :param job_id: DLC's id; None while the submission is an intent whose outcome is not known.
    :param submitting_at: when the intent was stored, ISO 8601 UTC.
    :param bid: the bid as text, for the timeline.
    :param checkpoint_folder: 1, then one more for each time a person clears a success.
    :param consumed: whether the job's end was acted upon.
    :param verdict: how the job ended, once consumed.
    :param cause: what ended it, once consumed.
    :param stop_reason: why we stopped it, stored before StopJob is sent.
    :param ecs_spec: the instance type of the roles that bid.
    :param on_demand: whether these roles run at list price instead.
    :param reason: why recovery submitted it, and what it changed; '' for what the task itself asks for.
    :param restarts: restarts that DLC itself made (AIMaster).
    :param progress: what the command last printed of its progress, shortened; None for nothing.
    :param checkpoint: time and name of the newest file in its checkpoint folder, '' for none; None if not looked at.
    :param progressed: whether it came further than the attempts before it; None where that cannot be seen.
    :param ledger: id of the ledger that submitted it; also a tag of the job.
    :param terms_read: whether the job was seen to bid, or cannot be.
    :param total_deadline: when `total_timeout` of the try that watched it last ends it, ISO 8601 UTC; '' for never.
    :param execution_deadline: the same for `execution_timeout`.
    :param place: where it was sent to.
    """

    number: int
    generation: int
    request_hash: str
    key_hashes: Mapping[str, str] = field(default_factory=dict)
    try_number: int = 1
    job_id: str | None = None
    submitting_at: str = ""
    bid: str = ""
    checkpoint_folder: int = 1
    consumed: bool = False
    verdict: str = ""
    cause: str = ""
    stop_reason: str = ""
    seconds_pending: float = 0.0
    seconds_running: float = 0.0
    namespace: str = ""
    ledger: str = ""
    terms_read: bool = False
    ecs_spec: str = ""
    on_demand: bool = False
    reason: str = ""
    restarts: int = 0
    progress: Mapping[str, Any] | None = None
    checkpoint: str | None = None
    progressed: bool | None = None
    total_deadline: str = ""
    execution_deadline: str = ""
    place: Place = NOWHERE

    @property
    def terms(self) -> str:
        """What it costs at most, in words."""
        return "on demand, at list price" if self.on_demand else f"bid {self.bid}"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        progress = None if self.progress is None else dict(self.progress)
        stored = {**asdict(self), "key_hashes": dict(self.key_hashes), "progress": progress}
        return stored | {"place": list(self.place) if self.place.is_known else []}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the JSON form; keys of a newer release are ignored."""
        known = {item.name for item in fields(cls)}
        values = {key: value for key, value in data.items() if key in known}
        return cls(**values | {"place": Place.read(data.get("place", ()))})


class AttemptLedger:
    """
    The attempts of one task instance, oldest first, written through to the store at every change.

    :param store: Airflow's `context["task_state_store"]`, or a `MemoryStore`.
    """

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._is_held = False
        stored = _read(store.get(STORE_KEY))
        self._attempts = stored.attempts
        self._tally = stored.tally
        self.ledger_id = stored.ledger_id or uuid.uuid4().hex[:_ID_LENGTH]
        """Goes with the DAG run, as the store does: a run that is deleted and created again has another one."""

    @property
    def is_blank(self) -> bool:
        """Whether no attempt is known: the first try, or a store that was lost."""
        return not self._attempts

    def adopt(self, ledger_id: str) -> None:
        """Go on as the ledger that was lost, whose jobs carry its id."""
        self.ledger_id = ledger_id or self.ledger_id

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """All attempts known, oldest first."""
        return tuple(self._attempts)

    @property
    def newest(self) -> Attempt | None:
        """The attempt with the highest number, None before the first."""
        return self._attempts[-1] if self._attempts else None

    def put(self, attempt: Attempt) -> Attempt:
        """Add an attempt, or replace the one of the same number."""
        others = [one for one in self._attempts if one.number != attempt.number]
        self._attempts = sorted([*others, attempt], key=lambda one: one.number)
        self._write()
        return attempt

    def change(self, number: int, **changes: Any) -> Attempt:
        """Store some new values for one attempt."""
        return self.put(replace(self.get(number), **changes))

    def get(self, number: int) -> Attempt:
        """Return one attempt; KeyError if it is not known."""
        for attempt in self._attempts:
            if attempt.number == number:
                return attempt
        raise KeyError(number)

    def find(self, job_id: str) -> Attempt | None:
        """Return the attempt with this job id."""
        return next((one for one in self._attempts if one.job_id == job_id), None)

    def drop(self, number: int) -> None:
        """Forget an intent that certainly came to nothing."""
        self._attempts = [one for one in self._attempts if one.number != number]
        self._write()

    def count_loss(self, try_number: int, generation: int) -> None:
        """Count a loss against the budget of the try that acts on it; trimming attempts does not uncount it."""
        tally = self.tally(try_number, generation)
        self._tally = tally._replace(losses=tally.losses + 1, losses_in_all=tally.losses_in_all + 1)
        self._write()

    def count_wait(self, try_number: int, generation: int) -> None:
        """Count a job that waited in vain, and is to be followed by another, against the same budget."""
        tally = self.tally(try_number, generation)
        self._tally = tally._replace(waits=tally.waits + 1)
        self._write()

    @contextlib.contextmanager
    def in_one_write(self) -> Iterator[None]:
        """Store what is changed in this block at its end: should the process die, all of it is there or nothing."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
        self._write()

    def tally(self, try_number: int, generation: int) -> Tally:
        """Return what a try of Airflow has acted upon so far, and its generation with it."""
        known = self._tally
        if known.generation != generation:
            return Tally(generation, try_number)
        if known.try_number != try_number:
            return Tally(generation, try_number, losses_in_all=known.losses_in_all)
        return known

    def _write(self) -> None:
        if self._is_held:
            return
        kept = self._attempts[-_MAX_ATTEMPTS:]
        slim = [replace(one, key_hashes={}, total_deadline="", execution_deadline="") for one in kept[:-1]] + kept[-1:]
        value = {
            "version": STORE_VERSION,
            "ledger": self.ledger_id,
            "losses": list(self._tally),
            "attempts": [one.to_dict() for one in slim],
        }
        self._store.set(STORE_KEY, value)


class Tally(NamedTuple):
    """
    Jobs that were acted upon and followed by another, or were to be.

    :param losses: of one try of Airflow.
    :param waits: ended by `pending_timeout`, of the same try.
    :param losses_in_all: of all tries of the generation.
    """

    generation: int
    try_number: int
    losses: int = 0
    waits: int = 0
    losses_in_all: int = 0


_NOTHING = Tally(0, 0)


class _Stored(NamedTuple):
    attempts: list[Attempt]
    tally: Tally
    ledger_id: str


def _read(value: Any) -> _Stored:
    """Read what is stored; somebody may have edited it in the UI, so anything unreadable counts as lost."""
    if not isinstance(value, Mapping) or not isinstance(value.get("attempts"), list):
        return _Stored([], _NOTHING, "")
    try:
        attempts = sorted(map(_attempt, value["attempts"]), key=lambda one: one.number)
        tally = _read_tally(value.get("losses") or _NOTHING)
    except (TypeError, ValueError, AttributeError):
        return _Stored([], _NOTHING, "")
    ledger_id = value.get("ledger")
    return _Stored(attempts, tally, ledger_id if isinstance(ledger_id, str) else "")


def _read_tally(value: Any) -> Tally:
    """Read the counts; an older release stored no more than the losses of the try."""
    tally = Tally(*map(int, value))
    return tally._replace(losses_in_all=max(tally.losses_in_all, tally.losses))


_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("number", "generation", "try_number", "checkpoint_folder", "restarts"), (int,)),
    **dict.fromkeys(("request_hash", "submitting_at", "bid", "verdict", "cause", "stop_reason"), (str,)),
    **dict.fromkeys(("namespace", "ledger", "ecs_spec", "reason"), (str,)),
    **dict.fromkeys(("total_deadline", "execution_deadline"), (str,)),
    "job_id": (str, NoneType),
    "checkpoint": (str, NoneType),
    "key_hashes": (Mapping,),
    "on_demand": (bool,),
    "terms_read": (bool,),
    "progress": (Mapping, NoneType),
    "progressed": (bool, NoneType),
}


def _attempt(data: Mapping[str, Any]) -> Attempt:
    """Read one attempt; raises for anything that `_write` would not have written."""
    attempt = Attempt.from_dict(data)
    for name, kinds in _KINDS.items():
        value = getattr(attempt, name)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise TypeError(name)
    if attempt.job_id == "":
        raise TypeError("job_id")
    for moment in filter(None, (attempt.submitting_at, attempt.total_deadline, attempt.execution_deadline)):
        datetime.fromisoformat(moment).astimezone(UTC)
    if attempt.stop_reason:
        StopReason(attempt.stop_reason)
    return attempt
