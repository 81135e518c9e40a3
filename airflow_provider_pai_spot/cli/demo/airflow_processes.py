"""A real Airflow on this machine: API server, scheduler, DAG processor and triggerer as processes of their own."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from airflow_provider_pai_spot.cli.demo.airflow_client import AirflowClient
from airflow_provider_pai_spot.cli.demo.airflow_environment import airflow_environment, patient_with_sqlite
from airflow_provider_pai_spot.cli.demo.sessions import Processes, ProcessSession

_MIGRATION = ["db", "migrate"]
# The log server of a worker or triggerer is for other machines; here everybody reads the same folder.
_COMPONENTS: dict[str, list[str]] = {
    "api-server": ["api-server"],
    "scheduler": ["scheduler", "--skip-serve-logs"],
    "dag-processor": ["dag-processor"],
    "triggerer": ["triggerer", "--skip-serve-logs"],
}
_COMPONENT_OF_HEALTH_KEY = {
    "scheduler": "scheduler",
    "dag_processor": "dag-processor",
    "triggerer": "triggerer",
}
_POLL_SECONDS = 0.25
_STOP_GRACE_SECONDS = 8.0


class AirflowDidNotStart(RuntimeError):
    """A component ended or did not report healthy in time; carries the tail of its log."""


class LocalAirflow:
    """
    Airflow with SQLite and LocalExecutor on free loopback ports, in a home folder of its own.

    Use as a context manager, or call `start` and `stop`. Nothing outlives this process.

    :param dags_folder: where the DAG files are.
    :param home: AIRFLOW_HOME; made if it does not exist. Component logs are `<home>/<component>.log`.
    :param connections: connection id -> connection URI or JSON.
    :param environment: more environment variables for all components.
    :param parallelism: how many tasks run at the same time.
    :param start_timeout: seconds until everything must be healthy.
    :param processes: the set its processes join; a set of its own if not given.
    """

    def __init__(
        self,
        dags_folder: Path,
        home: Path,
        *,
        connections: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        parallelism: int = 4,
        start_timeout: float = 180.0,
        processes: Processes | None = None,
    ) -> None:
        self.home = home.resolve()
        self.port = free_port()
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.client = AirflowClient(self.base_url)
        self.environment = {
            **airflow_environment(
                home=self.home,
                dags_folder=dags_folder.resolve(),
                port=self.port,
                connections=connections or {},
                parallelism=parallelism,
            ),
            **(environment or {}),
        }
        self._start_timeout = start_timeout
        self._own_processes = processes is None
        self._processes = Processes() if processes is None else processes
        self._components: dict[str, ProcessSession] = {}

    def start(self) -> None:
        """
        Create the database, start all components and wait until each reports healthy.

        :raises AirflowDidNotStart: which component, and the tail of its log.
        """
        deadline = time.monotonic() + self._start_timeout
        self.home.mkdir(parents=True, exist_ok=True)
        # Importing the API server takes longest and needs no database yet.
        self.start_component("api-server")
        self._migrate(deadline)
        for name in ("scheduler", "dag-processor", "triggerer"):
            self.start_component(name)
        self._wait_until_healthy(deadline)

    def stop(self) -> None:
        """End all components and everything they forked."""
        running = list(self._components.values())
        self._components.clear()
        self.client.close()
        self._processes.stop(*running, grace=_STOP_GRACE_SECONDS)
        if self._own_processes:
            self._processes.close()

    def start_component(self, name: str) -> ProcessSession:
        """Start one component (`api-server`, `scheduler`, `dag-processor` or `triggerer`) without waiting for it."""
        self._components[name] = self._run(name, _COMPONENTS[name])
        return self._components[name]

    def kill_component(self, name: str) -> None:
        """SIGKILL one component and everything it forked."""
        self._processes.kill(self._components.pop(name))

    def stop_component(self, name: str) -> None:
        """End one component in an orderly way."""
        self._processes.stop(self._components.pop(name), grace=_STOP_GRACE_SECONDS)

    def log_tail(self, name: str, lines: int = 30) -> str:
        """Return the last lines a component wrote."""
        return self._components[name].log_tail(lines)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, name: str, arguments: Iterable[str]) -> ProcessSession:
        return self._processes.start(
            name,
            [sys.executable, "-m", "airflow", *arguments],
            env=self.environment if name == "api-server" else patient_with_sqlite(self.environment),
            log_path=self.home / f"{name}.log",
            cwd=self.home,
        )

    def _migrate(self, deadline: float) -> None:
        migration = self._run("db-migrate", _MIGRATION)
        self._components[migration.name] = migration
        _wait_for(lambda: migration.exit_code is not None, deadline, lambda: [migration])
        if migration.exit_code != 0:
            raise AirflowDidNotStart(_blame(f"ended with exit code {migration.exit_code}", [migration]))
        self.stop_component(migration.name)

    def _wait_until_healthy(self, deadline: float) -> None:
        _wait_for(lambda: not self._unhealthy_components(), deadline, self._unhealthy_components)

    def _unhealthy_components(self) -> list[ProcessSession]:
        for process in self._components.values():
            if process.exit_code is not None:
                raise AirflowDidNotStart(_blame(f"ended with exit code {process.exit_code}", [process]))
        return [self._components[name] for name in _unhealthy_names(self.client)]


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _unhealthy_names(client: AirflowClient) -> list[str]:
    try:
        client.warm_up_for_tasks()
        health: dict[str, Any] = client.health()
    except httpx.HTTPError:
        return ["api-server"]
    return [
        component
        for key, component in _COMPONENT_OF_HEALTH_KEY.items()
        if (health.get(key) or {}).get("status") != "healthy"
    ]


def _wait_for(condition: Callable[[], bool], deadline: float, suspects: Callable[[], list[ProcessSession]]) -> None:
    while not condition():
        if time.monotonic() > deadline:
            raise AirflowDidNotStart(_blame("was not ready in time", suspects()))
        time.sleep(_POLL_SECONDS)


def _blame(what: str, processes: Iterable[ProcessSession]) -> str:
    return "\n\n".join(
        f"Airflow {process.name} {what}. The end of {process.log_path}:\n{process.log_tail()}" for process in processes
    )
