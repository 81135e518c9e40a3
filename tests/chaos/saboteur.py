"""Carries out the timetable: kills, freezes and breaks things, and starts again what people would start again."""

from __future__ import annotations

import contextlib
import heapq
import logging
import os
import random
import signal
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count

from deployment import Deployment
from judgement import answering_task, lives
from observing import AirflowDatabase
from task_processes import supervisor_of, task_process
from timetable import AT_SUBMISSION, KILLS, LOST_ANSWERS_AT_ONCE, Event, Trouble
from workload import DAG_ID

from airflow_provider_pai_spot.emulator.client import EmulatorClient, EmulatorControlError

log = logging.getLogger("chaos")

_DOWN_SECONDS = (2.0, 8.0)
FROZEN_SECONDS = 25.0
_MARKETS = ("ecs.c7.large", "ecs.g7.xlarge")
CALM_PRICE, SHOCK_PRICE = 0.2, 0.95
_SHOCK_SECONDS = 4.0
_AGAIN_SECONDS = 2.0
_LINGER_SECONDS = (0.0, 0.0, 0.05, 0.15, 0.3)
"""From CreateJob to the kill: before the id is stored, and after."""
_REVOKED_AT_ONCE = 4
_TROUBLED_SHARE = 0.5
_TROUBLED_SECONDS = (5.0, 12.0)


