"""Airflow's state, read from its database: the API server may be dead just now."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from airflow_provider_pai_spot.attempts.ledger import STORE_KEY

FINISHED = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})

_STATES = """
    select id, run_id, task_id, map_index, state, try_number, max_tries
    from task_instance where dag_id = %s and map_index >= 0
"""
_XCOMS = "select run_id, task_id, map_index, key, value from xcom where dag_id = %s and key = any(%s)"
_STORED = """
    select position(%s in value) > 0 from task_state_store
    where dag_id = %s and run_id = %s and task_id = %s and map_index = %s and key = %s
"""
_TRIGGERER = """
    select id, extract(epoch from now() - latest_heartbeat) from job
    where job_type = 'TriggererJob' and unixname = %s
"""


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


@dataclass(frozen=True, slots=True)
class Triggerer:
    """
    What Airflow knows of one triggerer.

    :param job_id: of Airflow's table `job`; triggers name it.
    :param silent_seconds: since its last heartbeat.
    """

    job_id: int
    silent_seconds: float


class AirflowDatabase:
    """
    A reader of Airflow's tables.

    :param address: `user:password@host:port/database`.
    """

    def __init__(self, address: str) -> None:
        import psycopg2  # only here, so that the judge can be tested where no PostgreSQL is

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

    def state_of(self, uuid: str) -> str | None:
        """Return the state of one try; None once Airflow has begun another."""
        rows = self._rows("select state from task_instance where id = %s", uuid)
        return rows[0][0] if rows else None

    def has_stored(self, dag_id: str, one: TaskInstance, text: str) -> bool:
        """Whether the provider's entry in a task instance's state store holds a text, such as a job's id."""
        rows = self._rows(_STORED, text, dag_id, *one.key, STORE_KEY)
        return bool(rows and rows[0][0])

    def triggerer(self, unixname: str) -> Triggerer | None:
        """Return what is known of the triggerer that runs under a user name; None before its first heartbeat."""
        rows = self._rows(_TRIGGERER, unixname)
        return Triggerer(rows[0][0], float(rows[0][1])) if rows else None

    def triggers_of(self, job_id: int) -> set[int]:
        """Return the triggers that are one triggerer's."""
        return {row[0] for row in self._rows("select id from trigger where triggerer_id = %s", job_id)}

    def taken_over(self, triggers: Iterable[int], job_id: int) -> int:
        """Count which of these triggers are another triggerer's than this one's by now."""
        statement = "select count(*) from trigger where id = any(%s) and triggerer_id <> %s"
        return int(self._rows(statement, list(triggers), job_id)[0][0])

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
