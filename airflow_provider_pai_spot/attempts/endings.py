"""From a job's outcome to the exception Airflow sees; the type decides whether Airflow retries."""

from __future__ import annotations

from airflow_provider_pai_spot.dlc.duration import duration
from airflow_provider_pai_spot.dlc.outcome import Cause, JobOutcome, StopReason, Verdict
from airflow_provider_pai_spot.exceptions import (
    SpotCapacityRevoked,
    SpotJobError,
    SpotJobFailed,
    SpotJobStopped,
    SpotOutcomeUnknown,
    SpotPendingTimeout,
    SpotRunTimeout,
    SpotTotalTimeout,
)

_LIMITS: dict[StopReason, tuple[type[SpotJobError], str]] = {
    StopReason.PENDING_TIMEOUT: (
        SpotPendingTimeout,
        "found no capacity within pending_timeout; raise the bid, allow more time, or choose another ecs_spec",
    ),
    StopReason.RUN_TIMEOUT: (SpotRunTimeout, "ran longer than run_timeout"),
    StopReason.TOTAL_TIMEOUT: (SpotTotalTimeout, "total_timeout passed, all attempts together"),
    StopReason.EXECUTION_TIMEOUT: (SpotTotalTimeout, "execution_timeout passed, waiting included"),
    StopReason.SPOT_TERMS: (
        SpotJobStopped,
        "was stopped because it did not run on the spot terms that were asked for (verify_spot_terms)",
    ),
    StopReason.KILLED: (SpotJobStopped, "was stopped because its task was ended in Airflow"),
}

_NOT_READY = (
    "had its machines, but was not ready within pending_timeout: it waited for its image, its mounts or its checks, "
    "which no other bid or ecs_spec mends"
)

_VERDICTS: dict[Verdict, tuple[type[SpotJobError], str]] = {
    Verdict.REVOKED: (SpotCapacityRevoked, "lost its capacity"),
    Verdict.FAILED: (SpotJobFailed, "failed"),
    Verdict.STOPPED: (
        SpotJobStopped,
        "was stopped outside Airflow and is not submitted again; clear the task to run it anew",
    ),
    Verdict.UNKNOWN: (SpotOutcomeUnknown, "ended in a way no rule explains"),
}


def error_for(outcome: JobOutcome, note: str = "") -> SpotJobError:
    """
    Return the exception for an outcome that is not a success, with its evidence in the message.

    :param note: what more a reader should know, such as a used-up budget.
    """
    kind, what = _VERDICTS.get(outcome.verdict, _VERDICTS[Verdict.UNKNOWN])
    if outcome.stop_reason in _LIMITS:
        kind, what = _LIMITS[outcome.stop_reason]
        what = _NOT_READY if outcome.stop_reason is StopReason.PENDING_TIMEOUT and outcome.had_machines else what
    elif outcome.cause is Cause.TIMED_OUT:
        kind, what = SpotRunTimeout, "ran into DLC's own limit, JobMaxRunningTimeMinutes"
    return kind(f"{outcome.job_id} {what}{_after(outcome)}{_evidence(outcome)}{note}", outcome)


def describe(outcome: JobOutcome) -> str:
    """Return one phrase on how a job ended, for a log line."""
    return f"{outcome.verdict.value}{_after(outcome)}{_evidence(outcome)}"


def _after(outcome: JobOutcome) -> str:
    return f" after {duration(outcome.seconds_running)} running" if outcome.seconds_running else ""


def _evidence(outcome: JobOutcome) -> str:
    parts = [*outcome.evidence[:3]]
    judged = [f"cause {outcome.cause.value}"] if outcome.cause else []
    judged += [f"rule {outcome.rule}", outcome.confidence] if outcome.rule else []
    parts += [", ".join(judged)] if judged else []
    return f" ({'; '.join(parts)})" if parts else ""
