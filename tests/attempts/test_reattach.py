"""Every cell of the re-attach table."""

from __future__ import annotations

import itertools

import pytest

from airflow_provider_pai_spot.attempts.reattach import Action, NewestJob, NewestState, decide, newest_state
from airflow_provider_pai_spot.dlc.outcome import Verdict
from airflow_provider_pai_spot.dlc.status import Phase

LIVE, STOPPING = NewestState.LIVE, NewestState.STOPPING
SUCCEEDED, LOST = NewestState.SUCCEEDED, NewestState.NOT_SUCCEEDED

# (state, consumed, same generation, same request) -> action
TABLE = {
    # live: a retry or crash takes it over; after a clear only if the task still asks for the same
    (LIVE, False, True, True): Action.REATTACH,
    (LIVE, False, True, False): Action.REATTACH,
    (LIVE, False, False, True): Action.REATTACH,
    (LIVE, False, False, False): Action.REPLACE,
    (LIVE, True, True, True): Action.REATTACH,
    (LIVE, True, True, False): Action.REATTACH,
    (LIVE, True, False, True): Action.REATTACH,
    (LIVE, True, False, False): Action.REPLACE,
    # Stopping, or stopped by us
    (STOPPING, False, True, True): Action.FINISH_STOP,
    (STOPPING, False, True, False): Action.FINISH_STOP,
    (STOPPING, False, False, True): Action.AWAIT_STOP_THEN_SUBMIT,
    (STOPPING, False, False, False): Action.AWAIT_STOP_THEN_SUBMIT,
    (STOPPING, True, True, True): Action.AWAIT_STOP_THEN_SUBMIT,
    (STOPPING, True, True, False): Action.AWAIT_STOP_THEN_SUBMIT,
    (STOPPING, True, False, True): Action.AWAIT_STOP_THEN_SUBMIT,
    (STOPPING, True, False, False): Action.AWAIT_STOP_THEN_SUBMIT,
    # succeeded
    (SUCCEEDED, False, True, True): Action.CONCLUDE,
    (SUCCEEDED, False, True, False): Action.CONCLUDE,
    (SUCCEEDED, False, False, True): Action.CONCLUDE,
    (SUCCEEDED, False, False, False): Action.SUBMIT,
    (SUCCEEDED, True, True, True): Action.CONCLUDE,  # the try died between consuming and reporting
    (SUCCEEDED, True, True, False): Action.CONCLUDE,
    (SUCCEEDED, True, False, True): Action.SUBMIT,
    (SUCCEEDED, True, False, False): Action.SUBMIT,
    # failed, revoked, stopped by hand
    (LOST, False, True, True): Action.CONCLUDE,
    (LOST, False, True, False): Action.CONCLUDE,
    (LOST, False, False, True): Action.REPORT_THEN_SUBMIT,
    (LOST, False, False, False): Action.REPORT_THEN_SUBMIT,
    (LOST, True, True, True): Action.SUBMIT,
    (LOST, True, True, False): Action.SUBMIT,
    (LOST, True, False, True): Action.SUBMIT,
    (LOST, True, False, False): Action.SUBMIT,
}


def test_the_table_has_a_row_for_every_combination() -> None:
    flags = (False, True)
    assert set(TABLE) == set(itertools.product(NewestState, flags, flags, flags))


@pytest.mark.parametrize(("cell", "action"), TABLE.items(), ids=str)
def test_each_cell(cell: tuple[NewestState, bool, bool, bool], action: Action) -> None:
    state, consumed, same_generation, same_request = cell
    newest = NewestJob(state=state, consumed=consumed, same_generation=same_generation, same_request=same_request)
    assert decide(newest) is action


def test_without_a_job_there_is_one_to_submit() -> None:
    assert decide(None) is Action.SUBMIT


@pytest.mark.parametrize("cell", [cell for cell in TABLE if cell[0] is LIVE], ids=str)
def test_without_reattach_a_live_job_is_always_replaced(cell: tuple[NewestState, bool, bool, bool]) -> None:
    newest = NewestJob(state=cell[0], consumed=cell[1], same_generation=cell[2], same_request=cell[3])
    assert decide(newest, reattach=False) is Action.REPLACE


@pytest.mark.parametrize("cell", TABLE, ids=str)
def test_a_job_that_would_end_with_its_task_is_replaced_while_it_lives(
    cell: tuple[NewestState, bool, bool, bool],
) -> None:
    state, consumed, same_generation, same_request = cell
    newest = NewestJob(
        state=state,
        consumed=consumed,
        same_generation=same_generation,
        same_request=same_request,
        outlives_task=False,
    )
    assert decide(newest) is (Action.REPLACE if state is LIVE else TABLE[cell])


@pytest.mark.parametrize(
    ("phase", "verdict", "stopped_by_us", "state"),
    [
        (Phase.PENDING, Verdict.UNKNOWN, False, LIVE),
        (Phase.RUNNING, Verdict.UNKNOWN, False, LIVE),
        (Phase.UNKNOWN, Verdict.UNKNOWN, False, LIVE),
        (Phase.STOPPING, Verdict.UNKNOWN, False, STOPPING),
        (Phase.RUNNING, Verdict.UNKNOWN, True, STOPPING),
        (Phase.TERMINAL, Verdict.STOPPED, True, STOPPING),
        (Phase.TERMINAL, Verdict.STOPPED, False, LOST),
        (Phase.TERMINAL, Verdict.REVOKED, False, LOST),
        (Phase.TERMINAL, Verdict.FAILED, False, LOST),
        (Phase.TERMINAL, Verdict.UNKNOWN, False, LOST),
        (Phase.DECIDED, Verdict.FAILED, False, LOST),
        (Phase.DECIDED, Verdict.SUCCEEDED, False, SUCCEEDED),
        (Phase.TERMINAL, Verdict.SUCCEEDED, False, SUCCEEDED),
        (Phase.TERMINAL, Verdict.SUCCEEDED, True, SUCCEEDED),  # it was faster than the stop
    ],
)
def test_what_the_newest_job_counts_as(phase: Phase, verdict: Verdict, stopped_by_us: bool, state: NewestState) -> None:
    assert newest_state(phase, verdict, stopped_by_us) is state
