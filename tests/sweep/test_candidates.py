from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_pai_spot.attempts.identity import Owner
from airflow_provider_pai_spot.sweep.candidates import (
    BETWEEN_LOOKS,
    GRACE,
    Kin,
    Reason,
    Sighting,
    Standing,
    decide,
    standing,
)
from airflow_provider_pai_spot.sweep.owners import (
    ALIVE_RUN_STATES,
    ALIVE_TASK_STATES,
    FINISHED_RUN_STATES,
    FINISHED_TASK_STATES,
    OwnerState,
    Presence,
    gone,
    run_state,
    task_state,
    unknown,
)

NOW = datetime(2026, 11, 30, 22, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=3)
STATES = {
    "unknown": unknown("HTTP 503"),
    "alive": task_state("deferred"),
    "cleared": task_state(None),
    "finished": task_state("failed", LONG_AGO),
    "finished, nobody knows when": task_state("failed"),
    "finished just now": task_state("failed", NOW - timedelta(minutes=9)),
    "gone": gone("its DAG run"),
}
OF_TASK = {"its task instance": Owner.TASK, "its DAG run": Owner.RUN}


def seen(
    state: OwnerState,
    *,
    at: datetime = NOW,
    created_at: datetime | None = LONG_AGO,
    owner: Owner = Owner.TASK,
    standing: Standing = Standing.NEWEST,
    held: str = "",
) -> Sighting:
    return Sighting(at=at, created_at=created_at, owner=owner, state=state, standing=standing, held_job_id=held)


def decided_after_two_looks(state: OwnerState, **facts: object) -> Reason:
    first = seen(state, **facts)  # type: ignore[arg-type]
    return decide(first, seen(state, at=NOW + BETWEEN_LOOKS, **facts)).reason  # type: ignore[arg-type]


TABLE = {
    ("unknown", Standing.NEWEST): (Reason.OWNER_UNKNOWN, Reason.OWNER_UNKNOWN),
    ("unknown", Standing.UNCLEAR): (Reason.OWNER_UNKNOWN, Reason.OWNER_UNKNOWN),
    ("unknown", Standing.SUPERSEDED): (Reason.OWNER_UNKNOWN, Reason.OWNER_UNKNOWN),
    ("unknown", Standing.TWIN): (Reason.OWNER_UNKNOWN, Reason.OWNER_UNKNOWN),
    ("alive", Standing.NEWEST): (Reason.OWNER_ALIVE, Reason.OWNER_ALIVE),
    ("alive", Standing.UNCLEAR): (Reason.RIVALS_UNCLEAR, Reason.RIVALS_UNCLEAR),
    ("alive", Standing.SUPERSEDED): (Reason.SEEN_ONCE, Reason.SUPERSEDED),
    ("alive", Standing.TWIN): (Reason.SEEN_ONCE, Reason.TWIN),
    ("cleared", Standing.NEWEST): (Reason.OWNER_ALIVE, Reason.OWNER_ALIVE),
    ("cleared", Standing.UNCLEAR): (Reason.RIVALS_UNCLEAR, Reason.RIVALS_UNCLEAR),
    ("cleared", Standing.SUPERSEDED): (Reason.SEEN_ONCE, Reason.SUPERSEDED),
    ("cleared", Standing.TWIN): (Reason.SEEN_ONCE, Reason.TWIN),
    **{
        (state, place): (Reason.SEEN_ONCE, reason)
        for state, reason in {
            "finished": Reason.OWNER_FINISHED,
            "finished, nobody knows when": Reason.OWNER_FINISHED,
            "gone": Reason.OWNER_GONE,
        }.items()
        for place in Standing
    },
    **{("finished just now", place): (Reason.JUST_ENDED, Reason.JUST_ENDED) for place in Standing},
}


@pytest.mark.parametrize("owner", OF_TASK.values(), ids=lambda owner: f"owner={owner}")
@pytest.mark.parametrize(("cell", "reasons"), TABLE.items(), ids=[f"{state}-{place}" for state, place in TABLE])
def test_each_cell_of_the_table(cell: tuple[str, Standing], reasons: tuple[Reason, Reason], owner: Owner) -> None:
    state, place = STATES[cell[0]], cell[1]
    held = "dlcother" if place in (Standing.SUPERSEDED, Standing.TWIN) else ""
    one_look = decide(seen(state, owner=owner, standing=place, held=held)).reason
    # Both looks before the grace of an owner that ended just now is over.
    two_looks = decide(
        seen(state, at=NOW - BETWEEN_LOOKS, owner=owner, standing=place, held=held),
        seen(state, owner=owner, standing=place, held=held),
    ).reason
    assert (one_look, two_looks) == reasons


def test_the_table_has_every_cell() -> None:
    assert set(TABLE) == set(itertools.product(STATES, Standing))


@pytest.mark.parametrize("state", ["finished", "gone"])
@pytest.mark.parametrize(
    ("created_at", "reason"),
    [
        (NOW - GRACE + timedelta(minutes=2), Reason.JUST_CREATED),
        (NOW + timedelta(minutes=5), Reason.JUST_CREATED),
        (None, Reason.AGE_UNKNOWN),
    ],
    ids=["8 minutes ago", "in the future, by clocks that differ", "DLC does not say"],
)
def test_a_job_that_is_young_or_of_unknown_age_is_left(state: str, created_at: datetime | None, reason: Reason) -> None:
    assert decided_after_two_looks(STATES[state], created_at=created_at) is reason


