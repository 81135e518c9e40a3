"""A service that makes another job than was asked for: what the task, its job and its log say."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator

FORMS = pytest.mark.parametrize(
    "form",
    [{"deferrable": True}, {"deferrable": False}, {"wait_for_completion": False}],
    ids=["deferrable", "in the worker", "two-task form"],
)
OPTION = "AIRFLOW__PAI_SPOT__VERIFY_SPOT_TERMS"
TREATMENTS = {
    "dropped": ("SpotDiscountLimit 0.6; GetJob shows no SpotSpec", "ListJobs shows it as PostPaid, not Spot"),
    "changed": ("asked for SpotDiscountLimit 0.6", "GetJob shows 1.0"),
}


def train(**arguments: Any) -> DAG:
    """A task that would be retried, and would not look at its job again for an hour."""
    defaults: dict[str, Any] = {"retries": 3, "retry_delay": timedelta(0), "poll_interval": 3600}
    with DAG(f"dag_{uuid.uuid4().hex[:8]}", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        SubmitSpotJobOperator(
            task_id="train",
            image="registry.example.com/train:1",
            user_command="python train.py",
            ecs_spec="ecs.g7.xlarge",
            spot_discount_limit=0.6,
            **(defaults | arguments),
        )
    return dag


def payment_types(emulator: DlcEmulator) -> list[str]:
    from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

    [job] = emulator.control.jobs()
    kinds = ("Spot", "PostPaid")
    return [kind for kind in kinds if PaiDlcHook().list_jobs(payment_type=kind, job_ids=[job["JobId"]])]


@FORMS
@pytest.mark.parametrize("treatment", TREATMENTS)
def test_a_job_that_was_made_on_other_terms_is_stopped_and_never_retried(
    emulator: DlcEmulator, run_dag: Any, treatment: str, form: dict[str, Any]
) -> None:
    emulator.control.switch("spot_terms", treatment)
    emulator.control.plan(JobPlan(run_seconds=None))
    run = run_dag(train(**form))
    [job] = emulator.control.jobs()
    assert (run.task_states, run.tries) == ({"train": "failed"}, {"train": 1})
    assert job["Status"] == "Stopped"
    [told] = [line for line in run.log.splitlines() if f"{job['JobId']} does not run on the spot terms" in line][:1]
    assert "SpotSubmissionRefused" in run.log
    assert all(words in told for words in TREATMENTS[treatment])
    assert "[pai_spot] verify_spot_terms = warn" in told


@pytest.fixture(params=[("warn", 1), ("off", 0)], ids=["warn", "off"])
def warnings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Another value of the option, and how many warnings it makes."""
    option, count = request.param
    monkeypatch.setenv(OPTION, option)
    return int(count)


@pytest.mark.parametrize("treatment", TREATMENTS)
def test_whoever_says_so_is_warned_only_or_not_at_all(
    emulator: DlcEmulator, run_dag: Any, warnings: int, treatment: str
) -> None:
    emulator.control.switch("spot_terms", treatment)
    run = run_dag(train(poll_interval=0.1))
    assert run.task_states == {"train": "success"}
    assert run.log.count("does not run on the spot terms") == warnings
    assert payment_types(emulator) == (["PostPaid"] if treatment == "dropped" else ["Spot"])


def test_a_service_that_shows_no_terms_at_all_is_warned_of_once_and_trusted(
    emulator: DlcEmulator, run_dag: Any
) -> None:
    emulator.control.switch("echo_spot_spec", False)
    run = run_dag(train(poll_interval=0.1))
    assert run.task_states == {"train": "success"}
    assert run.log.count("DLC does not echo SpotSpec") == 1
    assert payment_types(emulator) == ["Spot"]
