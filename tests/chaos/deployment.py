"""
An Airflow as people run it in production, on one machine.

PostgreSQL, Celery on Redis, one API server, two schedulers, two triggerers, two workers and a DAG processor, each a
process of its own that can be killed, frozen and started again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx

from airflow_provider_pai_spot.cli.demo.airflow_client import AirflowClient
from airflow_provider_pai_spot.cli.demo.airflow_environment import airflow_environment
from airflow_provider_pai_spot.cli.demo.airflow_processes import AirflowDidNotStart, free_port
from airflow_provider_pai_spot.cli.demo.sessions import Processes, ProcessSession, session_members

NAMESPACE = "chaos"
WORKER_SLOTS = 4
TRIGGERER_HEALTH_SECONDS = 15
_LOCAL_SETTINGS = Path(__file__).with_name("worker_settings.py")
_POLL_SECONDS = 0.25
_START_SECONDS = 420.0
_CONNECT_SECONDS = 0.5
_STOP_GRACE_SECONDS = 10.0

COMPONENTS: dict[str, list[str]] = {
    "api-server": ["api-server"],
    "scheduler-1": ["scheduler", "--skip-serve-logs"],
    "scheduler-2": ["scheduler", "--skip-serve-logs"],
    "triggerer-1": ["triggerer", "--skip-serve-logs"],
    "triggerer-2": ["triggerer", "--skip-serve-logs"],
    "dag-processor": ["dag-processor"],
    "worker-1": ["celery", "worker", "--skip-serve-logs", "--without-gossip", "--without-mingle"],
    "worker-2": ["celery", "worker", "--skip-serve-logs", "--without-gossip", "--without-mingle"],
}

# Real outages are noticed within a minute or five; a suite that ends in ten minutes cannot wait for that.
_QUICK_LIFE = {
    "SCHEDULER__JOB_HEARTBEAT_SEC": "3",
    "SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "3",
    "SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "20",
    "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "45",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    "SCHEDULER__TASK_QUEUED_TIMEOUT": "90",
    "SCHEDULER__TASK_QUEUED_TIMEOUT_CHECK_INTERVAL": "15",
    # What a killed worker had fetched is queued once more, and not failed, however often that happens.
    "SCHEDULER__NUM_STUCK_IN_QUEUED_RETRIES": "20",
    "TRIGGERER__JOB_HEARTBEAT_SEC": "3",
    "TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": str(TRIGGERER_HEALTH_SECONDS),
    "CELERY__WORKER_CONCURRENCY": str(WORKER_SLOTS),
    "CELERY__WORKER_PREFETCH_MULTIPLIER": "1",
    # A worker that died kept messages to itself; Redis hands them out again after this time.
    "CELERY_BROKER_TRANSPORT_OPTIONS__VISIBILITY_TIMEOUT": "300",
    # An API server takes from half a minute to three to come back; a task that starts meanwhile should wait for it.
    "WORKERS__EXECUTION_API_RETRIES": "20",
    "WORKERS__EXECUTION_API_RETRY_WAIT_MAX": "10",
    "CORE__MAX_ACTIVE_TASKS_PER_DAG": "64",
}
_PROVIDER = {
    "PAI_SPOT__NAMESPACE": NAMESPACE,
    "PAI_SPOT__SUBMIT_LOOKUP_PATIENCE": "30",
}


class Deployment:
    """
    All of Airflow's components.

    :param home: AIRFLOW_HOME; component logs are `<home>/components/<name>.log`.
    :param database: `user:password@host:port/database` of PostgreSQL.
    :param broker: URL of Redis.
    :param connection: URI of `pai_dlc_default`.
    :param environment: more environment variables for all components.
    """

    def __init__(
        self,
        home: Path,
        *,
        dags_folder: Path,
        database: str,
        broker: str,
        connection: str,
        environment: Mapping[str, str],
        processes: Processes,
    ) -> None:
        self.home = home
        self.logs = home / "components"
        self.task_logs = home / "logs"
        port = free_port()
        self._address = ("127.0.0.1", port)
        self.client = AirflowClient(f"http://127.0.0.1:{port}")
        connections = {"pai_dlc_default": connection}
        settings = {
            "CORE__EXECUTOR": "CeleryExecutor",
            "DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://{database}",
            "CELERY__BROKER_URL": broker,
            "CELERY__RESULT_BACKEND": f"db+postgresql+psycopg2://{database}",
            **_QUICK_LIFE,
            **_PROVIDER,
        }
        self.environment = {
            **airflow_environment(
                home=home, dags_folder=dags_folder, port=port, connections=connections, parallelism=WORKER_SLOTS + 2
            ),
            **{f"AIRFLOW__{name}": value for name, value in settings.items()},
            **environment,
        }
        self._processes = processes
        self._running: dict[str, ProcessSession] = {}
        self._incarnations: dict[str, int] = {}

    def start(self) -> None:
        """
        Create the tables, start every component and wait until all are ready.

        :raises AirflowDidNotStart: a component ended or was not ready in time.
        """
        deadline = time.monotonic() + _START_SECONDS
        self.logs.mkdir(parents=True)
        (self.home / "config").mkdir()
        shutil.copy(_LOCAL_SETTINGS, self.home / "config" / "airflow_local_settings.py")
        self._migrate(deadline)
        for name in COMPONENTS:
            self.start_component(name)
        _wait_for(self._is_healthy, deadline, "Airflow is not healthy")
        for name in self.names("worker"):
            _wait_for(lambda: " ready." in self._log_of(name), deadline, f"{name} is not ready")  # noqa: B023 - used at once

    def stop(self) -> None:
        """End all components and everything they forked."""
        self.client.close()
        running = list(self._running.values())
        self._running.clear()
        for process in running:
            _signal_all(process, signal.SIGCONT)
        self._processes.stop(*running, grace=_STOP_GRACE_SECONDS)

    def names(self, kind: str) -> list[str]:
        """Return the components of one kind that run, e.g. `triggerer`."""
        return [name for name in self._running if name.startswith(kind)]

    def start_component(self, name: str) -> None:
        """Start one component without waiting for it."""
        self._incarnations[name] = self._incarnations.get(name, 0) + 1
        arguments = [sys.executable, "-m", "airflow", *COMPONENTS[name]]
        if name.startswith("worker"):
            unique = self.user_of(name)
            arguments += ["--celery-hostname", unique, "--pid", str(self.home / f"{unique}.pid")]
        self._running[name] = self._processes.start(
            name,
            arguments,
            # Airflow's table of jobs holds the user's name and nothing else that tells two triggerers apart.
            env={**self.environment, "LOGNAME": self.user_of(name)},
            log_path=self.logs / f"{name}.log",
            cwd=self.home,
        )

    def user_of(self, name: str) -> str:
        """Return the user name a component believes to run under, another one after each start."""
        return f"{name}.{self._incarnations[name]}"

    def kill_component(self, name: str) -> None:
        """SIGKILL one component and everything it forked."""
        self._processes.kill(self._running.pop(name))

    def freeze(self, name: str) -> ProcessSession:
        """SIGSTOP one component and everything it forked; returns what `thaw` needs."""
        process = self._running[name]
        _signal_all(process, signal.SIGSTOP)
        return process

    def thaw(self, process: ProcessSession) -> None:
        """Let a frozen component go on."""
        _signal_all(process, signal.SIGCONT)

    def component_of(self, pid: int) -> str | None:
        """Return the name of the component a process belongs to."""
        with contextlib.suppress(ProcessLookupError):
            session_id = os.getsid(pid)
            return next((name for name, one in self._running.items() if one.session_id == session_id), None)
        return None

    def is_reachable(self) -> bool:
        """Whether the API server takes connections."""
        try:
            socket.create_connection(self._address, _CONNECT_SECONDS).close()
        except OSError:
            return False
        return True

    def dead_components(self) -> list[str]:
        """Return the components that ended by themselves."""
        return [name for name, process in self._running.items() if process.exit_code is not None]

    def run_program(self, name: str, *arguments: str) -> ProcessSession:
        """Run Python beside Airflow, in its environment; its log is `<home>/components/<name>.log`."""
        return self._processes.start(
            name,
            [sys.executable, *arguments],
            env=self.environment,
            log_path=self.logs / f"{name}.log",
            cwd=self.home,
        )

    def _migrate(self, deadline: float) -> None:
        migration = self.run_program("db-migrate", "-m", "airflow", "db", "migrate")
        _wait_for(lambda: migration.exit_code is not None, deadline, "db migrate did not end")
        if migration.exit_code != 0:
            raise AirflowDidNotStart(f"db migrate failed:\n{migration.log_tail()}")
        self._processes.stop(migration)

    def _is_healthy(self) -> bool:
        if dead := self.dead_components():
            raise AirflowDidNotStart(f"{dead[0]} ended:\n{self._running[dead[0]].log_tail()}")
        try:
            self.client.warm_up_for_tasks()
            health = self.client.health()
        except httpx.HTTPError:
            return False
        return all((health.get(key) or {}).get("status") == "healthy" for key in ("scheduler", "triggerer"))

    def _log_of(self, name: str) -> str:
        return self._running[name].log_path.read_text(errors="replace")


def _signal_all(process: ProcessSession, number: signal.Signals) -> None:
    for pid in session_members(process.session_id):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _wait_for(condition: Callable[[], bool], deadline: float, otherwise: str) -> None:
    while not condition():
        if time.monotonic() > deadline:
            raise AirflowDidNotStart(f"{otherwise} in time")
        time.sleep(_POLL_SECONDS)
