"""From outcomes to exceptions: the type decides who retries, the message says what was seen."""

from __future__ import annotations

import pytest

from airflow_provider_pai_spot import exceptions
from airflow_provider_pai_spot.attempts.endings import describe, error_for
from airflow_provider_pai_spot.dlc.outcome import Cause, JobOutcome, StopReason, Verdict

TYPES = [
    (Verdict.REVOKED, Cause.REVOKED, None, exceptions.SpotCapacityRevoked),
    (Verdict.FAILED, Cause.USER_FAILURE, None, exceptions.SpotJobFailed),
    (Verdict.FAILED, Cause.IDLE_QUOTA_EVICTION, None, exceptions.SpotJobFailed),
    (Verdict.FAILED, Cause.TIMED_OUT, None, exceptions.SpotRunTimeout),
    (Verdict.STOPPED, Cause.TIMED_OUT, None, exceptions.SpotRunTimeout),
    (Verdict.STOPPED, Cause.STOPPED, None, exceptions.SpotJobStopped),
    (Verdict.STOPPED, None, None, exceptions.SpotJobStopped),
    (Verdict.STOPPED, Cause.STOPPED, StopReason.KILLED, exceptions.SpotJobStopped),
    (Verdict.STOPPED, Cause.TIMED_OUT, StopReason.PENDING_TIMEOUT, exceptions.SpotPendingTimeout),
    (Verdict.STOPPED, Cause.TIMED_OUT, StopReason.EXECUTION_TIMEOUT, exceptions.SpotTotalTimeout),
    (Verdict.UNKNOWN, Cause.UNKNOWN, None, exceptions.SpotOutcomeUnknown),
]


@pytest.mark.parametrize(("verdict", "cause", "reason", "kind"), TYPES, ids=lambda part: getattr(part, "value", None))
def test_each_end_has_its_exception(
    verdict: Verdict, cause: Cause | None, reason: StopReason | None, kind: type[exceptions.SpotJobError]
) -> None:
    outcome = JobOutcome(job_id="dlc1", verdict=verdict, status="Failed", cause=cause, stop_reason=reason)
    error = error_for(outcome)
    assert type(error) is kind
    assert error.outcome is outcome


def test_evidence_cause_rule_and_confidence_are_told() -> None:
    outcome = JobOutcome(
        job_id="dlc1",
        verdict=Verdict.REVOKED,
        status="Failed",
        cause=Cause.REVOKED,
        rule="spot_pod_evicted",
        confidence="documented",
        evidence=("pod worker-3 Evicted", "pod worker-4 Evicted", "and 7 more"),
        seconds_running=60.0,
    )
    told = "(pod worker-3 Evicted; pod worker-4 Evicted; and 7 more; cause revoked, rule spot_pod_evicted, documented)"
    assert describe(outcome) == f"revoked after 1 min running {told}"
    assert str(error_for(outcome)) == f"dlc1 lost its capacity after 1 min running {told}"
    assert "failed" not in str(error_for(outcome)).casefold()


WAITS = {
    "Bidding": "found no capacity within pending_timeout; raise the bid",
    "EnvPreparing": "had its machines, but was not ready within pending_timeout: it waited for its image",
    "SanityChecking": "had its machines, but was not ready within pending_timeout: it waited for its image",
}


@pytest.mark.parametrize(("status", "told"), WAITS.items())
def test_a_pending_timeout_says_what_the_job_waited_for(status: str, told: str) -> None:
    outcome = JobOutcome(
        job_id="dlc1",
        verdict=Verdict.STOPPED,
        status="Stopped",
        stop_reason=StopReason.PENDING_TIMEOUT,
        evidence=("ErrImagePull: not found",),
        timeline=(("Queuing", "", ""), (status, "", ""), ("Stopped", "", "")),
    )
    error = error_for(outcome)
    assert type(error) is exceptions.SpotPendingTimeout
    assert str(error).startswith(f"dlc1 {told}")
    assert "ErrImagePull: not found" in str(error)
