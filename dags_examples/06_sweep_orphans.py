"""
Every quarter of an hour: find the jobs that no task waits for any more, and stop them.

Nobody listens while a task is queued for resume or up for retry; a job whose task is ended just then runs on, and is
billed. A worker has no credential of its own for Airflow's public API, so this DAG needs a connection
`airflow_api_default` of type HTTP with host, login and password of somebody who may read DAG runs, task instances and
XComs. It only lists until the param `apply` is set; change the default below once its log reads as it should.
"""

from datetime import timedelta
from typing import Any

import pendulum
from airflow.sdk import DAG, Param, get_current_context, task

EXPECTED_STATE = {"sweep": "success"}
EXPECTED_LOG = {"sweep": ("in namespace",)}

with DAG(
    "sweep_orphans",
    schedule=timedelta(minutes=15),
    start_date=pendulum.datetime(2026, 1, 1, tz="Asia/Shanghai"),
    catchup=False,
    max_active_runs=1,
    params={"apply": Param(False, type="boolean", description="stop the orphans instead of listing them")},
):

    @task(execution_timeout=timedelta(minutes=10))
    def sweep() -> dict[str, Any]:
        """Return what was found and done; fails if that is not everything."""
        from airflow_provider_pai_spot.sweep.as_task import sweep_as_task

        context = get_current_context()
        return sweep_as_task(context, apply=context["params"]["apply"])

    sweep()
