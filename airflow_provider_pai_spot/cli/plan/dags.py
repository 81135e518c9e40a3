"""Finds a DAG in a file or in the configured bundles, as `airflow tasks render` does, but stores nothing."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_pai_spot.cli.problem import CliProblem
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor, default_on_revoked, submit_task_id

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import BundleDagBag


_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchingSensor:
    """
    What a sensor, mapped or not, says of losses.

    :param submitted_by: id of the task whose jobs it replaces, None for none.
    :param on_revoked: `resubmit` or `fail`.
    :param retries: of one map index.
    """

    task_id: str
    submitted_by: str | None
    on_revoked: str
    retries: int

    @classmethod
    def of(cls, sensor: Any) -> Self:
        """Return what a SpotJobSensor, or a mapped one, was given; what is mapped over is known at run time."""
        given = getattr(sensor, "partial_kwargs", None)
        get = partial(getattr, sensor) if given is None else given.get
        submitted_by = submit_task_id(get("submitted_by", None))
        return cls(
            task_id=sensor.task_id,
            submitted_by=submitted_by,
            on_revoked=get("on_revoked", None) or default_on_revoked(submitted_by),
            retries=sensor.retries or 0,
        )


def find_dag(dag_id: str, dag_file: Path | None) -> Any:
    """
    Return the DAG.

    :param dag_file: where it is; None: in one of the DAG bundles that Airflow is configured with.
    :raises CliProblem: it is not there, or the file cannot be imported; says what is there instead.
    """
    bags = [_bag_of_file(dag_file)] if dag_file is not None else _bags_of_bundles()
    seen: list[BundleDagBag] = []
    for bag in bags:
        if dag_id in bag.dags:
            return bag.dags[dag_id]
        seen.append(bag)
    raise CliProblem(_not_found(dag_id, dag_file, seen))


def find_task(dag: Any, task_id: str) -> Any:
    """
    Return the task, mapped or not.

    :raises CliProblem: the DAG has no such task, or the task does not submit spot jobs.
    """
    if task_id not in dag.task_dict:
        raise CliProblem(f"DAG {dag.dag_id!r} has no task {task_id!r}; {_spot_tasks(dag)}.")
    task = dag.task_dict[task_id]
    kind = operator_class(task)
    if issubclass(kind, SubmitSpotJobOperator):
        return task
    if issubclass(kind, SpotJobSensor) and (submitted_by := WatchingSensor.of(task).submitted_by):
        raise CliProblem(f"{task_id!r} watches jobs that {submitted_by!r} submits: plan that task.")
    raise CliProblem(f"{task_id!r} is a {kind.__name__}, which submits no spot jobs; {_spot_tasks(dag)}.")


def watching_sensors(dag: Any, task_id: str) -> list[WatchingSensor]:
    """Return the sensors that submit successors of this task's jobs after a loss."""
    sensors = (WatchingSensor.of(task) for task in dag.task_dict.values() if _is_sensor(task))
    return [one for one in sensors if one.submitted_by == task_id and one.on_revoked == "resubmit"]


def _is_sensor(task: Any) -> bool:
    return issubclass(operator_class(task), SpotJobSensor)


def operator_class(task: Any) -> type:
    """Return the class of a task that may be mapped."""
    of_mapped = getattr(task, "operator_class", None)
    return of_mapped if isinstance(of_mapped, type) else type(task)


def _bag_of_file(dag_file: Path) -> BundleDagBag:
    if not dag_file.is_file():
        raise CliProblem(f"--dag-file {dag_file}: there is no such file.")
    from airflow.dag_processing.dagbag import BundleDagBag

    path = dag_file.resolve()
    return BundleDagBag(dag_folder=str(path), bundle_path=path.parent, bundle_name="dag-file", safe_mode=False)


def _bags_of_bundles() -> Iterable[BundleDagBag]:
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import BundleDagBag

    manager = DagBundlesManager()  # type: ignore[no-untyped-call]
    for bundle in manager.get_all_dag_bundles():
        bundle.initialize()
        yield BundleDagBag(dag_folder=str(bundle.path), bundle_path=bundle.path, bundle_name=bundle.name)


def _not_found(dag_id: str, dag_file: Path | None, bags: list[BundleDagBag]) -> str:
    where = str(dag_file) if dag_file else f"the configured DAG bundles ({', '.join(str(b.dag_folder) for b in bags)})"
    found = [one for bag in bags for one in bag.dags]
    errors = {file: error for bag in bags for file, error in bag.import_errors.items()}
    parts = [f"DAG {dag_id!r} is not in {where}", *_instead(dag_id, found)]
    parts += [f"{file} cannot be imported: {_last_line(error)}" for file, error in list(errors.items())[:_SHOWN]]
    if dag_file is None:
        parts.append("name its file with --dag-file")
    return "; ".join(parts) + "."


def _instead(dag_id: str, found: list[str]) -> list[str]:
    if close := difflib.get_close_matches(dag_id, found, n=1):
        return [f"did you mean {close[0]!r}?"]
    if not found:
        return []
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return [f"there are: {', '.join(sorted(found)[:_SHOWN])}{more}"]


def _last_line(error: str) -> str:
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else "no reason given"


def _spot_tasks(dag: Any) -> str:
    names = [name for name, task in dag.task_dict.items() if issubclass(operator_class(task), SubmitSpotJobOperator)]
    return f"its spot jobs: {', '.join(sorted(names))}" if names else "it has none that submits spot jobs"
