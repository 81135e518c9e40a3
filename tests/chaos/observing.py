"""Airflow's state, read from its database: the API server may be dead just now."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import psycopg2

FINISHED = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})

_STATES = """
    select id, run_id, task_id, map_index, state, try_number, max_tries
    from task_instance where dag_id = %s and map_index >= 0
"""
_XCOMS = "select run_id, task_id, map_index, key, value from xcom where dag_id = %s and key = any(%s)"


@dataclass(frozen=True, slots=True)
class TaskInstance:
    """One row of Airflow's task instances; `uuid` changes with each try."""

    uuid: str
    run_id: str
    task_id: str
    map_index: int
    state: str
    try_number: int
    max_tries: int

    @property
    def key(self) -> tuple[str, str, int]:
        """What stays the same over all tries."""
        return self.run_id, self.task_id, self.map_index

    @property
    def finished(self) -> bool:
        """Whether Airflow will not run it again."""
        return self.state in FINISHED


class AirflowDatabase:
    """
    A reader of Airflow's tables.

    :param address: `user:password@host:port/database`.
    """

    def __init__(self, address: str) -> None:
        self._connection = psycopg2.connect(f"postgresql://{address}")
        self._connection.autocommit = True

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def task_instances(self, dag_id: str) -> list[TaskInstance]:
        """Return the expanded task instances of a DAG."""
        return [
            TaskInstance(str(uuid), run_id, task_id, map_index, state or "none", try_number, max_tries)
            for uuid, run_id, task_id, map_index, state, try_number, max_tries in self._rows(_STATES, dag_id)
        ]

    def run_states(self, dag_id: str) -> dict[str, str]:
        """Return run id -> state."""
        return dict(self._rows("select run_id, state from dag_run where dag_id = %s", dag_id))

    def xcoms(self, dag_id: str, *keys: str) -> dict[tuple[str, str, int], dict[str, Any]]:
        """Return task instance key -> {XCom key: value}."""
        found: dict[tuple[str, str, int], dict[str, Any]] = {}
        for run_id, task_id, map_index, key, value in self._rows(_XCOMS, dag_id, list(keys)):
            found.setdefault((run_id, task_id, map_index), {})[key] = _plain(value)
        return found

    def _rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall())


def _plain(value: Any) -> Any:
    """Undo what Airflow wraps around a value: JSON in JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
