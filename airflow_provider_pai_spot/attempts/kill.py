"""
What happens when a worker is told to end while it deals with a job.

Airflow sends SIGTERM both when a person ended the task and when the worker itself goes away; only in the first case
must the job stop. The signal handler has about 5 s before SIGKILL and interrupts the main thread anywhere, so all it
does is remember the request and let a thread ask and stop; `check` repeats the question at the points where a job
could otherwise slip through.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from airflow_provider_pai_spot.attempts.airflow_state import task_is_over
from airflow_provider_pai_spot.attempts.identity import TAG_ATTEMPT, TAG_LEDGER, TAG_TASK_INSTANCE, TaskIdentity
from airflow_provider_pai_spot.attempts.stopping import stop_and_see
from airflow_provider_pai_spot.attempts.submission import JobCalls
from airflow_provider_pai_spot.attempts.tagged import whole_jobs
from airflow_provider_pai_spot.clock import SYSTEM_CLOCK, Clock
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.status import is_decided
from airflow_provider_pai_spot.exceptions import PaiDlcError, SpotJobStopped

_HANDLER_PATIENCE = 4.0
_LOOK_EVERY = 0.5
_LOOK_BACK = timedelta(days=1)
_TAGS_OF_ONE_ATTEMPT = (TAG_TASK_INSTANCE, TAG_ATTEMPT, TAG_LEDGER)


class KillSwitch:
    """
    Remembers that this process was asked to end, and stops the job if Airflow has given the task up.

    :param cancel_on_kill: whether the job is stopped at all.
    :param is_over: asks Airflow whether the task instance is finished or gone; replaced in tests.
    """

    def __init__(
        self,
        *,
        hook: JobCalls,
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
        self._unanswered: dict[str, str] = {}
        self._workspace_id: str | None = None

    def pull(self) -> None:
        """Take the request; called from the signal handler. Returns after a few seconds at the latest."""
        self.requested = True
        if not self._cancel_on_kill:
            self._log.info("told to end; %s is left running: cancel_on_kill=False", self.job_id or "no job")
            return
        thread = threading.Thread(target=self._stop_if_over, name="pai-spot-kill", daemon=True)
        thread.start()
        thread.join(_HANDLER_PATIENCE)

    def before_create(self, tags: Mapping[str, str], workspace_id: str | None = None) -> None:
        """
        Look whether a request came before a job is created; from here to `check` its id is not known.

        :param tags: the new job's.
        :param workspace_id: the new job's; None for the hook's.
        :raises SpotJobStopped: as `check` does.
        """
        self.check()
        self._unanswered = {name: tags[name] for name in _TAGS_OF_ONE_ATTEMPT if name in tags}
        self._workspace_id = workspace_id

    def check(self, job_id: str | None = None) -> None:
        """
        Look whether a request came, at a point where the main thread can act on it.

        :param job_id: a job that exists from now on.
        :raises SpotJobStopped: the task was ended in Airflow; its job, if there is one, was stopped.
        """
        if job_id is not None:
            self.job_id, self._unanswered = job_id, {}
        if self.requested and self._cancel_on_kill and self._stop_if_over():
            raise SpotJobStopped(f"the task was ended in Airflow while {self.job_id or 'no job'} was under way.")

    def _stop_if_over(self) -> bool:
        try:
            over = self._is_over(self._identity)
        except Exception as error:  # noqa: BLE001 - whatever it was, no answer is not a yes
            self._log.warning(
                "%s is left running: Airflow, which alone knows whether its task is over, could not be asked (%s); "
                "`pai-spot stop %s` stops it",
                self.job_id,
                error,
                self.job_id,
            )
            return False
        if over and self._unanswered:
            self._stop_unanswered(self._unanswered)
        elif over and self.job_id is not None:
            self._stop(self.job_id)
        return over

    def _stop_unanswered(self, tags: dict[str, str]) -> None:
        """CreateJob is under way: its job may exist, and is known by its tags as soon as DLC lists it."""
        self._log.warning("the task was ended in Airflow while a job is being created; looking for it by its tags")
        began = self._clock.now()
        give_up_at = began + timedelta(seconds=_HANDLER_PATIENCE)
        while not (found := self._listed(tags, began)) and self._clock.now() < give_up_at:
            self._clock.sleep(_LOOK_EVERY)
        for job in found:
            self._stop(job.job_id)

    def _listed(self, tags: dict[str, str], began: datetime) -> list[Job]:
        try:
            items = self._hook.list_jobs(
                tags=tags, start_time=began - _LOOK_BACK, show_own=False, workspace_id=self._workspace_id
            )
            jobs = list(whole_jobs(self._hook, map(Job, items)))
        except PaiDlcError as error:
            self._log.warning("could not look for the job that is being created: %s", error)
            return []
        return [job for job in jobs if tags.items() <= job.tags.items() and not is_decided(job.status)]

    def _stop(self, job_id: str) -> None:
        self._log.warning("the task was ended in Airflow; stopping %s", job_id)
        stop_and_see(self._hook, job_id, clock=self._clock, log=self._log)
