"""SubmitSpotJobOperator through whole DAG runs: which ends are retried, which resubmitted, which neither."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator

BOTH_MODES = pytest.mark.parametrize("deferrable", [True, False], ids=["deferrable", "in the worker"])
FAILS = JobPlan(run_seconds=0.2, exit_code=1, logs=("Traceback: out of luck", "ValueError: learning rate"))
IS_LOST = JobPlan(run_seconds=30, revoke_after=0.2)


def one_task(**arguments: Any) -> DAG:
    defaults: dict[str, Any] = {
        "task_id": "train",
        "image": "registry.example.com/train:1",
        "user_command": "python train.py",
        "ecs_spec": "ecs.g7.xlarge",
        "spot_discount_limit": 0.6,
        "poll_interval": 0.1,
        "retry_delay": timedelta(0),
        "retries": 0,
    }
    with DAG(f"dag_{uuid.uuid4().hex[:8]}", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        SubmitSpotJobOperator(**(defaults | arguments))
    return dag


def jobs_of(emulator: DlcEmulator) -> list[tuple[str, str]]:
    return [(job["Envs"]["PAI_SPOT_ATTEMPT"], job["Status"]) for job in emulator.control.jobs()]


@BOTH_MODES
def test_a_job_that_succeeds_returns_its_id(emulator: DlcEmulator, run_dag: Any, deferrable: bool) -> None:
    plan = JobPlan(run_seconds=0.2, logs=("start", 'PAI_SPOT_PROGRESS {"step": 120, "loss": 0.25}', "done"))
    emulator.control.plan(plan)
    run = run_dag(one_task(deferrable=deferrable))
    [job] = emulator.control.jobs()
    assert run.task_states == {"train": "success"}
    assert run.xcom("train") == run.xcom("train", "job_id") == job["JobId"]
    assert run.xcom("train", "job_console").endswith(f"#/dlc/jobs/{job['JobId']}/overview")
    outcome = run.xcom("train", "outcome")
    assert (outcome["verdict"], outcome["progress"]) == ("succeeded", {"step": 120, "loss": 0.25})
    assert f"submitted {job['JobId']} attempt 0, bid 0.6 of list price, try 1 of 1" in run.log
    assert f"pai-spot stop {job['JobId']}" in run.log
    assert f"succeeded: {job['JobId']}, 1 attempt, " in run.log


@BOTH_MODES
def test_exit_1_without_retries_is_one_job_and_its_log_tail(
    emulator: DlcEmulator, run_dag: Any, deferrable: bool
) -> None:
    emulator.control.plan(FAILS, times=None)
    run = run_dag(one_task(deferrable=deferrable))
    assert run.task_states == {"train": "failed"}
    assert jobs_of(emulator) == [("0", "Failed")]
    assert "SpotJobFailed" in run.log
    assert "ValueError: learning rate" in run.log


@BOTH_MODES
def test_exit_1_with_one_retry_is_two_jobs_and_no_revocation(
    emulator: DlcEmulator, run_dag: Any, deferrable: bool
) -> None:
    emulator.control.plan(FAILS, times=None)
    run = run_dag(one_task(deferrable=deferrable, retries=1))
    assert (run.task_states, run.tries) == ({"train": "failed"}, {"train": 2})
    assert jobs_of(emulator) == [("0", "Failed"), ("1", "Failed")]
    assert "resubmitting" not in run.log
    attempts = run.xcom("train", "attempts")
    assert [(one["verdict"], one["cause"]) for one in attempts] == [("failed", "user_failure")] * 2


@BOTH_MODES
def test_a_revocation_is_resubmitted_within_the_try(emulator: DlcEmulator, run_dag: Any, deferrable: bool) -> None:
    emulator.control.plan(IS_LOST, times=2)
    run = run_dag(one_task(deferrable=deferrable, recovery={"max_revocations": 2}))
    assert (run.task_states, run.tries) == ({"train": "success"}, {"train": 1})
    assert jobs_of(emulator) == [("0", "Failed"), ("1", "Failed"), ("2", "Succeeded")]
    assert "resubmitting: revocation 1 of 2, try 1 of 1" in run.log
    assert "resubmitting: revocation 2 of 2, try 1 of 1" in run.log
    attempts = run.xcom("train", "attempts")
    ends = [(one["verdict"], one["cause"]) for one in attempts]
    assert ends == [("revoked", "revoked"), ("revoked", "revoked"), ("succeeded", None)]
    assert run.xcom("train") == attempts[-1]["job_id"]


def test_a_duration_that_is_set_later_may_be_seconds_too(emulator: DlcEmulator, run_dag: Any) -> None:
    dag = one_task(deferrable=True)
    dag.get_task("train").poll_interval = 0.1
    assert run_dag(dag).task_states == {"train": "success"}


def test_losses_beyond_the_budget_go_to_airflow_s_retries(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(IS_LOST, times=4)
    run = run_dag(one_task(retries=1, recovery={"max_revocations": 1}))
    assert (run.task_states, run.tries) == ({"train": "failed"}, {"train": 2})
    assert len(jobs_of(emulator)) == 4
    assert "SpotCapacityRevoked" in run.log


@BOTH_MODES
def test_a_job_stopped_in_the_console_is_never_submitted_again(
    emulator: DlcEmulator, run_dag: Any, meanwhile: Any, stop_by_hand: Callable[[str], None], deferrable: bool
) -> None:
    emulator.control.plan(JobPlan(run_seconds=None), times=None)
    meanwhile(lambda: stop_by_hand(_first_running(emulator)))
    run = run_dag(one_task(deferrable=deferrable, retries=3))
    assert (run.task_states, run.tries) == ({"train": "failed"}, {"train": 1})
    assert jobs_of(emulator) == [("0", "Stopped")]
    assert "SpotJobStopped" in run.log


@BOTH_MODES
def test_an_unheard_of_status_keeps_waiting_and_is_warned_of_once(
    emulator: DlcEmulator, run_dag: Any, meanwhile: Any, deferrable: bool
) -> None:
    import time

    def hibernate() -> None:
        job_id = _first_running(emulator)
        emulator.control.set_status(job_id, "Hibernating")
        time.sleep(0.6)
        emulator.control.set_status(job_id, "Succeeded")

    emulator.control.plan(JobPlan(run_seconds=None))
    meanwhile(hibernate)
    run = run_dag(one_task(deferrable=deferrable))
    assert run.task_states == {"train": "success"}
    assert run.log.count("is not in DLC's reference") == 1


@BOTH_MODES
def test_pending_timeout_stops_the_job_before_it_raises(emulator: DlcEmulator, run_dag: Any, deferrable: bool) -> None:
    emulator.control.plan(JobPlan(pending_seconds=600))
    run = run_dag(one_task(deferrable=deferrable, pending_timeout=2))
    assert run.task_states == {"train": "failed"}
    assert jobs_of(emulator) == [("0", "Stopped")]
    assert "SpotPendingTimeout" in run.log


def test_an_image_that_can_never_be_pulled_ends_by_pending_timeout_with_the_event_quoted(
    emulator: DlcEmulator, run_dag: Any
) -> None:
    emulator.control.plan(JobPlan(never_starts=True))
    run = run_dag(one_task(pending_timeout=2))
    assert run.task_states == {"train": "failed"}
    assert [line for line in run.log.splitlines() if "SpotPendingTimeout" in line and "ErrImagePull" in line]


def test_run_timeout_is_sent_to_dlc_as_its_own_guard_too(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=None))
    run = run_dag(one_task(run_timeout=2))
    assert jobs_of(emulator) == [("0", "Stopped")]
    assert "SpotRunTimeout" in run.log
    [job] = emulator.control.jobs()
    assert job["JobMaxRunningTimeMinutes"] == 1


def test_attempts_share_a_checkpoint_folder_and_know_that_they_resume(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(IS_LOST)
    uri = "oss://bucket.oss-cn-hangzhou-internal.aliyuncs.com/nightly/"
    run_dag(one_task(checkpoint_uri=uri))
    first, second = (job["Envs"] for job in emulator.control.jobs())
    assert first["PAI_SPOT_CHECKPOINT_DIR"] == second["PAI_SPOT_CHECKPOINT_DIR"]
    assert (first["PAI_SPOT_RESUME"], second["PAI_SPOT_RESUME"]) == ("0", "1")


def test_two_tasks_submit_and_hand_the_id_over(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=None))
    run = run_dag(one_task(wait_for_completion=False))
    [job] = emulator.control.jobs()
    assert run.task_states == {"train": "success"}
    assert run.xcom("train") == job["JobId"]
    assert job["Settings"]["Tags"]["airflow-owner"] == "run"


def test_each_mapped_task_has_a_job_of_its_own(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(IS_LOST, match={"tags": {}}, times=1)
    with DAG(f"dag_{uuid.uuid4().hex[:8]}", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        SubmitSpotJobOperator.partial(
            task_id="train",
            image="registry.example.com/train:1",
            ecs_spec="ecs.g7.xlarge",
            spot_discount_limit=0.6,
            poll_interval=0.1,
        ).expand(user_command=["python train.py --lr 0.1", "python train.py --lr 0.2", "python train.py --lr 0.3"])
    run = run_dag(dag)
    assert run.task_states == {f"train[{index}]": "success" for index in range(3)}
    jobs = emulator.control.jobs()
    assert len(jobs) == 4
    assert len({job["Settings"]["Tags"]["airflow-ti"] for job in jobs}) == 3
    commands = {job["Envs"]["AIRFLOW_CTX_MAP_INDEX"]: job["UserCommand"] for job in jobs}
    assert commands == {str(index): f"python train.py --lr 0.{index + 1}" for index in range(3)}


def _first_running(emulator: DlcEmulator) -> str:
    import time

    give_up_at = time.monotonic() + 60
    while time.monotonic() < give_up_at:
        for job in emulator.control.jobs():
            if job["Status"] == "Running":
                return str(job["JobId"])
        time.sleep(0.05)
    raise TimeoutError("no job runs")


def test_a_lost_answer_makes_one_job_in_whatever_workspace(
    emulator: DlcEmulator, run_dag: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__SUBMIT_LOOKUP_PATIENCE", "2")
    emulator.control.fault("CreateJob", "lost_answer")
    run = run_dag(one_task(job_overrides={"WorkspaceId": "2"}))
    assert run.task_states == {"train": "success"}
    assert [job["WorkspaceId"] for job in emulator.control.jobs()] == ["2"]


@pytest.mark.parametrize(("clear_on_success", "warnings"), [("True", 1), ("False", 0)])
def test_a_store_that_will_forget_the_success_is_warned_of_once(
    emulator: DlcEmulator, run_dag: Any, monkeypatch: pytest.MonkeyPatch, clear_on_success: str, warnings: int
) -> None:
    monkeypatch.setenv("AIRFLOW__STATE_STORE__CLEAR_ON_SUCCESS", clear_on_success)
    emulator.control.plan(IS_LOST)
    run = run_dag(one_task())
    assert run.task_states == {"train": "success"}
    assert run.log.count("[state_store] clear_on_success is on") == warnings
