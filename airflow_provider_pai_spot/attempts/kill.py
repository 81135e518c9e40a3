"""
What happens when a worker is told to end while it deals with a job.

Airflow sends SIGTERM both when a person ended the task and when the worker itself goes away; only in the first case
must the job stop. The signal handler has about 5 s before SIGKILL and interrupts the main thread anywhere, so all it
does is remember the request and let a thread ask and stop; `check` repeats the question at the points where a job
could otherwise slip through.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from airflow_provider_pai_spot.attempts.airflow_state import task_is_over
from airflow_provider_pai_spot.attempts.drive import JobReader
from airflow_provider_pai_spot.attempts.identity import TaskIdentity
from airflow_provider_pai_spot.attempts.stopping import stop_and_see
from airflow_provider_pai_spot.clock import SYSTEM_CLOCK, Clock
from airflow_provider_pai_spot.exceptions import SpotJobStopped

_HANDLER_PATIENCE = 4.0


class KillSwitch:
    """
    Remembers that this process was asked to end, and stops the job if Airflow has given the task up.

    :param cancel_on_kill: whether the job is stopped at all.
    :param is_over: asks Airflow whether the task instance is finished or gone; replaced in tests.
    """

    def __init__(
        self,
        *,
        hook: JobReader,
        identity: TaskIdentity,
        cancel_on_kill: bool,
        log: Any,
        is_over: Callable[[TaskIdentity], bool] = task_is_over,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._hook = hook
        self._identity = identity
        self._cancel_on_kill = cancel_on_kill
        self._log = log
        self._is_over = is_over
        self._clock = clock
        self.requested = False
        self.job_id: str | None = None

    def pull(self) -> None:
        """Take the request; called from the signal handler. Returns after a few seconds at the latest."""
        self.requested = True
        if not self._cancel_on_kill:
            self._log.info("told to end; %s is left running: cancel_on_kill=False", self.job_id or "no job")
            return
        thread = threading.Thread(target=self._stop_if_over, name="pai-spot-kill", daemon=True)
        thread.start()
        thread.join(_HANDLER_PATIENCE)

    def check(self, job_id: str | None = None) -> None:
        """
        Look whether a request came, at a point where the main thread can act on it.

        :param job_id: a job that exists from now on.
        :raises SpotJobStopped: the task was ended in Airflow; its job, if there is one, was stopped.
        """
        self.job_id = job_id or self.job_id
        if self.requested and self._cancel_on_kill and self._stop_if_over():
            raise SpotJobStopped(f"the task was ended in Airflow while {self.job_id or 'no job'} was under way.")

    def _stop_if_over(self) -> bool:
        try:
            over = self._is_over(self._identity)
        except Exception as error:  # noqa: BLE001 - whatever it was, no answer is not a yes
            self._log.warning("%s is left running: Airflow could not be asked: %s", self.job_id, error)
            return False
        if over and self.job_id is not None:
            self._stop(self.job_id)
        return over

    def _stop(self, job_id: str) -> None:
        self._log.warning("the task was ended in Airflow; stopping %s", job_id)
        stop_and_see(self._hook, job_id, clock=self._clock, log=self._log)
