"""
Which status follows which signal. Pure: no time, no jobs, no randomness but the one handed in.

The list of statuses is this room's own on purpose (see the package docstring).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """`Status` of a job, as DLC spells it."""

    CREATING = "Creating"
    QUEUING = "Queuing"
    BIDDING = "Bidding"
    ENV_PREPARING = "EnvPreparing"
    SANITY_CHECKING = "SanityChecking"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    STOPPING = "Stopping"
    SUCCEEDED_RESERVING = "SucceededReserving"
    FAILED_RESERVING = "FailedReserving"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    STOPPED = "Stopped"


class Signal(StrEnum):
    """What can happen to a job."""

    ACCEPTED = "accepted"
    CAPACITY_WON = "capacity won"
    PREPARED = "prepared"
    CHECKED = "checked"
    COMPLETED = "completed"
    BROKE = "broke"
    REVOKED = "revoked"
    RESTARTED = "restarted"
    STOP_REQUESTED = "stop requested"
    STOP_DONE = "stop done"
    RESERVATION_OVER = "reservation over"


@dataclass(frozen=True, slots=True)
class Traits:
    """
    What about a job decides between two next statuses.

    :param bids: whether it waits in Bidding instead of Queuing.
    :param checks_sanity: whether SanityChecking comes before Running.
    :param restarts_left: whether AIMaster may start it again after a loss.
    :param reserves_success: whether its nodes are kept after a success.
    :param reserves_failure: whether its nodes are kept after a failure.
    """

    bids: bool = False
    checks_sanity: bool = False
    restarts_left: bool = False
    reserves_success: bool = False
    reserves_failure: bool = False


KNOWN = frozenset(Status)
TERMINAL = frozenset({Status.SUCCEEDED, Status.FAILED, Status.STOPPED})
RESERVING = frozenset({Status.SUCCEEDED_RESERVING, Status.FAILED_RESERVING})
WAITING = frozenset({Status.QUEUING, Status.BIDDING})
HOLDING = frozenset({Status.ENV_PREPARING, Status.SANITY_CHECKING, Status.RUNNING})
"""Statuses in which a job holds machines."""
ACTIVE = KNOWN - TERMINAL - RESERVING

_NEXT: dict[tuple[Status, Signal], Status] = {
    (Status.ENV_PREPARING, Signal.PREPARED): Status.RUNNING,
    (Status.QUEUING, Signal.CAPACITY_WON): Status.ENV_PREPARING,
    (Status.BIDDING, Signal.CAPACITY_WON): Status.ENV_PREPARING,
    (Status.SANITY_CHECKING, Signal.CHECKED): Status.RUNNING,
    (Status.RUNNING, Signal.COMPLETED): Status.SUCCEEDED,
    (Status.STOPPING, Signal.STOP_DONE): Status.STOPPED,
    (Status.SUCCEEDED_RESERVING, Signal.RESERVATION_OVER): Status.SUCCEEDED,
    (Status.FAILED_RESERVING, Signal.RESERVATION_OVER): Status.FAILED,
    (Status.SUCCEEDED_RESERVING, Signal.STOP_REQUESTED): Status.SUCCEEDED,
    (Status.FAILED_RESERVING, Signal.STOP_REQUESTED): Status.FAILED,
    **{(status, Signal.STOP_REQUESTED): Status.STOPPING for status in ACTIVE - {Status.STOPPING}},
    **{(status, Signal.BROKE): Status.FAILED for status in ACTIVE - {Status.STOPPING}},
    **{(status, Signal.REVOKED): Status.FAILED for status in HOLDING},
}


class IllegalTransition(RuntimeError):
    """A signal that means nothing in the job's status."""


def next_status(status: Status, signal: Signal, traits: Traits) -> Status:
    """Return the status that follows `signal`. Raises IllegalTransition if it means nothing now."""
    if (status, signal) in ((Status.CREATING, Signal.ACCEPTED), (Status.RESTARTING, Signal.RESTARTED)):
        return Status.BIDDING if traits.bids else Status.QUEUING
    follows = _NEXT.get((status, signal))
    if follows is None:
        raise IllegalTransition(f"{signal.value!r} means nothing to a job in {status.value}.")
    return _by_traits(follows, signal, traits)


def means_something(status: Status, signal: Signal) -> bool:
    """Whether `signal` can move a job in `status`."""
    starts = ((Status.CREATING, Signal.ACCEPTED), (Status.RESTARTING, Signal.RESTARTED))
    return (status, signal) in _NEXT or (status, signal) in starts


def _by_traits(follows: Status, signal: Signal, traits: Traits) -> Status:
    if signal is Signal.REVOKED and traits.restarts_left:
        return Status.RESTARTING
    if signal is Signal.PREPARED and traits.checks_sanity:
        return Status.SANITY_CHECKING
    if signal is Signal.COMPLETED and traits.reserves_success:
        return Status.SUCCEEDED_RESERVING
    if signal in (Signal.BROKE, Signal.REVOKED) and traits.reserves_failure:
        return Status.FAILED_RESERVING
    return follows


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """
    How long each phase takes, in emulated seconds, when nothing holds it up.

    :param jitter: fraction by which each duration varies, seeded: 0.2 means ± 20 %.
    """

    creating: float = 0.1
    queuing: float = 0.2
    bidding: float = 0.2
    env_preparing: float = 0.2
    sanity_checking: float = 0.2
    restarting: float = 0.2
    stopping: float = 0.1
    jitter: float = 0.0

    def seconds(self, status: Status, rng: random.Random) -> float:
        """Return how long `status` takes this time."""
        seconds = float(getattr(self, status.name.lower()))
        if not self.jitter:
            return seconds
        return seconds * (1 + rng.uniform(-self.jitter, self.jitter))
