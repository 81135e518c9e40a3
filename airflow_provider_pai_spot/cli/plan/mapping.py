"""A mapped task, at one map index, as an ordinary operator; literal values are expanded, references stay references."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from airflow_provider_pai_spot.cli.plan.unknown import Later, result_of
from airflow_provider_pai_spot.cli.problem import CliProblem
from airflow_provider_pai_spot.exceptions import SpotSubmissionRefused
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf:
    """
    An operator, and which map index it stands for.

    :param map_index: -1 for a task that is not mapped.
    :param count: how many map indexes there are, None if that is known at run time.
    :param left_out: arguments that only the run knows and that are no part of the request, with the reason.
    """

    operator: SubmitSpotJobOperator
    map_index: int = -1
    count: int | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)


def one_of(task: Any, map_index: int | None) -> OneOf:
    """
    Return the operator of one map index, or the task itself if it is not mapped.

    :param map_index: None for the first.
    :raises CliProblem: there is no such index, or nothing is known before another task has run.
    """
    if hasattr(task, "expand_input"):
        return _expanded(task, map_index or 0)
    operator = task.prepare_for_execution()
    if task.get_closest_mapped_task_group() is not None:
        return OneOf(operator=operator, map_index=map_index or 0)
    if map_index is not None:
        raise CliProblem(f"--map-index {map_index}: {task.task_id!r} is not mapped.")
    return OneOf(operator=operator)


def _expanded(task: Any, map_index: int) -> OneOf:
    values = task.expand_input.value
    count = _count(values)
    if count is not None and not 0 <= map_index < count:
        raise CliProblem(f"--map-index {map_index}: {task.task_id!r} has {count} map indexes, 0 to {count - 1}.")
    if isinstance(values, Mapping):
        chosen = _of_lists(task, map_index, values, known=count is not None)
    else:
        chosen = _of_dicts(task, map_index, values)
    left_out = {
        name: value.reason
        for name, value in chosen.items()
        if isinstance(value, Later) and name not in task.template_fields
    }
    return OneOf(
        operator=_operator(task, {name: value for name, value in chosen.items() if name not in left_out}),
        map_index=map_index,
        count=count,
        left_out=left_out,
    )


def _count(values: Any) -> int | None:
    """Return the number of map indexes, None if another task's result decides."""
    if not isinstance(values, Mapping):
        return len(values) if isinstance(values, (list, tuple)) else None
    if any(hasattr(value, "iter_references") for value in values.values()):
        return None
    return math.prod(len(value) for value in values.values())


def _of_lists(task: Any, map_index: int, values: Mapping[str, Any], *, known: bool) -> dict[str, Any]:
    """`expand(a=[…], b=[…])`: the product of lists; one of unknown length makes every position unknown."""
    if known:
        chosen, _ = task.expand_input.resolve({"ti": SimpleNamespace(map_index=map_index)})
        return dict(chosen)
    reasons = [reason for value in values.values() if (reason := result_of(value))]
    return {name: Later(result_of(value) or reasons[0]) for name, value in values.items()}


def _of_dicts(task: Any, map_index: int, values: Any) -> dict[str, Any]:
    """`expand_kwargs([{…}, {…}])`."""
    chosen = values[map_index] if isinstance(values, (list, tuple)) else values
    if isinstance(chosen, Mapping):
        return dict(chosen)
    raise CliProblem(
        f"{task.task_id!r} expands over {result_of(chosen) or 'what is known at run time'}: even which arguments it "
        "gives is not known before that task has run."
    )


def _operator(task: Any, chosen: Mapping[str, Any]) -> SubmitSpotJobOperator:
    """
    Return the operator that Airflow would make for these values.

    :raises SpotSubmissionRefused: these values cannot work.
    """
    operator = task.unmap(chosen)
    if not isinstance(operator, SubmitSpotJobOperator):
        raise SpotSubmissionRefused(f"{task.task_id} is a {type(operator).__name__}, which submits no spot jobs.")
    return operator
