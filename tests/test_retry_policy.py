"""Which ends SpotRetryPolicy gives a retry, which none, and which it leaves to Airflow."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk.definitions.retry_policy import RetryAction

from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import Cause, JobOutcome, Verdict
from airflow_provider_pai_spot.dlc.verdict import classify
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


def failed(rule: str, exit_code: int | None = None, *, cause: Cause = Cause.USER_FAILURE) -> SpotJobFailed:
    known = {"verdict": Verdict.FAILED, "status": "Failed", "cause": cause, "exit_code": exit_code}
    return SpotJobFailed("dlc1 failed", JobOutcome(job_id="dlc1", rule=rule, **known))


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
    "exit 1": (failed("command_failed", 1), RetryAction.FAIL, "exit code 1"),
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
    "mounts that may come the next time": (failed("mount", cause=Cause.ENVIRONMENT), RetryAction.DEFAULT, ""),
    "a job that was killed for its memory": (
        failed("out_of_memory", cause=Cause.OUT_OF_MEMORY),
        RetryAction.DEFAULT,
        "",
    ),
    "exit 3": (failed("command_failed", 3), RetryAction.DEFAULT, ""),
    "a fault of the platform": (failed("platform_fault", cause=Cause.PLATFORM), RetryAction.DEFAULT, ""),
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


def pod(name: str, exit_code: int | None, hour: int = 1, **more: Any) -> dict[str, Any]:
    role = name.partition("-")[0]
    detail = {"ExitCode": exit_code, "Reason": more.pop("reason", "Error")}
    ended = {"Status": "Failed", "StatusDetail": detail, "GmtFinishTime": f"2026-01-01T{hour:02}:00:00Z"}
    return {"PodId": f"dlc1-{name}", "Type": role, **ended, **more}


PODS: dict[str, tuple[list[dict[str, Any]], int | None]] = {
    "AIMaster's own code is a consequence": ([pod("worker-0", 134), pod("aimaster-0", 1)], 134),
    "an earlier incarnation was made good": (
        [pod("worker-0", 134, HistoryPods=[pod("worker-0", 1, 0)])],
        134,
    ),
    "a peer that died later is a consequence": ([pod("worker-1", 1, 2), pod("worker-0", 134, 1)], 134),
    "the first of two to fail": ([pod("worker-0", 134, 2), pod("worker-1", 1, 1)], 1),
    "one without a time, if there is no other": ([pod("worker-0", 2, GmtFinishTime="")], 2),
    "a command that could not be executed": ([pod("worker-0", 127, reason="ContainerCannotRun")], 127),
    "a container without a code": ([pod("worker-0", None, reason="CreateContainerConfigError")], None),
    "one killed for its memory, and its peer": (
        [pod("worker-0", 137, reason="OOMKilled"), pod("worker-1", 1, 2)],
        None,
    ),
    "one that was not admitted, and its peer": (
        [pod("worker-0", None, reason="UnexpectedAdmissionError"), pod("worker-1", 1, 2)],
        None,
    ),
    "ended by a signal": ([pod("worker-0", 143)], None),
}


@pytest.mark.parametrize(("pods", "exit_code"), PODS.values(), ids=PODS)
def test_only_the_exit_code_that_decided_is_hopeless(pods: list[dict[str, Any]], exit_code: int | None) -> None:
    outcome = classify(Job({"JobId": "dlc1", "Status": "Failed", "Pods": pods}))
    assert outcome.exit_code == exit_code
    stored = JobOutcome.from_dict(outcome.to_dict())
    action = SpotRetryPolicy().evaluate(SpotJobFailed("dlc1 failed", stored), 1, 3).action
    assert action is (RetryAction.FAIL if exit_code in (1, 2, 126, 127) else RetryAction.DEFAULT)


def test_an_outcome_of_an_older_release_tells_no_exit_code_and_is_airflow_s() -> None:
    stored = failed("command_failed", 1).outcome.to_dict()
    del stored["exit_code"]
    outcome = JobOutcome.from_dict(stored)
    assert SpotRetryPolicy().evaluate(SpotJobFailed("dlc1", outcome), 1, 3).action is RetryAction.DEFAULT


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
