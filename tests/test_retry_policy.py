"""Which ends SpotRetryPolicy gives a retry, which none, and which it leaves to Airflow."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest
from airflow.sdk.definitions.retry_policy import RetryAction

from airflow_provider_pai_spot.dlc.outcome import Cause, JobOutcome, Verdict
from airflow_provider_pai_spot.exceptions import (
    PaiDlcUnavailable,
    SpotCapacityRevoked,
    SpotJobFailed,
    SpotOutcomeUnknown,
    SpotPendingTimeout,
    SpotRunTimeout,
)
from airflow_provider_pai_spot.retry_policy import SpotRetryPolicy

DELAY = timedelta(minutes=20)


def failed(rule: str, *exit_codes: int | None, cause: Cause = Cause.USER_FAILURE) -> SpotJobFailed:
    pods = tuple({"pod_id": f"p{index}", "exit_code": code} for index, code in enumerate(exit_codes))
    outcome = JobOutcome(job_id="dlc1", verdict=Verdict.FAILED, status="Failed", rule=rule, cause=cause, pods=pods)
    return SpotJobFailed("dlc1 failed", outcome)


def waited_in(*statuses: str) -> SpotPendingTimeout:
    timeline = tuple((status, "", "") for status in (*statuses, "Stopping", "Stopped"))
    outcome = JobOutcome(job_id="dlc1", verdict=Verdict.STOPPED, status="Stopped", timeline=timeline)
    return SpotPendingTimeout("dlc1", outcome)


ENDS: dict[str, tuple[BaseException, RetryAction, str]] = {
    "a loss": (SpotCapacityRevoked("dlc1"), RetryAction.RETRY, "the market took the capacity back"),
    "no capacity": (SpotPendingTimeout("dlc1"), RetryAction.RETRY, "no capacity within pending_timeout"),
    "no capacity, by its timeline": (
        waited_in("Queuing", "Bidding"),
        RetryAction.RETRY,
        "no capacity within pending_timeout",
    ),
    "machines, and an image that does not come": (
        waited_in("Queuing", "EnvPreparing"),
        RetryAction.FAIL,
        "image, mounts or checks",
    ),
    "exit 1": (failed("command_failed", 0, 1), RetryAction.FAIL, "exit code 1"),
    "exit 2": (failed("command_failed", 2), RetryAction.FAIL, "exit code 2"),
    "exit 126": (failed("command_failed", 126), RetryAction.FAIL, "exit code 126"),
    "exit 127": (failed("command_failed", 127), RetryAction.FAIL, "exit code 127"),
    "an image that cannot be pulled": (
        failed("image_pull", cause=Cause.ENVIRONMENT),
        RetryAction.FAIL,
        "image cannot be pulled",
    ),
    "a configuration that DLC refuses": (
        failed("reason_code", cause=Cause.INVALID_REQUEST),
        RetryAction.FAIL,
        "configuration was refused",
    ),
    "exit 137": (failed("out_of_memory", 137), RetryAction.DEFAULT, ""),
    "exit 3": (failed("command_failed", 3), RetryAction.DEFAULT, ""),
    "a fault of the platform": (failed("platform_fault", None), RetryAction.DEFAULT, ""),
    "a fault of the platform that made the other pods exit 1": (
        failed("pod_not_admitted", None, 1, cause=Cause.PLATFORM),
        RetryAction.DEFAULT,
        "",
    ),
    "a failure without an outcome": (SpotJobFailed("dlc1"), RetryAction.DEFAULT, ""),
    "an end that no rule explains": (SpotOutcomeUnknown("dlc1"), RetryAction.DEFAULT, ""),
    "a job that ran too long": (SpotRunTimeout("dlc1"), RetryAction.DEFAULT, ""),
    "DLC does not answer": (PaiDlcUnavailable("no answer"), RetryAction.DEFAULT, ""),
    "anything else": (RuntimeError("odd"), RetryAction.DEFAULT, ""),
}


@pytest.mark.parametrize(("exception", "action", "reason"), ENDS.values(), ids=ENDS)
def test_losses_are_retried_and_what_a_retry_cannot_mend_is_not(
    exception: BaseException, action: RetryAction, reason: str
) -> None:
    decision = SpotRetryPolicy(delay_after_loss=DELAY).evaluate(exception, 1, 3)
    assert decision.action is action
    assert reason in (decision.reason or "")
    assert decision.retry_delay == (DELAY if action is RetryAction.RETRY else None)


def test_which_exit_codes_are_hopeless_can_be_said() -> None:
    policy = SpotRetryPolicy(hopeless_exit_codes=[3])
    assert policy.evaluate(failed("command_failed", 1), 1, 3).action is RetryAction.DEFAULT
    assert policy.evaluate(failed("command_failed", 3), 1, 3).action is RetryAction.FAIL


@pytest.mark.parametrize(
    "policy", [SpotRetryPolicy(), SpotRetryPolicy(delay_after_loss=DELAY, hopeless_exit_codes=[3])]
)
def test_a_policy_survives_being_stored(policy: SpotRetryPolicy) -> None:
    again = SpotRetryPolicy.deserialize(policy.serialize())
    assert vars(again) == vars(policy)


def test_it_loads_nothing_of_ours_but_exceptions() -> None:
    code = "import sys, airflow_provider_pai_spot.retry_policy; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    ours = {name.partition(".")[2] for name in loaded if name.startswith("airflow_provider_pai_spot.")}
    assert ours - {"provider_info"} == {"exceptions", "retry_policy"}  # Airflow itself asks for provider_info
