"""Spot tasks whose runs are deleted, cleared and killed by test_the_same_work_again.py."""

import os
import time
import traceback
from datetime import timedelta
from pathlib import Path
from typing import Any

import pendulum
from airflow.sdk import DAG

from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator

HELD = Path(__file__).parents[1] / "held"
REQUEST: dict[str, Any] = {
    "task_id": "train",
    "image": "registry.example.com/train:1",
    "user_command": "{{ var.value.get('command_of_' ~ dag.dag_id ~ '-' ~ run_id, 'python train.py') }}",
    "ecs_spec": "ecs.g7.xlarge",
    "spot_discount_limit": 0.6,
    "display_name": "{{ dag.dag_id }}-{{ run_id }}",
    "poll_interval": 1,
    "retries": 2,
    "retry_delay": timedelta(seconds=1),
}


class HeldBeforeItReports(SubmitSpotJobOperator):
    """Its first try acts on the job's end and then stays, with its process id in a file, until it is killed."""

    def post_execute(self, context: Any, result: Any = None) -> None:  # noqa: ARG002 - as Airflow calls it
        if context["ti"].try_number == 1:
            HELD.mkdir(exist_ok=True)
            (HELD / f"{self.dag_id}-{context['run_id']}").write_text(str(os.getpid()))
            time.sleep(600)


class TellsItsEnd(SubmitSpotJobOperator):
    """Writes down who watches over its process, and how it ended."""

    def execute(self, context: Any) -> Any:
        HELD.mkdir(exist_ok=True)
        (HELD / f"{self.dag_id}-{context['run_id']}").write_text(str(os.getppid()))
        try:
            return super().execute(context)
        except BaseException:
            (HELD / f"{self.dag_id}-{context['run_id']}.end").write_text(traceback.format_exc())
            raise


# `localhost` is what the API server's address gives; `named` is in the connection.
for name, connection in (("localhost", "pai_dlc_scripted"), ("named", "pai_dlc_named")):
    dag: dict[str, Any] = {"start_date": pendulum.datetime(2026, 1, 1), "max_active_runs": 64}
    with DAG(f"same_work_{name}", schedule=None, **dag):
        SubmitSpotJobOperator(pai_dlc_conn_id=connection, **REQUEST)
    with DAG(f"same_work_{name}_left_alone", schedule=None, **dag):
        SubmitSpotJobOperator(pai_dlc_conn_id=connection, cancel_on_kill=False, **REQUEST)
    with DAG(f"same_work_{name}_in_worker", schedule=None, **dag):
        SubmitSpotJobOperator(pai_dlc_conn_id=connection, deferrable=False, **REQUEST)
    with DAG(f"same_work_{name}_held", schedule=None, **dag):
        HeldBeforeItReports(pai_dlc_conn_id=connection, **REQUEST)
    with DAG(f"same_work_{name}_held_in_worker", schedule=None, **dag):
        HeldBeforeItReports(pai_dlc_conn_id=connection, deferrable=False, **REQUEST)

with DAG("same_work_given_up", schedule=None, start_date=pendulum.datetime(2026, 1, 1)):
    TellsItsEnd(pai_dlc_conn_id="pai_dlc_named", **REQUEST)
