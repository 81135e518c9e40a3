"""
What to do with the newest job when a try begins. A pure table; a test walks every cell.

The two ways to burn money are decided here: a second job for work that is under way or done, and an old end
taken for a new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from airflow_provider_pai_spot.dlc.outcome import Verdict
from airflow_provider_pai_spot.dlc.status import Phase


class Action(StrEnum):
    """What the try does first."""

    SUBMIT = "submit"
    REATTACH = "reattach"
    REPLACE = "replace"
    """Stop the live job, make sure that it is over, submit."""
    FINISH_STOP = "finish_stop"
    """Wait until the job is over, then raise the reason it was stopped for."""
    AWAIT_STOP_THEN_SUBMIT = "await_stop_then_submit"
    CONCLUDE = "conclude"
    """Act on the end: succeed, raise or recover."""
    REPORT_THEN_SUBMIT = "report_then_submit"
    """Log how the old job ended, then submit."""


class NewestState(StrEnum):
    """What the newest job is, as far as the decision goes."""

    LIVE = "live"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    NOT_SUCCEEDED = "not_succeeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestJob:
    """
    The newest job, seen from a new try.

    :param consumed: whether an earlier try acted on its end.
    :param same_generation: whether this try is a retry or a crash's successor (and not a person's clear).
    :param same_request: whether the task still asks for the same job.
    :param outlives_task: whether a live job may go on once its task is over, where the task hands it over.
    """

    state: NewestState
    consumed: bool
    same_generation: bool
    same_request: bool
    outlives_task: bool = True


def newest_state(phase: Phase, verdict: Verdict, stopped_by_us: bool) -> NewestState:
    """Reduce a job's phase and verdict to what the table distinguishes."""
    if phase is Phase.STOPPING:
        return NewestState.STOPPING
    if phase not in (Phase.TERMINAL, Phase.DECIDED):
        return NewestState.STOPPING if stopped_by_us else NewestState.LIVE
    if verdict is Verdict.SUCCEEDED:
        return NewestState.SUCCEEDED
    return NewestState.STOPPING if stopped_by_us else NewestState.NOT_SUCCEEDED


def decide(newest: NewestJob | None, *, reattach: bool = True) -> Action:
    """Return the cell of the table for the newest job; None means that there is no job yet."""
    if newest is None:
        return Action.SUBMIT
    match newest.state:
        case NewestState.LIVE:
            return _live(newest, reattach)
        case NewestState.STOPPING:
            return _stopping(newest)
        case NewestState.SUCCEEDED:
            return _succeeded(newest)
        case NewestState.NOT_SUCCEEDED:
            return _not_succeeded(newest)


def _live(newest: NewestJob, reattach: bool) -> Action:
    if not reattach or not newest.outlives_task:
        return Action.REPLACE
    if newest.same_generation or newest.same_request:
        return Action.REATTACH
    return Action.REPLACE


def _stopping(newest: NewestJob) -> Action:
    if newest.consumed or not newest.same_generation:
        return Action.AWAIT_STOP_THEN_SUBMIT
    return Action.FINISH_STOP


def _succeeded(newest: NewestJob) -> Action:
    if newest.same_generation:
        return Action.CONCLUDE
    if newest.same_request and not newest.consumed:
        return Action.CONCLUDE
    return Action.SUBMIT


def _not_succeeded(newest: NewestJob) -> Action:
    if newest.consumed:
        return Action.SUBMIT
    return Action.CONCLUDE if newest.same_generation else Action.REPORT_THEN_SUBMIT