@pytest.mark.parametrize("place", [Standing.SUPERSEDED, Standing.TWIN])
def test_the_grace_holds_for_a_second_job_as_well(place: Standing) -> None:
    facts = {"standing": place, "held": "dlcother", "created_at": NOW - timedelta(minutes=5)}
    assert decided_after_two_looks(STATES["alive"], **facts) is Reason.JUST_CREATED


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("finished", "alive", Reason.OWNER_ALIVE),
        ("finished", "cleared", Reason.OWNER_ALIVE),
        ("gone", "unknown", Reason.OWNER_UNKNOWN),
        ("unknown", "gone", Reason.LOOKS_DIFFER),
        ("alive", "finished", Reason.LOOKS_DIFFER),
        ("finished", "gone", Reason.LOOKS_DIFFER),
        ("finished", "finished, nobody knows when", Reason.LOOKS_DIFFER),
    ],
)
def test_two_looks_that_do_not_say_the_same_stop_nothing(before: str, after: str, expected: Reason) -> None:
    decision = decide(seen(STATES[before]), seen(STATES[after], at=NOW + BETWEEN_LOOKS))
    assert decision.reason is expected
    assert not decision.stops


def test_two_looks_that_name_different_jobs_as_the_newer_one_stop_nothing() -> None:
    first = seen(STATES["alive"], standing=Standing.SUPERSEDED, held="dlcb")
    second = seen(STATES["alive"], standing=Standing.SUPERSEDED, held="dlcc", at=NOW + BETWEEN_LOOKS)
    assert decide(first, second).reason is Reason.LOOKS_DIFFER


def test_two_looks_within_less_than_a_minute_count_as_one() -> None:
    second = seen(STATES["gone"], at=NOW + BETWEEN_LOOKS - timedelta(seconds=1))
    assert decide(seen(STATES["gone"]), second).reason is Reason.SEEN_ONCE


@pytest.mark.parametrize(
    ("state", "owner", "words"),
    [
        ("alive", Owner.TASK, "its task instance is deferred"),
        ("finished", Owner.RUN, "its DAG run is over: failed 3 h 1 min ago"),
        ("finished, nobody knows when", Owner.TASK, "its task instance is over: failed"),
        ("gone", Owner.TASK, "its DAG run does not exist in Airflow any more"),
        ("unknown", Owner.TASK, "Airflow gave no usable answer: HTTP 503"),
    ],
)
def test_a_decision_says_why(state: str, owner: Owner, words: str) -> None:
    first, second = seen(STATES[state], owner=owner), seen(STATES[state], owner=owner, at=NOW + BETWEEN_LOOKS)
    assert decide(first, second).words == words


# --- what the states of Airflow mean ------------------------------------------------------------------------


@pytest.mark.parametrize("state", [None, *sorted(ALIVE_TASK_STATES)])
def test_a_task_in_this_state_still_wants_its_job(state: str | None) -> None:
    assert task_state(state).presence is Presence.ALIVE


def test_every_state_of_airflow_is_known() -> None:
    from airflow.sdk import DagRunState, TaskInstanceState

    assert {state.value for state in TaskInstanceState} == FINISHED_TASK_STATES | ALIVE_TASK_STATES
    assert {state.value for state in DagRunState} == FINISHED_RUN_STATES | ALIVE_RUN_STATES


@pytest.mark.parametrize("read", [task_state, run_state])
def test_a_state_of_a_later_airflow_is_no_reason_to_stop(read: object) -> None:
    assert read("hibernating").presence is Presence.UNKNOWN  # type: ignore[operator]


# --- several jobs of one task instance ------------------------------------------------------------------------

OLD, LATER = LONG_AGO, LONG_AGO + timedelta(minutes=30)
FIRST, SECOND, SECOND_AGAIN = Kin("dlc1", 0, OLD), Kin("dlc2", 1, LATER), Kin("dlc3", 1, LATER + timedelta(minutes=5))


@pytest.mark.parametrize(
    ("job", "family", "held", "expected"),
    [
        (FIRST, [FIRST], "", Standing.NEWEST),
        (SECOND, [FIRST, SECOND], "dlc1", Standing.NEWEST),
        (FIRST, [FIRST, SECOND], "dlc1", Standing.NEWEST),
        (FIRST, [FIRST, SECOND], "dlc2", Standing.SUPERSEDED),
        (FIRST, [FIRST, SECOND], "", Standing.UNCLEAR),
        (FIRST, [FIRST, SECOND], "dlcelsewhere", Standing.UNCLEAR),
        (SECOND_AGAIN, [SECOND, SECOND_AGAIN], "dlc2", Standing.TWIN),
        (SECOND, [SECOND, SECOND_AGAIN], "dlc2", Standing.NEWEST),
        (SECOND, [SECOND, SECOND_AGAIN], "dlc3", Standing.TWIN),
        (FIRST, [FIRST, Kin("dlc2", 1, OLD - timedelta(hours=1))], "dlc2", Standing.UNCLEAR),
        (FIRST, [FIRST, Kin("dlc2", 1, None)], "dlc2", Standing.UNCLEAR),
    ],
    ids=[
        "an only job",
        "the newest of two, whatever is held",
        "an older one that Airflow waits for",
        "an older one, and Airflow waits for the newer",
        "an older one, and Airflow says nothing",
        "an older one, and Airflow waits for a job that is not among them",
        "the younger twin, and Airflow waits for the older",
        "the older twin, which Airflow waits for",
        "the older twin, and Airflow waits for the younger",
        "a later attempt that was created earlier: the run was created again",
        "a later attempt of unknown age",
    ],
)
def test_which_of_several_jobs_is_one_too_many(job: Kin, family: list[Kin], held: str, expected: Standing) -> None:
    assert standing(job, family, held) is expected
