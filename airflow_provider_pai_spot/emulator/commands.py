"""Really running the commands of pods: what the simulation asks of whoever starts processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from airflow_provider_pai_spot.emulator.behaviours import Behaviours
from airflow_provider_pai_spot.emulator.record import Job, Pod

Mount = tuple[str, str, str]
"""Mount path, Uri, access."""
MASTER_PORT = "23456"
"""Assumed; PyTorchJob's default."""


class PodProcess(Protocol):
    """The processes of one pod."""

    def terminate(self, grace_seconds: float) -> None:
        """Send SIGTERM, and SIGKILL after `grace_seconds`; returns at once."""
        ...


class JobExecutor(Protocol):
    """Whoever starts processes."""

    def start_pod(  # noqa: PLR0917 - a pod: who, what, with what, and whom to tell
        self,
        job_id: str,
        pod_id: str,
        command: str,
        envs: Mapping[str, str],
        mounts: Sequence[Mount],
        on_line: Callable[[str], None],
        on_exit: Callable[[int], None],
    ) -> PodProcess:
        """Start a command; `on_line` and `on_exit` are called from another thread."""
        ...

    def close(self) -> None:
        """End everything that was started, and wait for it."""
        ...


class CommandRunner:
    """
    Runs the commands of pods with an executor, one process group for each incarnation.

    :param executor: starts the processes.
    :param behaviours: which variables a pod gets.
    """

    def __init__(self, executor: JobExecutor, behaviours: Behaviours) -> None:
        self._executor = executor
        self._behaviours = behaviours
        self._alive: dict[str, PodProcess] = {}
        self._exited: set[str] = set()
        self._lock = threading.Lock()

    def start(self, job: Job, pod: Pod, on_line: Callable[[str], None], on_exit: Callable[[int], None]) -> None:
        """
        Start the command of one incarnation of a pod.

        Raises OSError, RuntimeError or ValueError if no process can be started.
        """

        def ended(code: int) -> None:
            with self._lock:
                self._alive.pop(pod.uid, None)
                self._exited.add(pod.uid)
            on_exit(code)

        process = self._executor.start_pod(
            job.job_id, pod.pod_id, _command(job, pod), self._variables(job, pod), _mounts(job), on_line, ended
        )
        with self._lock:
            if pod.uid not in self._exited:
                self._alive[pod.uid] = process

    def end(self, pods: Iterable[Pod], grace_seconds: float) -> None:
        """Have the processes of `pods` ended; returns at once."""
        with self._lock:
            processes = [self._alive[pod.uid] for pod in pods if pod.uid in self._alive]
        for process in processes:
            process.terminate(grace_seconds)

    def any_alive(self, pods: Iterable[Pod]) -> bool:
        """Whether a process of one of these incarnations still runs."""
        with self._lock:
            return any(pod.uid in self._alive for pod in pods)

    def close(self) -> None:
        """End everything and wait for it. Callers hold no lock that callbacks take."""
        self._executor.close()

    def _variables(self, job: Job, pod: Pod) -> dict[str, str]:
        envs = {str(key): str(value) for key, value in (job.body.get("Envs") or {}).items()}
        if not self._behaviours["rank_variables"]:
            return envs
        pods = list(job.training_pods())
        ranks = {
            "RANK": str(pods.index(pod)),
            "WORLD_SIZE": str(len(pods)),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": MASTER_PORT,
        }
        return {**ranks, **envs}


def _command(job: Job, pod: Pod) -> str:
    for spec in job.body["JobSpecs"]:
        if str(spec.get("Type", "")).lower() == pod.role and spec.get("UserCommand"):
            return str(spec["UserCommand"])
    return str(job.body.get("UserCommand") or "")


def _mounts(job: Job) -> list[Mount]:
    return [
        (str(source["MountPath"]), str(source.get("Uri") or ""), str(source.get("MountAccess") or "RW"))
        for source in job.body.get("DataSources") or []
        if source.get("MountPath")
    ]
