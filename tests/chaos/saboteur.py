"""Carries out the timetable: kills, freezes and breaks things, and starts again what people would start again."""

from __future__ import annotations

import contextlib
import heapq
import logging
import random
from collections import Counter, deque
from collections.abc import Callable, Sequence
from itertools import count

from deployment import Deployment
from freezes import Freezer
from judgement import lives
from observing import AirflowDatabase
from strikes import Striker
from timetable import AT_SUBMISSION, KILLS, LOST_ANSWERS_AT_ONCE, Event, Trouble

from airflow_provider_pai_spot.emulator.client import EmulatorClient, EmulatorControlError

log = logging.getLogger("chaos")

_DOWN_SECONDS = (2.0, 8.0)
_MARKETS = ("ecs.c7.large", "ecs.g7.xlarge")
CALM_PRICE, SHOCK_PRICE = 0.2, 0.95
_SHOCK_SECONDS = 4.0
_AGAIN_SECONDS = 2.0
_SLOW_STOP_SECONDS = (8.0, 15.0)
_REVOKED_AT_ONCE = 4
_STRIKE_AFTER_LOST_ANSWER = 0.5
"""How often the answer to whoever is to be struck is lost first, so that the intent to submit stays open for long."""
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
        self._kills: Counter[Trouble] = Counter()
        self._deployment = deployment
        self._control = control
        self._rng = rng
        self._events = deque(events)
        self._later: list[tuple[float, int, Callable[[], object]]] = []
        self._tickets = count()
        self._answers_to_lose = 0
        self._slow_stops: list[float] = []
        self._now = 0.0
        self._held = 0.0
        self._is_over = False
        self.freezer = Freezer(deployment=deployment, database=database, rng=rng, after=self._after, again=self._again)
        self.striker = Striker(
            deployment=deployment,
            control=control,
            database=database,
            rng=rng,
            kill_and_restart=self._kill_and_restart,
            triggerers=lambda: self._running("triggerer"),
            after=self._after,
        )

    @property
    def watching(self) -> bool:
        """Whether it waits for somebody to submit, and should be called often."""
        return self.striker.is_armed

    @property
    def kills(self) -> dict[Trouble, int]:
        """How often each kind of kill, or freeze, had the effect that it should have."""
        frozen = {Trouble.FREEZE_TRIGGERER: self.freezer.hits}
        struck = {one: self.striker.hits(one) for one in AT_SUBMISSION}
        hits = {**self._kills, **struck, **frozen}
        return {one: hits.get(one, 0) for one in KILLS}

    def act(self, now: float, share_done: float, *, hold: bool) -> None:
        """
        Do what is due.

        :param now: seconds after the first task could start.
        :param share_done: fraction of the work that is done.
        :param hold: whether the timetable stands still. It should while the API server is away: a busy machine needs
            minutes to start one, nobody gets anything done meanwhile, and all kills would hit an Airflow that waits.
        """
        passed, self._now = now - self._now, now
        while self._later and self._later[0][0] <= now:
            heapq.heappop(self._later)[2]()
        if hold:
            self._held += passed
        elif self._events and (self._events[0].at + self._held <= now or self._events[0].share < share_done):
            self._begin(self._events.popleft().trouble)
        self.striker.look()

    def finish(self) -> None:
        """Break nothing any more, and let everything run again."""
        self._is_over = True
        self._events.clear()
        self.striker.disarm()
        while self._later:
            heapq.heappop(self._later)[2]()
        self._control.clear_faults()

    # --- one event ------------------------------------------------------------------------------------

    def _begin(self, trouble: Trouble) -> None:
        log.info("%6.1f s  %s", self._now, trouble.value)
        if trouble in AT_SUBMISSION:
            if self._rng.random() < _STRIKE_AFTER_LOST_ANSWER:
                self._answers_to_lose += 1
                self._lose_answers(1, probability=1.0)
            self.striker.arm(trouble)
        elif trouble is Trouble.FREEZE_TRIGGERER:
            self.freezer.freeze()
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
        running = self._running(kind)
        enough = 2 if trouble is Trouble.KILL_BOTH_TRIGGERERS else 1
        if len(running) < enough:
            self._again(lambda: self._kill_components(trouble))
            return
        for name in self._rng.sample(running, enough):
            self._kill_and_restart(name)
        self._kills[trouble] += 1

    def _running(self, kind: str) -> list[str]:
        return sorted(set(self._deployment.names(kind)) - self.freezer.frozen)

    def _kill_and_restart(self, name: str) -> None:
        log.info("%6.1f s    killing %s", self._now, name)
        self._deployment.kill_component(name)
        self._after(self._rng.uniform(*_DOWN_SECONDS), lambda: self._deployment.start_component(name))

    def _trouble_in_the_cloud(self, trouble: Trouble) -> None:
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
                self._slow_stops.append(round(self._rng.uniform(*_SLOW_STOP_SECONDS), 1))
                self._slow_down_stops(self._slow_stops[-1])
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
            for seconds in self._slow_stops:
                self._slow_down_stops(seconds)

        self._after(self._rng.uniform(*_TROUBLED_SECONDS), calm_down)

    def _lose_answers(self, times: int, probability: float = 0.6) -> None:
        if times > 0:
            self._control.fault("CreateJob", "lost_answer", times=times, probability=probability)

    def _slow_down_stops(self, seconds: float) -> None:
        self._control.fault("StopJob", "slow_stop", times=None, probability=0.5, seconds=seconds)

    def _shock(self, market: str) -> None:
        self._control.set_price(market, SHOCK_PRICE)
        self._after(_SHOCK_SECONDS, lambda: self._control.set_price(market, CALM_PRICE))

    def _revoke_some(self) -> None:
        journal = self._control.journal()
        running = [job.job_id for job in lives(journal).values() if job.status == "Running"]
        for job_id in self._rng.sample(running, min(_REVOKED_AT_ONCE, len(running))):
            with contextlib.suppress(EmulatorControlError):  # it ended while we looked
                self._control.revoke(job_id)

    def _again(self, action: Callable[[], object]) -> None:
        """Do something a little later, when it may be possible; not once everything should heal."""
        if not self._is_over:
            self._after(_AGAIN_SECONDS, action)

    def _after(self, seconds: float, action: Callable[[], object]) -> None:
        heapq.heappush(self._later, (self._now + seconds, next(self._tickets), action))
