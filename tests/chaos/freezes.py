"""SIGSTOP for a triggerer until another one has its triggers, then SIGCONT; and proof that it was so."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from deployment import TRIGGERER_HEALTH_SECONDS, Deployment
from observing import AirflowDatabase

from airflow_provider_pai_spot.cli.demo.sessions import ProcessSession

log = logging.getLogger("chaos")

FROZEN_SECONDS = 25.0


@dataclass(frozen=True, slots=True)
class Freeze:
    """
    One triggerer that stood still.

    :param silent_seconds: since its last heartbeat when it went on.
    :param triggers: how many it had when it stopped.
    :param taken_over: how many of them were another's when it went on.
    """

    silent_seconds: float
    triggers: int
    taken_over: int

    @property
    def was_noticed(self) -> bool:
        """Whether Airflow gave it up and two triggerers could believe that a trigger is theirs."""
        return self.silent_seconds > TRIGGERER_HEALTH_SECONDS and self.taken_over > 0


class Freezer:
    """
    Freezes triggerers; one that nobody noticed is tried again.

    :param after: does something some seconds later.
    :param again: tries something again a little later.
    """

    def __init__(
        self,
        *,
        deployment: Deployment,
        database: AirflowDatabase,
        rng: random.Random,
        after: Callable[[float, Callable[[], object]], None],
        again: Callable[[Callable[[], object]], None],
    ) -> None:
        self.freezes: list[Freeze] = []
        self.frozen: set[str] = set()
        self._deployment = deployment
        self._database = database
        self._rng = rng
        self._after = after
        self._again = again

    @property
    def hits(self) -> int:
        """How many were noticed."""
        return sum(one.was_noticed for one in self.freezes)

    def figures(self) -> list[dict[str, Any]]:
        """Return all freezes."""
        return [asdict(one) for one in self.freezes]

    def freeze(self) -> None:
        """Freeze a triggerer that has triggers, as soon as there is one and another one runs."""
        found = self._busy_triggerer()
        if found is None:
            self._again(self.freeze)
            return
        name, job_id = found
        triggers = self._database.triggers_of(job_id)
        log.info("    freezing %s with %d triggers", name, len(triggers))
        process = self._deployment.freeze(name)
        self.frozen.add(name)
        self._after(FROZEN_SECONDS, partial(self._thaw, name, process, triggers))

    def _busy_triggerer(self) -> tuple[str, int] | None:
        running = sorted(set(self._deployment.names("triggerer")) - self.frozen)
        if len(running) == 1:
            return None
        for name in self._rng.sample(running, len(running)):
            known = self._database.triggerer(self._deployment.user_of(name))
            if known is not None and self._database.triggers_of(known.job_id):
                return name, known.job_id
        return None

    def _thaw(self, name: str, process: ProcessSession, triggers: set[int]) -> None:
        known = self._database.triggerer(self._deployment.user_of(name))
        if known is not None:
            taken_over = self._database.taken_over(triggers, known.job_id)
            self.freezes.append(Freeze(round(known.silent_seconds, 1), len(triggers), taken_over))
            log.info("    %s was silent for %.0f s and lost %d triggers", name, known.silent_seconds, taken_over)
        self._deployment.thaw(process)
        self.frozen.discard(name)
        if known is None or not self.freezes[-1].was_noticed:
            self._again(self.freeze)
