"""Whether Airflow still wants a task instance's work. An error or no answer is never a yes."""

from __future__ import annotations

from typing import Any

from airflow.sdk import TaskInstanceState

from airflow_provider_pai_spot.attempts.identity import TaskIdentity

# Airflow's State.finished; spelled out because airflow.utils.state is not part of the SDK's public surface.
FINISHED = frozenset(
    {
        TaskInstanceState.SUCCESS.value,
        TaskInstanceState.FAILED.value,
        TaskInstanceState.SKIPPED.value,
        TaskInstanceState.UPSTREAM_FAILED.value,
        TaskInstanceState.REMOVED.value,
    }
)


def is_over(states: dict[str, Any], identity: TaskIdentity) -> bool:
    """
    Read the answer of `get_task_states`: finished, or the task instance is gone.

    :param states: `{run_id: {task_id or task_id_mapindex: state}}`.
    """
    of_run = states.get(identity.run_id) or {}
    name = identity.task_id if identity.map_index < 0 else f"{identity.task_id}_{identity.map_index}"
    if name not in of_run:
        return True
    state = of_run[name]
    return state is not None and str(getattr(state, "value", state)) in FINISHED


def task_is_over(identity: TaskIdentity) -> bool:
    """Ask Airflow, blocking the calling thread; works in workers and in a triggerer's helper thread."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    states = RuntimeTaskInstance.get_task_states(
        dag_id=identity.dag_id,
        task_ids=[identity.task_id],
        run_ids=[identity.run_id],
        map_index=identity.map_index if identity.map_index >= 0 else None,
    )
    return is_over(states, identity)
