"""
The template context of a run that does not exist, made the way Airflow's own worker makes it.

The one module that touches parts of the Task SDK that are not its public surface; `airflow tasks render` does the
same with a database around it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk.api.datamodels._generated import DagRun, DagRunState, DagRunType, TIRunContext
from airflow.sdk.exceptions import ParamValidationError
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.sdk.timezone import coerce_datetime

from airflow_provider_pai_spot.cli.plan.unknown import KnownAtRunTime
from airflow_provider_pai_spot.cli.problem import CliProblem
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

_ASKS_AIRFLOW = (
    "prev_start_date_success",
    "prev_end_date_success",
    "prev_data_interval_start_success",
    "prev_data_interval_end_success",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """
    A run as somebody would start it by hand.

    :param params: what it is started with, as `airflow dags trigger --conf`.
    """

    run_id: str
    logical_date: datetime
    params: Mapping[str, Any]


def plan_context(operator: SubmitSpotJobOperator, run: PlannedRun, map_index: int) -> Context:
    """
    Return the context of the task's first try in this run.

    :raises CliProblem: the params are not what the DAG allows.
    """
    dag_id = operator.dag_id
    instance = _PlannedTaskInstance.model_construct(
        id=uuid.uuid4(),
        task=operator,
        dag_id=dag_id,
        task_id=operator.task_id,
        run_id=run.run_id,
        map_index=map_index,
        try_number=1,
        max_tries=operator.retries or 0,
        start_date=run.logical_date,
        _ti_context_from_server=TIRunContext.model_construct(
            dag_run=_dag_run(dag_id, run), max_tries=operator.retries or 0, task_reschedule_count=0
        ),
    )
    try:
        context = instance.get_template_context()
    except ParamValidationError as error:
        raise CliProblem(f"The params are not what DAG {dag_id!r} allows: {error}") from None
    return _without_questions(context)


class _PlannedTaskInstance(RuntimeTaskInstance):
    """A task instance that has no results of other tasks to look at."""

    def xcom_pull(self, task_ids: Any = None, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Refuse: nothing has run yet."""
        whose = "another task" if task_ids is None else f"task {task_ids!r}"
        raise KnownAtRunTime(f"the result of {whose} (xcom_pull)")


class _AtRunTime:
    """A part of the context that asks a running Airflow; it may be there, but not be used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, _attribute: str) -> NoReturn:
        raise KnownAtRunTime(f"{self._name} is asked of the Airflow that runs the task")

    def __str__(self) -> str:
        raise KnownAtRunTime(f"{self._name} is asked of the Airflow that runs the task")


def _dag_run(dag_id: str, run: PlannedRun) -> DagRun:
    date = coerce_datetime(run.logical_date)
    return DagRun(
        dag_id=dag_id,
        run_id=run.run_id,
        logical_date=date,
        data_interval_start=date,
        data_interval_end=date,
        run_after=date,
        start_date=date,
        end_date=None,
        run_type=DagRunType.MANUAL,
        state=DagRunState.RUNNING,
        conf=dict(run.params),
        consumed_asset_events=[],
        partition_key=None,
    )


def _without_questions(context: Context) -> Context:
    for name in _ASKS_AIRFLOW:
        context[name] = _AtRunTime(name)  # type: ignore[literal-required]
    return context
