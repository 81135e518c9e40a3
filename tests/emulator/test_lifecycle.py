"""The state machine as rules."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.emulator.lifecycle import (
    HOLDING,
    RESERVING,
    TERMINAL,
    IllegalTransition,
    Phases,
    Signal,
    Status,
    Traits,
    means_something,
    next_status,
)

TRAITS = st.builds(
    Traits,
    bids=st.booleans(),
    checks_sanity=st.booleans(),
    restarts_left=st.booleans(),
    reserves_success=st.booleans(),
    reserves_failure=st.booleans(),
)
PLAIN = Traits()


@pytest.mark.parametrize(
    ("status", "signal", "traits", "follows"),
    [
        (Status.CREATING, Signal.ACCEPTED, PLAIN, Status.QUEUING),
        (Status.CREATING, Signal.ACCEPTED, Traits(bids=True), Status.BIDDING),
        (Status.QUEUING, Signal.CAPACITY_WON, PLAIN, Status.ENV_PREPARING),
        (Status.BIDDING, Signal.CAPACITY_WON, PLAIN, Status.ENV_PREPARING),
        (Status.ENV_PREPARING, Signal.PREPARED, PLAIN, Status.RUNNING),
        (Status.ENV_PREPARING, Signal.PREPARED, Traits(checks_sanity=True), Status.SANITY_CHECKING),
        (Status.SANITY_CHECKING, Signal.CHECKED, PLAIN, Status.RUNNING),
        (Status.RUNNING, Signal.COMPLETED, PLAIN, Status.SUCCEEDED),
        (Status.RUNNING, Signal.COMPLETED, Traits(reserves_success=True), Status.SUCCEEDED_RESERVING),
        (Status.RUNNING, Signal.BROKE, PLAIN, Status.FAILED),
        (Status.RUNNING, Signal.BROKE, Traits(reserves_failure=True), Status.FAILED_RESERVING),
        (Status.RUNNING, Signal.REVOKED, PLAIN, Status.FAILED),
        (Status.RUNNING, Signal.REVOKED, Traits(restarts_left=True), Status.RESTARTING),
        (Status.ENV_PREPARING, Signal.REVOKED, PLAIN, Status.FAILED),
        (Status.RESTARTING, Signal.RESTARTED, Traits(bids=True), Status.BIDDING),
        (Status.RESTARTING, Signal.RESTARTED, PLAIN, Status.QUEUING),
        (Status.RUNNING, Signal.STOP_REQUESTED, PLAIN, Status.STOPPING),
        (Status.QUEUING, Signal.STOP_REQUESTED, PLAIN, Status.STOPPING),
        (Status.STOPPING, Signal.STOP_DONE, PLAIN, Status.STOPPED),
        (Status.SUCCEEDED_RESERVING, Signal.RESERVATION_OVER, PLAIN, Status.SUCCEEDED),
        (Status.FAILED_RESERVING, Signal.STOP_REQUESTED, PLAIN, Status.FAILED),
    ],
    ids=lambda value: value.value if isinstance(value, Status | Signal) else "",
)
def test_each_signal_leads_where_the_facts_say(status: Any, signal: Any, traits: Any, follows: Any) -> None:
    assert next_status(status, signal, traits) is follows


@given(st.sampled_from(sorted(TERMINAL)), st.sampled_from(Signal), TRAITS)
def test_nothing_moves_a_finished_job(status: Any, signal: Any, traits: Any) -> None:
    assert not means_something(status, signal)
    with pytest.raises(IllegalTransition):
        next_status(status, signal, traits)


@given(st.sampled_from(Status), st.sampled_from(Signal), TRAITS)
def test_a_signal_either_means_something_or_is_refused(status: Any, signal: Any, traits: Any) -> None:
    if means_something(status, signal):
        assert next_status(status, signal, traits) is not status
    else:
        with pytest.raises(IllegalTransition):
            next_status(status, signal, traits)


@given(st.lists(st.sampled_from(Signal), max_size=40), TRAITS)
def test_a_decided_outcome_never_turns_into_another(signals: Any, traits: Any) -> None:
    status, decided = Status.CREATING, None
    ends = {Status.SUCCEEDED_RESERVING: Status.SUCCEEDED, Status.FAILED_RESERVING: Status.FAILED}
    for signal in signals:
        if means_something(status, signal):
            status = next_status(status, signal, traits)
        if decided is None and status in TERMINAL | RESERVING:
            decided = ends.get(status, status)
    assert decided is None or ends.get(status, status) is decided


@given(st.sampled_from(sorted(HOLDING)), TRAITS)
def test_a_revoked_job_comes_back_only_with_restarts_left(status: Any, traits: Any) -> None:
    back = next_status(status, Signal.REVOKED, traits) is Status.RESTARTING
    assert back is traits.restarts_left


@given(st.integers(), st.floats(0, 0.9))
def test_jitter_stays_within_its_fraction_and_a_seed_repeats_it(seed: Any, jitter: Any) -> None:
    phases = Phases(queuing=100.0, jitter=jitter)
    first, second = (phases.seconds(Status.QUEUING, random.Random(seed)) for _ in range(2))
    assert first == second
    assert 100 * (1 - jitter) - 1e-6 <= first <= 100 * (1 + jitter) + 1e-6
