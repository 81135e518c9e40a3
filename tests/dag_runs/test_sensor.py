"""SpotJobSensor through whole DAG runs: the two-task form, and jobs that were made elsewhere."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG, task

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

FORMS = pytest.mark.parametrize(
    "form",
    [{"deferrable": True}, {"deferrable": False}, {"deferrable": False, "mode": "reschedule"}],
    ids=["deferrable", "poke", "reschedule"],
)
IS_LOST = JobPlan(run_seconds=30, revoke_after=0.2)
REQUEST: dict[str, Any] = {
    "image": "registry.example.com/train:1",
    "ecs_spec": "ecs.g7.xlarge",
    "spot_discount_limit": 0.5,
}


def new_dag() -> DAG:
    return DAG(f"dag_{uuid.uuid4().hex[:8]}", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC))


def two_tasks(**sensor: Any) -> DAG:
    with new_dag() as dag:
        submit = SubmitSpotJobOperator(
            task_id="submit",
            user_command="python train.py {{ task.task_id }} {{ run_id }}",
            checkpoint_uri="oss://bucket.oss-cn-hangzhou-internal.aliyuncs.com/nightly/",
            recovery={"spot_discount_ladder": [0.7, 0.9]},
            wait_for_completion=False,
            **REQUEST,
        )
        defaults: dict[str, Any] = {"retries": 3, "retry_delay": timedelta(0), "poke_interval": 0.1}
        wait = SpotJobSensor(task_id="wait", job_id=submit.output, submitted_by=submit, **(defaults | sensor))

        @task
        def announce(job_id: str) -> str:
            return job_id

        wait >> announce(submit.output)
    return dag


def watch_only(job_id: str, **sensor: Any) -> DAG:
    defaults: dict[str, Any] = {"retries": 3, "retry_delay": timedelta(0), "poke_interval": 0.1}
    with new_dag() as dag:
        SpotJobSensor(task_id="wait", job_id=job_id, **(defaults | sensor))
    return dag


def job_made_elsewhere(emulator: DlcEmulator, plan: JobPlan) -> str:
    emulator.control.plan(plan)
    spot = {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.5}
    role = {"Type": "Worker", "Image": "i", "PodCount": 1, "EcsSpec": "ecs.g7.xlarge", "SpotSpec": spot}
    body = {"DisplayName": "by-hand", "JobType": "PyTorchJob", "JobSpecs": [role], "UserCommand": "x"}
    return PaiDlcHook().create_job({**body, "WorkspaceId": "1"})


@FORMS
def test_success_needs_one_try_of_each(emulator: DlcEmulator, run_dag: Any, form: dict[str, Any]) -> None:
    run = run_dag(two_tasks(**form))
    assert run.task_states == {"submit": "success", "wait": "success", "announce": "success"}
    assert run.tries["wait"] == 1
    [job] = emulator.control.jobs()
    assert run.xcom("wait") == run.xcom("announce") == job["JobId"]
    assert run.xcom("wait", "outcome")["verdict"] == "succeeded"


@FORMS
def test_a_loss_marks_the_sensor_for_retry_and_the_next_try_submits_the_successor(
    emulator: DlcEmulator, run_dag: Any, form: dict[str, Any]
) -> None:
    emulator.control.plan(IS_LOST, times=2)
    run = run_dag(two_tasks(**form))
    assert run.task_states == {"submit": "success", "wait": "success", "announce": "success"}
    assert run.tries == {"submit": 1, "wait": 3, "announce": 1}
    jobs = emulator.control.jobs()
    assert [job["Status"] for job in jobs] == ["Failed", "Failed", "Succeeded"]
    assert "marked for retry: the next try submits its successor" in run.log
    # One identity, counted on; rendered as the submit task; everything downstream sees the job that did the work.
    tags = [job["Settings"]["Tags"] for job in jobs]
    assert len({tag["airflow-ti"] for tag in tags}) == 1
    assert [tag["airflow-attempt"] for tag in tags] == ["0", "1", "2"]
    assert {tag["airflow-owner"] for tag in tags} == {"run"}
    assert len({job["UserCommand"] for job in jobs}) == 1
    assert jobs[0]["UserCommand"].startswith("python train.py submit ")
    assert len({job["Envs"]["PAI_SPOT_CHECKPOINT_DIR"] for job in jobs}) == 1
    assert [job["Envs"]["PAI_SPOT_RESUME"] for job in jobs] == ["0", "1", "1"]
    bids = [job["JobSpecs"][0]["SpotSpec"]["SpotDiscountLimit"] for job in jobs]
    assert bids == [0.5, 0.7, 0.9]
    assert run.xcom("submit") == run.xcom("wait") == run.xcom("announce") == jobs[-1]["JobId"]


def test_losses_beyond_the_sensor_s_retries_fail_it(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(IS_LOST, times=None)
    run = run_dag(two_tasks(retries=1))
    assert (run.task_states["wait"], run.tries["wait"]) == ("failed", 2)
    assert len(emulator.control.jobs()) == 2


@FORMS
def test_with_fail_a_loss_is_not_retried(emulator: DlcEmulator, run_dag: Any, form: dict[str, Any]) -> None:
    emulator.control.plan(IS_LOST, times=None)
    run = run_dag(two_tasks(on_revoked="fail", **form))
    assert (run.task_states["wait"], run.tries["wait"]) == ("failed", 1)
    assert len(emulator.control.jobs()) == 1


@FORMS
def test_a_user_s_bug_is_not_retried_as_if_it_were_a_revocation(
    emulator: DlcEmulator, run_dag: Any, form: dict[str, Any]
) -> None:
    emulator.control.plan(JobPlan(run_seconds=0.2, exit_code=1, logs=("KeyError: 'lr'",)), times=None)
    run = run_dag(two_tasks(**form))
    assert (run.task_states["wait"], run.tries["wait"]) == ("failed", 1)
    assert len(emulator.control.jobs()) == 1
    assert "KeyError: 'lr'" in run.log
    assert run.xcom("wait", "outcome")["verdict"] == "failed"


@FORMS
def test_a_job_made_elsewhere_can_be_watched(emulator: DlcEmulator, run_dag: Any, form: dict[str, Any]) -> None:
    job_id = job_made_elsewhere(emulator, JobPlan(run_seconds=0.3))
    run = run_dag(watch_only(job_id, **form))
    assert run.task_states == {"wait": "success"}
    assert run.xcom("wait") == job_id


@FORMS
@pytest.mark.parametrize("cancel_on_kill", [False, True])
def test_the_timeout_leaves_the_job_alone_unless_told_otherwise(
    emulator: DlcEmulator, run_dag: Any, form: dict[str, Any], cancel_on_kill: bool
) -> None:
    job_id = job_made_elsewhere(emulator, JobPlan(run_seconds=None))
    run = run_dag(watch_only(job_id, timeout=1, cancel_on_kill=cancel_on_kill, **form))
    assert (run.task_states["wait"], run.tries["wait"]) == ("failed", 1)
    status = emulator.control.wait_for(job_id, "Stopped") if cancel_on_kill else emulator.control.job(job_id)["Status"]
    assert status == ("Stopped" if cancel_on_kill else "Running")


def test_each_mapped_sensor_replaces_its_own_job(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(IS_LOST)
    with new_dag() as dag:
        submit = SubmitSpotJobOperator.partial(task_id="submit", wait_for_completion=False, **REQUEST).expand(
            user_command=["train 0", "train 1"]
        )
        SpotJobSensor.partial(
            task_id="wait", submitted_by="submit", retries=2, retry_delay=timedelta(0), poke_interval=0.1
        ).expand(job_id=submit.output)
    run = run_dag(dag)
    assert {name: state for name, state in run.task_states.items() if name.startswith("wait")} == {
        "wait[0]": "success",
        "wait[1]": "success",
    }
    jobs = emulator.control.jobs()
    lost = jobs[0]["UserCommand"]
    assert sorted(job["UserCommand"] for job in jobs) == sorted(["train 0", "train 1", lost])
    for index in (0, 1):
        assert run.xcom("wait", map_index=index) == run.xcom("submit", map_index=index)


@pytest.mark.parametrize("softly", ["soft_fail", "never_fail"])
@pytest.mark.parametrize("over", [True, False], ids=["over at the first look", "seen to end"])
def test_a_deferrable_sensor_that_may_be_skipped_is_skipped_whenever_it_sees_the_end(
    emulator: DlcEmulator, run_dag: Any, softly: str, over: bool
) -> None:
    job_id = job_made_elsewhere(emulator, JobPlan(run_seconds=0.1 if over else 3, exit_code=1))
    if over:
        emulator.control.wait_for(job_id, "Failed")
    run = run_dag(watch_only(job_id, **{softly: True}))
    assert (run.task_states, run.tries) == ({"wait": "skipped"}, {"wait": 1})
    assert run.xcom("wait", "outcome")["verdict"] == "failed"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"on_revoked": "resubmit", "retries": 1}, "submitted_by"),
        ({"submitted_by": "submit", "retries": 0}, "retries"),
        ({"submitted_by": "submit", "retries": 1, "soft_fail": True}, "soft_fail"),
        ({"submitted_by": "submit", "retries": 1, "silent_fail": True, "deferrable": False}, "silent_fail"),
        ({"on_revoked": "later"}, "on_revoked"),
    ],
    ids=["no submit task", "no retries", "soft_fail", "silent_fail", "unknown"],
)
def test_what_cannot_work_is_refused_at_parse_time(arguments: dict[str, Any], word: str) -> None:
    with new_dag(), pytest.raises(ValueError, match=word):
        SpotJobSensor(task_id="wait", job_id="dlc1", **arguments)


def test_without_a_submit_task_a_loss_fails_by_default() -> None:
    with new_dag():
        assert SpotJobSensor(task_id="wait", job_id="dlc1").on_revoked == "fail"
