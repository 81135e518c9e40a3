"""
Whether a live job is an orphan: a pure table, which a test walks cell by cell.

| Airflow says about the owner | one look | two looks, a minute apart, that say the same |
|---|---|---|
| unknown (error, no answer, a state we do not know) | leave | leave |
| alive, and no other job of this task instance is newer | leave | leave |
| alive, and Airflow names a newer job, or a twin, as the one it waits for | leave | stop |
| alive, with a newer job or a twin, and Airflow does not name one of them | leave | leave |
| finished or gone | leave | stop |

Each stop has to wait out the grace as well: 10 minutes since the job was created and, where Airflow tells when, since
its owner ended.

*Newer jobs and twins.* The next attempt is submitted only once the last one is over, so two live jobs of one task
instance are an accident: a CreateJob whose answer was lost, or a lost state store. Which of them Airflow waits for is
not guessed from numbers or age (after a run was deleted and created again they can say the opposite): it is read from
the task instance's `job_id` XCom, which is pushed at each submission and each re-attachment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from airflow_provider_pai_spot.attempts.identity import Owner
from airflow_provider_pai_spot.dlc.duration import duration
from airflow_provider_pai_spot.sweep.owners import OwnerState, Presence

GRACE: Final = timedelta(minutes=10)
"""Since the job was created, and since its owner ended: whoever stops jobs in an orderly way is through by then."""
BETWEEN_LOOKS: Final = timedelta(minutes=1)


class Reason(StrEnum):
    """Why a job is left alone or stopped."""

    OWNER_UNKNOWN = "owner_unknown"
    OWNER_ALIVE = "owner_alive"
    RIVALS_UNCLEAR = "rivals_unclear"
    AGE_UNKNOWN = "age_unknown"
    JUST_CREATED = "just_created"
    JUST_ENDED = "just_ended"
    SEEN_ONCE = "seen_once"
    LOOKS_DIFFER = "looks_differ"
    NOT_AS_WE_MAKE_THEM = "not_as_we_make_them"
    OWNER_FINISHED = "owner_finished"
    OWNER_GONE = "owner_gone"
    SUPERSEDED = "superseded"
    TWIN = "twin"


STOP_REASONS: Final = frozenset({Reason.OWNER_FINISHED, Reason.OWNER_GONE, Reason.SUPERSEDED, Reason.TWIN})


@dataclass(frozen=True, slots=True)
class Decision:
    """
    What becomes of a job.

    :param words: the reason, for people.
    """

    reason: Reason
    words: str

    @property
    def stops(self) -> bool:
        """Whether the job is an orphan."""
        return self.reason in STOP_REASONS


@dataclass(frozen=True, slots=True)
class Kin:
    """A job of some task instance, in whatever status."""

    job_id: str
    attempt: int
    created_at: datetime | None


class Standing(StrEnum):
    """What a live job is among the jobs of its task instance."""

    NEWEST = "newest"
    SUPERSEDED = "superseded"
    TWIN = "twin"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """
    What one look found about one live job.

    :param held_job_id: the job Airflow waits for, '' where it does not say.
    """

    at: datetime
    created_at: datetime | None
    owner: Owner
    state: OwnerState
    standing: Standing = Standing.NEWEST
    held_job_id: str = ""


def rivals(job: Kin, family: Iterable[Kin]) -> list[Kin]:
    """Return the other jobs of the same task instance that are a later attempt, or the same attempt once more."""
    return [one for one in family if one.job_id != job.job_id and one.attempt >= job.attempt]


def standing(job: Kin, family: Iterable[Kin], held_job_id: str) -> Standing:
    """
    Return what a live job is among the jobs of its task instance.

    :param held_job_id: the job that Airflow says it waits for, '' where it does not say.
    """
    others = rivals(job, family)
    if not others or held_job_id == job.job_id:
        return Standing.NEWEST
    held = next((one for one in others if one.job_id == held_job_id), None)
    if held is None or held.created_at is None or job.created_at is None:
        return Standing.UNCLEAR
    if held.attempt == job.attempt:
        return Standing.TWIN
    return Standing.SUPERSEDED if held.created_at >= job.created_at else Standing.UNCLEAR


def decide(first: Sighting, second: Sighting | None = None) -> Decision:
    """
    Return what becomes of a job after one look or two.

    :param second: a later look at the same job; without one nothing is stopped.
    """
    before = judge(first)
    if second is None:
        return _seen_once(before) if before.stops else before
    now = judge(second)
    if not now.stops:
        return now
    if not before.stops or _claim(first, before) != _claim(second, now):
        words = f"two looks do not say the same: first {before.words}; then {now.words}"
        return Decision(Reason.LOOKS_DIFFER, words)
    return now if second.at - first.at >= BETWEEN_LOOKS else _seen_once(now)


def judge(seen: Sighting) -> Decision:
    """Return what one look alone says, as if it were certain."""
    match seen.state.presence:
        case Presence.UNKNOWN:
            return Decision(Reason.OWNER_UNKNOWN, f"Airflow gave no usable answer: {seen.state.detail}")
        case Presence.ALIVE:
            decision = _with_living_owner(seen)
        case Presence.FINISHED:
            decision = Decision(Reason.OWNER_FINISHED, f"{_noun(seen)} is over: {seen.state.detail}{_since(seen)}")
        case Presence.GONE:
            decision = Decision(Reason.OWNER_GONE, f"{seen.state.detail} does not exist in Airflow any more")
    return (_grace(seen) or decision) if decision.stops else decision


def _with_living_owner(seen: Sighting) -> Decision:
    match seen.standing:
        case Standing.NEWEST:
            return Decision(Reason.OWNER_ALIVE, f"{_noun(seen)} is {seen.state.detail}")
        case Standing.UNCLEAR:
            words = "its task instance has another job as well, and Airflow does not say that it waits for that one"
            return Decision(Reason.RIVALS_UNCLEAR, words)
        case Standing.SUPERSEDED:
            return Decision(Reason.SUPERSEDED, f"Airflow waits for a later attempt, {seen.held_job_id}")
        case Standing.TWIN:
            return Decision(Reason.TWIN, f"Airflow waits for {seen.held_job_id}, a job of the same attempt")


def _grace(seen: Sighting) -> Decision | None:
    minutes = duration(GRACE.total_seconds())
    if seen.created_at is None:
        return Decision(Reason.AGE_UNKNOWN, "DLC does not show when it was created")
    if seen.at - seen.created_at < GRACE:
        return Decision(Reason.JUST_CREATED, f"it was created less than {minutes} ago")
    if seen.state.ended_at is not None and seen.at - seen.state.ended_at < GRACE:
        return Decision(Reason.JUST_ENDED, f"{_noun(seen)} ended less than {minutes} ago")
    return None


def _claim(seen: Sighting, decision: Decision) -> tuple[Reason, OwnerState, str]:
    return (decision.reason, seen.state, seen.held_job_id)


def _seen_once(decision: Decision) -> Decision:
    return Decision(Reason.SEEN_ONCE, f"{decision.words}, but that was seen only once")


def _noun(seen: Sighting) -> str:
    return "its task instance" if seen.owner is Owner.TASK else "its DAG run"


def _since(seen: Sighting) -> str:
    if seen.state.ended_at is None:
        return ""
    return f" {duration((seen.at - seen.state.ended_at).total_seconds())} ago"
