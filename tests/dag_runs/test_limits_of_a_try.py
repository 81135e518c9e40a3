"""Limits of a whole try, in the triggerer and in a worker."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowTaskTimeout

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.operators.flow import OperatorFlow
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator

LIMIT = timedelta(seconds=8)


def train(kind: type[SubmitSpotJobOperator] = SubmitSpotJobOperator, **arguments: Any) -> DAG:
    with DAG(f"dag_{uuid.uuid4().hex[:8]}", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        kind(
            task_id="train",
            image="registry.example.com/train:1",
            user_command="python train.py",
            ecs_spec="ecs.g7.xlarge",
            spot_discount_limit=0.6,
            poll_interval=0.1,
            **arguments,
        )
    return dag


@pytest.mark.parametrize("deferrable", [True, False], ids=["deferrable", "in the worker"])
@pytest.mark.parametrize("limit", ["total_timeout", "execution_timeout"])
def test_a_try_at_its_limit_takes_its_job_along(
    emulator: DlcEmulator, run_dag: Any, limit: str, deferrable: bool
) -> None:
    """`execution_timeout` is Airflow's too, for as long as a worker holds the task: whichever clock strikes first."""
    emulator.control.plan(JobPlan(run_seconds=None), times=None)
    run = run_dag(train(deferrable=deferrable, **{limit: LIMIT}))
    assert (run.task_states, run.tries) == ({"train": "failed"}, {"train": 1})
    assert re.search("SpotTotalTimeout" if limit == "total_timeout" else "SpotTotalTimeout|AirflowTaskTimeout", run.log)
    for job in emulator.control.jobs():
        emulator.control.wait_for(job["JobId"], "Stopped")


class StruckOnce(SubmitSpotJobOperator):
    """Airflow's alarm strikes its first try as soon as there is a job, and before its own clock does."""

    def _begin(self, context: Any) -> OperatorFlow:
        flow = super()._begin(context)

        def strike(job_id: str) -> None:
            flow.kill.check(job_id)
            raise AirflowTaskTimeout

        if context["ti"].try_number == 1:
            flow.jobs.after_create = strike
        return flow


def test_an_execution_timeout_in_a_worker_costs_the_next_try_nothing(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=None))
    run = run_dag(train(StruckOnce, deferrable=False, retries=1, retry_delay=timedelta(0)))
    assert (run.task_states, run.tries) == ({"train": "success"}, {"train": 2})
    assert sorted(job["Status"] for job in emulator.control.jobs()) == ["Stopped", "Succeeded"]
