"""The few calls of Airflow's public REST API that a demo and the end-to-end tests need."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

import httpx

_TIMEOUT_SECONDS = 90.0
_REPEATABLE = ("GET", "PATCH")
_ALREADY_DONE = {"POST": httpx.codes.CONFLICT, "PATCH": httpx.codes.CONFLICT, "DELETE": httpx.codes.NOT_FOUND}
_REPEATS = 10
_PAUSE_SECONDS = 1.0
_WARM_UP_SECONDS = 120.0
_POLL_SECONDS = 0.5
_PAGE = 100
FINISHED_RUN_STATES = frozenset({"success", "failed"})


class AirflowClient:
    """
    A client of one local Airflow with `[core] simple_auth_manager_all_admins`.

    Every method raises `httpx.HTTPError` when Airflow does not answer or says no.

    :param base_url: of the API server, `http://127.0.0.1:<port>`.
    """

    def __init__(self, base_url: str) -> None:
        # trust_env=False: a proxy of the caller's shell has nothing to do with loopback.
        self._http = httpx.Client(
            base_url=base_url,
            headers={"Accept": "application/json"},
            timeout=_TIMEOUT_SECONDS,
            trust_env=False,
        )

    def close(self) -> None:
        """Close idle connections."""
        self._http.close()

    def warm_up_for_tasks(self) -> None:
        """
        Let the API server build what tasks talk to.

        Airflow builds it at the first request, which takes longer than a task waits for an answer.
        """
        self._http.get("/execution/health", timeout=_WARM_UP_SECONDS).raise_for_status()

    def health(self) -> dict[str, Any]:
        """Return `/monitor/health`: component -> `{status, latest_..._heartbeat}`."""
        return self._call("GET", "/monitor/health")

    def dag_ids(self) -> list[str]:
        """Return the ids of all DAGs that are parsed."""
        return [dag["dag_id"] for dag in self._call("GET", "/dags")["dags"]]

    def import_errors(self) -> list[dict[str, Any]]:
        """Return `{filename, stack_trace, ...}` of each DAG file that cannot be imported."""
        return list(self._call("GET", "/importErrors")["import_errors"])

    def wait_for_dag(self, dag_id: str, timeout: float = 60.0) -> None:
        """
        Wait until a DAG is parsed.

        :raises TimeoutError: says which DAG files cannot be imported.
        """
        deadline = time.monotonic() + timeout
        while dag_id not in self.dag_ids():
            if time.monotonic() > deadline:
                raise TimeoutError(f"DAG {dag_id!r} did not appear; import errors: {self.import_errors()}")
            time.sleep(_POLL_SECONDS)

    def trigger(self, dag_id: str, *, run_id: str | None = None, conf: Mapping[str, Any] | None = None) -> str:
        """Unpause the DAG, start a run of it and return its run id."""
        self._call("PATCH", f"/dags/{dag_id}", json={"is_paused": False})
        wanted = run_id or f"manual__{uuid.uuid4().hex[:12]}"
        body: dict[str, Any] = {"logical_date": None, "conf": dict(conf or {}), "dag_run_id": wanted}
        self._call("POST", f"/dags/{dag_id}/dagRuns", repeatable=True, json=body)
        return wanted

    def run_state(self, dag_id: str, run_id: str) -> str:
        """Return the state of a run: queued, running, success or failed."""
        return str(self._call("GET", _run_path(dag_id, run_id))["state"])

    def wait_for_run(self, dag_id: str, run_id: str, timeout: float) -> str:
        """
        Wait until a run has finished and return its state.

        :raises TimeoutError: says where its tasks stand.
        """
        deadline = time.monotonic() + timeout
        while (state := self.run_state(dag_id, run_id)) not in FINISHED_RUN_STATES:
            if time.monotonic() > deadline:
                tasks = {ti["task_id"]: ti["state"] for ti in self.task_instances(dag_id, run_id)}
                raise TimeoutError(f"Run {run_id} of {dag_id} is still {state} after {timeout:g} s: {tasks}")
            time.sleep(_POLL_SECONDS)
        return state

    def set_run_state(self, dag_id: str, run_id: str, state: str) -> None:
        """Mark a run `success`, `failed` or `queued`, as a person would in the UI."""
        self._call("PATCH", _run_path(dag_id, run_id), json={"state": state})

    def delete_run(self, dag_id: str, run_id: str) -> None:
        """Delete a finished run with its task instances."""
        self._call("DELETE", _run_path(dag_id, run_id), repeatable=True)

    def task_instances(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """Return all task instances of a run, mapped ones included."""
        found: list[dict[str, Any]] = []
        while True:
            page = {"order_by": "id", "limit": _PAGE, "offset": len(found)}
            answer = self._call("GET", f"{_run_path(dag_id, run_id)}/taskInstances", params=page)
            found += answer["task_instances"]
            if not answer["task_instances"] or len(found) >= answer["total_entries"]:
                return found

    def task_instance(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> dict[str, Any]:
        """Return one task instance: `state`, `try_number`, `max_tries`, ..."""
        return self._call("GET", _task_path(dag_id, run_id, task_id, map_index))

    def task_tries(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> list[dict[str, Any]]:
        """Return every try of one task instance, the current one last."""
        path = _task_path(dag_id, run_id, task_id, map_index)
        return list(self._call("GET", f"{path}/tries")["task_instances"])

    def wait_for_task(
        self,
        dag_id: str,
        run_id: str,
        task_id: str,
        states: Iterable[str],
        *,
        map_index: int = -1,
        timeout: float = 60.0,
    ) -> dict[str, Any]:
        """
        Wait until a task instance is in one of `states` and return it.

        :raises TimeoutError: says the state it was in.
        """
        wanted = frozenset(states)
        deadline = time.monotonic() + timeout
        while (found := self.task_instance(dag_id, run_id, task_id, map_index))["state"] not in wanted:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"Task {task_id} of {run_id} is {found['state']!r} after {timeout:g} s, expected {sorted(wanted)}."
                )
            time.sleep(_POLL_SECONDS)
        return found

    def set_task_state(self, dag_id: str, run_id: str, task_id: str, state: str, map_index: int = -1) -> None:
        """Mark a task instance `success`, `failed` or `skipped`, as a person would in the UI."""
        self._call("PATCH", _task_path(dag_id, run_id, task_id, map_index), json={"new_state": state})

    def clear(self, dag_id: str, run_id: str, task_ids: Iterable[str], *, include_downstream: bool = False) -> None:
        """Clear task instances of a run, as a person would in the UI."""
        body = {
            "dry_run": False,
            "only_failed": False,
            "dag_run_id": run_id,
            "task_ids": list(task_ids),
            "include_downstream": include_downstream,
        }
        self._call("POST", f"/dags/{dag_id}/clearTaskInstances", repeatable=True, json=body)

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value", map_index: int = -1) -> Any:
        """Return an XCom value, None if there is none."""
        path = f"{_task_path(dag_id, run_id, task_id)}/xcomEntries/{quote(key)}"
        try:
            return self._call("GET", path, params={"map_index": map_index, "deserialize": True})["value"]
        except httpx.HTTPStatusError as error:
            if error.response.status_code == httpx.codes.NOT_FOUND:
                return None
            raise

    def task_log(self, dag_id: str, run_id: str, task_id: str, try_number: int = 1, map_index: int = -1) -> str:
        """Return the log of one try, a line an event, worker and triggerer together."""
        path = f"{_task_path(dag_id, run_id, task_id)}/logs/{try_number}"
        answer = self._call("GET", path, params={"map_index": map_index, "full_content": True})
        return "\n".join(_log_line(entry) for entry in answer["content"])

    def _call(self, method: str, path: str, *, repeatable: bool = False, **options: Any) -> dict[str, Any]:
        """Ask, and ask again what may be asked twice: an Airflow on a locked SQLite file answers 500."""
        tries_left = _REPEATS if repeatable or method in _REPEATABLE else 0
        first = answer = self._http.request(method, f"/api/v2{path}", **options)
        while answer.is_server_error and tries_left:
            tries_left -= 1
            time.sleep(_PAUSE_SECONDS)
            answer = self._http.request(method, f"/api/v2{path}", **options)
        if first.is_server_error and answer.status_code == _ALREADY_DONE.get(method):
            return {}  # what the first request asked for was done although its answer was 500
        answer.raise_for_status()
        return dict(answer.json()) if answer.content else {}


def _run_path(dag_id: str, run_id: str) -> str:
    return f"/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}"


def _task_path(dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> str:
    path = f"{_run_path(dag_id, run_id)}/taskInstances/{task_id}"
    return path if map_index < 0 else f"{path}/{map_index}"


def _log_line(entry: str | Mapping[str, Any]) -> str:
    if isinstance(entry, str):
        return entry
    return f"{entry.get('timestamp') or ''} {entry.get('level', '')} {entry['event']}".strip()
