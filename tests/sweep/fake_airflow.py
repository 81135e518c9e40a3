"""The routes of Airflow's public API that a sweep asks, over real HTTP, with the texts that Airflow 3.3 answers."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

Route = Callable[..., tuple[int, Any]]
TOKEN = "planted-access-token"
PASSWORD = "planted-airflow-password"
LOGIN = "sweeper"


class FakeAirflow:
    """One Airflow. `broken` maps a part of a path to (status, body), a str for anything but JSON."""

    def __init__(self, *, needs_login: bool = False) -> None:
        self.needs_login = needs_login
        self.dags: set[str] = set()
        self.runs: dict[tuple[str, str], dict[str, Any]] = {}
        self.tasks: dict[tuple[str, str, str, int], dict[str, Any]] = {}
        self.xcoms: dict[tuple[str, str, str, int], str] = {}
        self.broken: dict[str, tuple[int, Any]] = {}
        self.requests: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    # --- what Airflow knows -----------------------------------------------------------------------------

    def run(self, dag_id: str, run_id: str, state: str = "running", end_date: str | None = None) -> None:
        self.dags.add(dag_id)
        self.runs[dag_id, run_id] = {"state": state, "end_date": end_date}

    def task(
        self,
        dag_id: str,
        run_id: str,
        task_id: str,
        state: str | None,
        *,
        map_index: int = -1,
        end_date: str | None = None,
    ) -> None:
        if (dag_id, run_id) not in self.runs:
            self.run(dag_id, run_id)
        self.tasks[dag_id, run_id, task_id, map_index] = {"state": state, "end_date": end_date}

    def delete_run(self, dag_id: str, run_id: str) -> None:
        del self.runs[dag_id, run_id]
        self.tasks = {key: task for key, task in self.tasks.items() if key[:2] != (dag_id, run_id)}

    # --- routes -----------------------------------------------------------------------------------------

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        for part, broken in self.broken.items():
            if part in path:
                return broken
        for pattern, route in self._routes.items():
            if found := re.fullmatch(pattern, path):
                return route(self, query, *map(unquote, found.groups()))
        return 404, {"detail": "Not Found"}

    def _dag(self, _query: dict[str, str], dag_id: str) -> tuple[int, Any]:
        if dag_id in self.dags:
            return 200, {"dag_id": dag_id}
        return 404, {"detail": f"Dag with id: {dag_id} was not found"}

    def _run(self, _query: dict[str, str], dag_id: str, run_id: str) -> tuple[int, Any]:
        if (dag_id, run_id) in self.runs:
            return 200, {"dag_id": dag_id, "dag_run_id": run_id, **self.runs[dag_id, run_id]}
        return 404, {"detail": f"The DagRun with dag_id: `{dag_id}` and run_id: `{run_id}` was not found"}

    def _tasks(self, query: dict[str, str], dag_id: str, run_id: str) -> tuple[int, Any]:
        if (dag_id, run_id) not in self.runs:
            return 404, {"detail": f"DagRun with dag_id: `{dag_id}` and run_id: `{run_id}` was not found"}
        shown = [self._shown(key) for key in sorted(self.tasks) if key[:2] == (dag_id, run_id)]
        offset, limit = int(query.get("offset", 0)), int(query.get("limit", 50))
        return 200, {"task_instances": shown[offset : offset + limit], "total_entries": len(shown)}

    def _task(self, _query: dict[str, str], dag_id: str, run_id: str, task_id: str, map_index: str) -> tuple[int, Any]:
        key = (dag_id, run_id, task_id, int(map_index))
        if key in self.tasks:
            return 200, self._shown(key)
        what = f"dag_id: `{dag_id}`, run_id: `{run_id}`, task_id: `{task_id}`, and map_index: `{map_index}`"
        return 404, {"detail": f"The Mapped Task Instance with {what} was not found"}

    def _xcom(self, query: dict[str, str], dag_id: str, run_id: str, task_id: str, key: str) -> tuple[int, Any]:
        value = self.xcoms.get((dag_id, run_id, task_id, int(query["map_index"])))
        if value is None:
            return 404, {"detail": f"XCom entry with key: `{key}` not found"}
        return 200, {"key": key, "value": value}

    def _shown(self, key: tuple[str, str, str, int]) -> dict[str, Any]:
        return {"dag_id": key[0], "dag_run_id": key[1], "task_id": key[2], "map_index": key[3], **self.tasks[key]}

    _ONE = "([^/]+)"
    _RUN = f"/api/v2/dags/{_ONE}/dagRuns/{_ONE}"
    _routes: dict[str, Route] = {  # noqa: RUF012 - never changed
        f"/api/v2/dags/{_ONE}": _dag,
        _RUN: _run,
        f"{_RUN}/taskInstances": _tasks,
        f"{_RUN}/taskInstances/{_ONE}/(-?[0-9]+)": _task,
        f"{_RUN}/taskInstances/{_ONE}/xcomEntries/{_ONE}": _xcom,
    }

    # --- HTTP -------------------------------------------------------------------------------------------

    def _handler(airflow) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler below
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                airflow.requests.append(f"GET {parts.path}")
                if airflow.needs_login and self.headers.get("authorization") != f"Bearer {TOKEN}":
                    return self.send(401, {"detail": "Not authenticated"})
                query = {key: values[0] for key, values in parse_qs(parts.query).items()}
                return self.send(*airflow.answer(parts.path, query))

            def do_POST(self) -> None:
                airflow.requests.append(f"POST {self.path}")
                body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
                if self.path == "/auth/token" and body == {"username": LOGIN, "password": PASSWORD}:
                    return self.send(201, {"access_token": TOKEN})
                return self.send(401, {"detail": "Invalid credentials"})

            def send(self, status: int, body: Any) -> None:
                raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
                self.send_response(status)
                kind = "text/html" if isinstance(body, str) else "application/json"
                for key, value in {"content-type": kind, "content-length": str(len(raw))}.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *args: object) -> None:
                """Stay quiet."""

        return Handler
