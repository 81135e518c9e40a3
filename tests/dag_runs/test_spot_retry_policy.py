"""SpotRetryPolicy in a whole DAG run: on plain and mapped tasks, on a sensor, by argument, default or class."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.retry_policy import SpotRetryPolicy
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

REQUEST: dict[str, Any] = {
    "image": "registry.example.com/train:1",
    "ecs_spec": "ecs.g7.xlarge",
    "spot_discount_limit": 0.6,
    "poll_interval": 0.05,
    "deferrable": False,
    "recovery": {"max_revocations": 0},
}
POLICY = SpotRetryPolicy(delay_after_loss=timedelta(0))
LONG_DELAY = {"retries": 2, "retry_delay": timedelta(hours=5)}
COMMAND = {"user_command": "python train.py"}


class WithPolicy(SubmitSpotJobOperator):
    """An operator of somebody's own, whose class says how Airflow retries."""

    default_retry_policy = POLICY


def test_a_loss_is_a_visible_retry_and_what_a_retry_cannot_mend_is_none(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=30, revoke_after=0.05), match={"display_name": "-lost"}, times=None)
    emulator.control.plan(JobPlan(run_seconds=0.05, exit_code=1), match={"display_name": "-broken"}, times=None)
    with DAG(f"d{uuid.uuid4().hex[:6]}", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        SubmitSpotJobOperator(task_id="lost", retry_policy=POLICY, **COMMAND, **REQUEST, **LONG_DELAY)
        SubmitSpotJobOperator(task_id="broken", retry_policy=POLICY, **COMMAND, **REQUEST, **LONG_DELAY)
        WithPolicy(task_id="broken-by-class", **COMMAND, **REQUEST, **LONG_DELAY)
        for mapped, operator in (("broken-mapped", SubmitSpotJobOperator), ("broken-mapped-class", WithPolicy)):
            given = {"retry_policy": POLICY} if operator is SubmitSpotJobOperator else {}
            task = operator.partial(task_id=mapped, **given, **REQUEST, **LONG_DELAY)
            task.expand(user_command=["python a.py", "python b.py"])
        SubmitSpotJobOperator(
            task_id="broken-by-default-args",
            default_args={"retry_policy": POLICY},
            **COMMAND,
            **REQUEST,
            **LONG_DELAY,
        )
        submit = SubmitSpotJobOperator(task_id="lost-later", wait_for_completion=False, **COMMAND, **REQUEST)
        SpotJobSensor(
            task_id="wait",
            job_id=submit.output,
            submitted_by=submit,
            deferrable=False,
            poke_interval=0.05,
            retry_policy=POLICY,
            **LONG_DELAY,
        )
    run = run_dag(dag)
    once = ["broken", "broken-by-class", "broken-by-default-args"]
    once += [f"{mapped}[{index}]" for mapped in ("broken-mapped", "broken-mapped-class") for index in (0, 1)]
    assert {task_id: run.tries[task_id] for task_id in once} == dict.fromkeys(once, 1)
    assert (run.tries["lost"], run.tries["wait"]) == (3, 3)
    assert {state for task_id, state in run.task_states.items() if task_id != "lost-later"} == {"failed"}
    assert "a retry cannot mend it: its command ended with exit code 1" in run.log
    assert "the market took the capacity back" in run.log
