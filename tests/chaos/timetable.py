"""What goes wrong and when: a seeded list, drawn before anything starts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum


class Trouble(StrEnum):
    """One kind of thing that goes wrong."""

    KILL_TASK = "kill_task"
    """SIGKILL the process that runs a task, between its CreateJob and its deferral."""
    KILL_SUPERVISOR = "kill_supervisor"
    """SIGKILL the Celery process that watches over it; the task's own process is left alone."""
    KILL_WORKER = "kill_worker"
    """SIGKILL a whole worker while one of its tasks submits."""
    KILL_WORKER_AND_TRIGGERER = "kill_worker_and_triggerer"
    """SIGKILL a whole worker while one of its tasks submits, and a triggerer in the same instant."""
    KILL_TRIGGERER = "kill_triggerer"
    KILL_BOTH_TRIGGERERS = "kill_both_triggerers"
    KILL_SCHEDULER = "kill_scheduler"
    KILL_API_SERVER = "kill_api_server"
    FREEZE_TRIGGERER = "freeze_triggerer"
    """SIGSTOP beyond its health threshold, then SIGCONT: two triggerers believe that a trigger is theirs."""
    DROP = "drop"
    """Connections to DLC break, whatever the operation."""
    THROTTLE = "throttle"
    SERVER_ERRORS = "server_errors"
    LOST_ANSWERS = "lost_answers"
    """CreateJob takes effect, its answer does not arrive."""
    LIST_LAG = "list_lag"
    """New jobs take seconds to show up in ListJobs."""
    SLOW_STOP = "slow_stop"
    """From now on every other job that is stopped stays in Stopping for long."""
    PRICE_SHOCK = "price_shock"
    """One market rises above every bid for a few seconds."""
    REVOKE = "revoke"
    """Some running jobs lose their machines."""


KILLS = tuple(one for one in Trouble if one.startswith(("kill_", "freeze_")))
AT_SUBMISSION = frozenset(
    {Trouble.KILL_TASK, Trouble.KILL_SUPERVISOR, Trouble.KILL_WORKER, Trouble.KILL_WORKER_AND_TRIGGERER}
)
LOST_ANSWERS_AT_ONCE = 4

_TIMES = {
    Trouble.KILL_TASK: 6,
    Trouble.KILL_SUPERVISOR: 4,
    Trouble.KILL_WORKER: 4,
    Trouble.FREEZE_TRIGGERER: 4,
    Trouble.LOST_ANSWERS: 8,
    Trouble.LIST_LAG: 5,
    Trouble.REVOKE: 6,
}
_ORDINARY_TIMES = 3
_AT_ONCE = (Trouble.LIST_LAG, Trouble.LOST_ANSWERS, Trouble.SLOW_STOP)
_FIRST_AT = 5.0
_LAST_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Event:
    """
    One thing that goes wrong.

    :param at: seconds after the first task could start.
    :param share: fraction of the work that is done by then at the latest: the event comes forward if it is sooner.
    """

    at: float
    share: float
    trouble: Trouble


def timetable(rng: random.Random, seconds: float, wanted: Iterable[Trouble] = tuple(Trouble)) -> list[Event]:
    """
    Return what goes wrong, in order.

    :param seconds: over which it is spread.
    :param wanted: the kinds; each comes as often as its kind does.
    """
    chosen = [one for one in Trouble if one in set(wanted)]
    # Each kind is spread over the whole time by itself: three dead API servers in one minute are one long outage.
    drawn = sorted(
        ((number + rng.random()) / _TIMES.get(one, _ORDINARY_TIMES), one)
        for one in chosen
        for number in range(_TIMES.get(one, _ORDINARY_TIMES))
    )
    # Whoever submits first should already meet a list that lags, answers that get lost and stops that take long.
    troubles = sorted((one for _, one in drawn), key=_first_of(_AT_ONCE))
    step = seconds / max(1, len(troubles))
    return [
        Event(_FIRST_AT + step * (index + rng.uniform(-0.4, 0.4)), _LAST_SHARE * index / len(troubles), trouble)
        for index, trouble in enumerate(troubles)
    ]


def _first_of(kinds: Iterable[Trouble]) -> Callable[[Trouble], bool]:
    """Return a sort key that moves the first of each kind to the front."""
    left = set(kinds)

    def key(trouble: Trouble) -> bool:
        first = trouble in left
        left.discard(trouble)
        return not first

    return key
