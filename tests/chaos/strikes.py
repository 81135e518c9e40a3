"""
SIGKILL for whoever submits, between its CreateJob and its deferral, and proof that it hit there.

A strike counts only if the try was running when the signal landed and is not deferred afterwards; one that came too
late is tried again with the next task that submits.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import signal
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from deployment import Deployment
from judgement import answering_task
from observing import AirflowDatabase, TaskInstance
from task_processes import supervisor_of, task_process
from timetable import Trouble
from workload import DAG_ID, defers

from airflow_provider_pai_spot.emulator.client import EmulatorClient

log = logging.getLogger("chaos")

_LINGER_SECONDS = (0.0, 0.0, 0.05, 0.15, 0.3)
"""From CreateJob to the kill."""
_PROOF_SECONDS = 0.5
"""By then a deferral that was on its way when the signal landed has arrived; no trigger resumes a task so soon."""


class Moment(StrEnum):
    """When a strike hit."""

    BEFORE_ID_STORED = "before_id_stored"
    """The job existed, the state store held no more than the intent to submit it."""
    BEFORE_DEFERRAL = "before_deferral"
    """The id was stored, the task not yet deferred."""
    TOO_LATE = "too_late"
    """Not counted: the task was deferred, had ended, or never defers and had stored the id."""


@dataclass(frozen=True, slots=True)
class Submission:
    """
    A job that was created a moment ago, and who did it.

    :param pid: of the process that runs the task.
    """

    work: str
    job_id: str
    pid: int
    instance: TaskInstance


class Striker:
    """
    Waits for somebody to submit, and strikes.

    :param kill_and_restart: kills a component of Airflow by its name.
    :param triggerers: names those that run and may be killed.
    :param after: does something some seconds later.
    """

    def __init__(
        self,
        *,
        deployment: Deployment,
        control: EmulatorClient,
        database: AirflowDatabase,
        rng: random.Random,
        kill_and_restart: Callable[[str], None],
        triggerers: Callable[[], list[str]],
        after: Callable[[float, Callable[[], object]], None],
    ) -> None:
        self.moments: Counter[tuple[Trouble, Moment]] = Counter()
        self._deployment = deployment
        self._control = control
        self._database = database
        self._rng = rng
        self._kill_and_restart = kill_and_restart
        self._triggerers = triggerers
        self._after = after
        self._armed: deque[Trouble] = deque()
        self._jobs_seen = 0

    @property
    def is_armed(self) -> bool:
        """Whether it waits for somebody to submit."""
        return bool(self._armed)

    def arm(self, trouble: Trouble) -> None:
        """Strike whoever submits next."""
        if not self._armed:
            self._jobs_seen = len(self._control.journal(kind="created"))
        self._armed.append(trouble)

    def disarm(self) -> None:
        """Strike nobody any more."""
        self._armed.clear()

    def hits(self, trouble: Trouble) -> int:
        """Return how many strikes of a kind hit between CreateJob and deferral."""
        return sum(self.moments[trouble, moment] for moment in Moment if moment is not Moment.TOO_LATE)

    def figures(self) -> dict[str, dict[str, int]]:
        """Return kind -> moment -> how many."""
        found: dict[str, dict[str, int]] = {}
        for (trouble, moment), number in sorted(self.moments.items()):
            found.setdefault(trouble.value, {})[moment.value] = number
        return found

    def look(self) -> None:
        """Strike if somebody has submitted since the last look."""
        if not self._armed:
            return
        created = self._control.journal(kind="created")
        fresh, self._jobs_seen = created[self._jobs_seen :], len(created)
        for entry in fresh:
            if submission := self._submission(entry):
                strike = partial(self._strike, self._armed.popleft(), submission)
                self._after(self._rng.choice(_LINGER_SECONDS), strike)
                return

    def _submission(self, entry: dict[str, Any]) -> Submission | None:
        work = entry["detail"]["display_name"]
        run_id, task_id, map_index = answering_task(work)
        group = task_id.partition(".")[0]
        for one in self._database.task_instances(DAG_ID):
            same_work = (one.run_id, one.task_id.partition(".")[0], one.map_index) == (run_id, group, map_index)
            if same_work and (pid := task_process(one.uuid)) is not None:
                return Submission(work, entry["job_id"], pid, one)
        return None

    def _strike(self, trouble: Trouble, submission: Submission) -> None:
        worker = self._deployment.component_of(submission.pid)
        target = supervisor_of(submission.pid) if trouble is Trouble.KILL_SUPERVISOR else submission.pid
        no_triggerer = trouble is Trouble.KILL_WORKER_AND_TRIGGERER and not self._triggerers()
        if worker is None or target is None or no_triggerer:
            self._came_too_late(trouble)
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(target, signal.SIGSTOP)  # what is read now is still true when the signal lands
            if self._moment(submission) is Moment.TOO_LATE:
                os.kill(target, signal.SIGCONT)
                self._came_too_late(trouble)
                return
            self._kill(trouble, worker, target)
        self._after(_PROOF_SECONDS, partial(self._prove, trouble, submission, target))

    def _kill(self, trouble: Trouble, worker: str, target: int) -> None:
        if trouble in (Trouble.KILL_WORKER, Trouble.KILL_WORKER_AND_TRIGGERER):
            self._kill_and_restart(worker)
        else:
            os.kill(target, signal.SIGKILL)
        if trouble is Trouble.KILL_WORKER_AND_TRIGGERER:
            self._kill_and_restart(self._rng.choice(self._triggerers()))

    def _prove(self, trouble: Trouble, submission: Submission, target: int) -> None:
        """Look again: an answer may have been on its way when the signal landed."""
        moment = self._moment(submission, states=("running", "up_for_retry", None))
        log.info("    %s: process %d, which had created %s: %s", trouble.value, target, submission.job_id, moment.value)
        if moment is Moment.TOO_LATE:
            self._came_too_late(trouble)
        else:
            self.moments[trouble, moment] += 1

    def _moment(self, submission: Submission, states: tuple[str | None, ...] = ("running",)) -> Moment:
        if self._database.state_of(submission.instance.uuid) not in states:
            return Moment.TOO_LATE
        if not self._database.has_stored(DAG_ID, submission.instance, submission.job_id):
            return Moment.BEFORE_ID_STORED
        return Moment.BEFORE_DEFERRAL if defers(submission.work) else Moment.TOO_LATE

    def _came_too_late(self, trouble: Trouble) -> None:
        self.moments[trouble, Moment.TOO_LATE] += 1
        self.arm(trouble)