class Saboteur:
    """
    Breaks things as the timetable says.

    :param rng: seeded source of whom it hits.
    """

    def __init__(
        self,
        *,
        deployment: Deployment,
        control: EmulatorClient,
        database: AirflowDatabase,
        events: Sequence[Event],
        rng: random.Random,
    ) -> None:
        self.kills: Counter[str] = Counter()
        self._deployment = deployment
        self._control = control
        self._database = database
        self._rng = rng
        self._events = deque(events)
        self._later: list[tuple[float, int, Callable[[], object]]] = []
        self._tickets = count()
        self._armed: deque[Trouble] = deque()
        self._jobs_seen = 0
        self._answers_to_lose = 0
        self._now = 0.0
        self._frozen: set[str] = set()

    @property
    def watching(self) -> bool:
        """Whether it waits for somebody to submit, and should be called often."""
        return bool(self._armed)

    def act(self, now: float, share_done: float) -> None:
        """
        Do what is due.

        :param now: seconds after the first task could start.
        :param share_done: fraction of the work that is done.
        """
        self._now = now
        while self._later and self._later[0][0] <= now:
            heapq.heappop(self._later)[2]()
        if self._events and (self._events[0].at <= now or self._events[0].share < share_done):
            self._begin(self._events.popleft().trouble)
        if self._armed:
            self._strike_whoever_submits()

    def finish(self) -> None:
        """Break nothing any more, and let everything run again."""
        self._events.clear()
        self._armed.clear()
        while self._later:
            heapq.heappop(self._later)[2]()
        self._control.clear_faults()

    # --- one event ------------------------------------------------------------------------------------

    def _begin(self, trouble: Trouble) -> None:
        log.info("%6.1f s  %s", self._now, trouble.value)
        if trouble in AT_SUBMISSION:
            self._jobs_seen = len(self._control.journal(kind="created"))
            self._armed.append(trouble)
        elif trouble is Trouble.FREEZE_TRIGGERER:
            self._freeze_triggerer()
        elif trouble in KILLS:
            self._kill_components(trouble)
        else:
            self._trouble_in_the_cloud(trouble)

    def _kill_components(self, trouble: Trouble) -> None:
        kind = {
            Trouble.KILL_TRIGGERER: "triggerer",
            Trouble.KILL_BOTH_TRIGGERERS: "triggerer",
            Trouble.KILL_SCHEDULER: "scheduler",
            Trouble.KILL_API_SERVER: "api-server",
        }[trouble]
        running = sorted(set(self._deployment.names(kind)) - self._frozen)
        enough = 2 if trouble is Trouble.KILL_BOTH_TRIGGERERS else 1
        if len(running) < enough:
            self._after(_AGAIN_SECONDS, lambda: self._kill_components(trouble))
            return
        for name in self._rng.sample(running, enough):
            self._kill_and_restart(name)
        self.kills[trouble.value] += 1

    def _kill_and_restart(self, name: str) -> None:
        log.info("%6.1f s    killing %s", self._now, name)
        self._deployment.kill_component(name)
        self._after(self._rng.uniform(*_DOWN_SECONDS), lambda: self._deployment.start_component(name))

    def _freeze_triggerer(self) -> None:
        running = sorted(set(self._deployment.names("triggerer")) - self._frozen)
        if not running:
            self._after(_AGAIN_SECONDS, self._freeze_triggerer)
            return
        name = self._rng.choice(running)
        log.info("%6.1f s    freezing %s", self._now, name)
        process = self._deployment.freeze(name)
        self._frozen.add(name)

        def thaw() -> None:
            self._deployment.thaw(process)
            self._frozen.discard(name)

        self._after(FROZEN_SECONDS, thaw)
        self.kills[Trouble.FREEZE_TRIGGERER.value] += 1

    def _trouble_in_the_cloud(self, trouble: Trouble) -> None:
        fault = self._control.fault
        match trouble:
            case Trouble.DROP:
                self._for_a_while("drop")
            case Trouble.THROTTLE:
                self._for_a_while("throttle", retry_after=self._rng.choice([None, 1500]))
            case Trouble.SERVER_ERRORS:
                kind = self._rng.choice(["server_error", "html_error"])
                self._for_a_while(kind, status=self._rng.choice([500, 502, 503]))
            case Trouble.LOST_ANSWERS:
                self._answers_to_lose += LOST_ANSWERS_AT_ONCE
                self._lose_answers(LOST_ANSWERS_AT_ONCE)
            case Trouble.LIST_LAG:
                self._control.switch("list_lag_seconds", round(self._rng.uniform(5, 20), 1))
            case Trouble.SLOW_STOP:
                fault("StopJob", "slow_stop", times=3, seconds=10.0)
            case Trouble.PRICE_SHOCK:
                self._shock(self._rng.choice(_MARKETS))
            case Trouble.REVOKE:
                self._revoke_some()

    def _for_a_while(self, kind: str, **details: int | None) -> None:
        """Let calls of every operation go wrong; afterwards put back what `clear_faults` takes away with it."""
        self._control.fault("*", kind, times=None, probability=_TROUBLED_SHARE, **details)

        def calm_down() -> None:
            self._control.clear_faults()
            lost = sum(one["detail"]["fault"] == "lost_answer" for one in self._control.journal(kind="fault"))
            self._lose_answers(self._answers_to_lose - lost)

        self._after(self._rng.uniform(*_TROUBLED_SECONDS), calm_down)

    def _lose_answers(self, times: int) -> None:
        if times > 0:
            self._control.fault("CreateJob", "lost_answer", times=times, probability=0.6)

    def _shock(self, market: str) -> None:
        self._control.set_price(market, SHOCK_PRICE)
        self._after(_SHOCK_SECONDS, lambda: self._control.set_price(market, CALM_PRICE))

    def _revoke_some(self) -> None:
        journal = self._control.journal()
        running = [job.job_id for job in lives(journal).values() if job.status == "Running"]
        for job_id in self._rng.sample(running, min(_REVOKED_AT_ONCE, len(running))):
            with contextlib.suppress(EmulatorControlError):  # it ended while we looked
                self._control.revoke(job_id)

    # --- at the moment of submission ------------------------------------------------------------------

    def _strike_whoever_submits(self) -> None:
        created = self._control.journal(kind="created")
        fresh, self._jobs_seen = created[self._jobs_seen :], len(created)
        for entry in fresh:
            pid = self._submitter_of(entry["detail"]["display_name"])
            if pid is not None:
                trouble = self._armed.popleft()
                strike = partial(self._strike, trouble, pid, entry["job_id"])
                self._after(self._rng.choice(_LINGER_SECONDS), strike)
                return

    def _submitter_of(self, work: str) -> int | None:
        run_id, task_id, map_index = answering_task(work)
        candidates = [one for one in self._database.task_instances(DAG_ID) if one.run_id == run_id]
        for one in candidates:
            same_work = one.task_id.partition(".")[0] == task_id.partition(".")[0] and one.map_index == map_index
            if same_work and (pid := task_process(one.uuid)) is not None:
                return pid
        return None

    def _strike(self, trouble: Trouble, pid: int, job_id: str) -> None:
        target = supervisor_of(pid) if trouble is Trouble.KILL_SUPERVISOR else pid
        worker = self._deployment.component_of(pid)
        if target is None or worker is None:
            self._armed.append(trouble)
            return
        log.info(
            "%6.1f s    %s: process %d of %s has just created %s", self._now, trouble.value, target, worker, job_id
        )
        if trouble is Trouble.KILL_WORKER:
            self._kill_and_restart(worker)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(target, signal.SIGKILL)
        self.kills[trouble.value] += 1

    def _after(self, seconds: float, action: Callable[[], object]) -> None:
        heapq.heappush(self._later, (self._now + seconds, next(self._tickets), action))
