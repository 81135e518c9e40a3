"""Scripted faults: what goes wrong with which operation, how often."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass
from enum import StrEnum


class FaultKind(StrEnum):
    """What can go wrong."""

    THROTTLE = "throttle"
    SERVER_ERROR = "server_error"
    HTML_ERROR = "html_error"
    DROP = "drop"
    LOST_ANSWER = "lost_answer"
    DELAY = "delay"
    SLOW_STOP = "slow_stop"
    LIST_LAG = "list_lag"


WITHIN = frozenset({FaultKind.SLOW_STOP, FaultKind.LIST_LAG})
"""Faults of the service itself; the others happen between it and the client."""
ANY_OPERATION = "*"


@dataclass(slots=True, kw_only=True)
class Fault:
    """
    One thing that will go wrong.

    :param operation: DLC's name (`CreateJob`), or `*`.
    :param kind: what goes wrong: `throttle`, `server_error` and `html_error` answer with `status`; `drop` closes
        the connection and leaves the request undone; `lost_answer` does it and then closes; `delay` answers
        after `seconds` real ones; `slow_stop` stays in Stopping for `seconds` more; `list_lag` hides a job
        created now from ListJobs for `seconds`.
    :param times: how often; None: until faults are cleared.
    :param probability: chance each time, seeded; 1: always.
    :param seconds: for `delay`, `slow_stop`, `list_lag`.
    :param status: HTTP status; None: 429 for throttle, 503 for the other two.
    :param code: DLC's error code; None: what goes with the status.
    :param retry_after: value of the header x-acs-retry-after (the SDK reads milliseconds); None: no header.
    """

    operation: str
    kind: FaultKind
    times: int | None = 1
    probability: float = 1.0
    seconds: float = 0.0
    status: int | None = None
    code: str | None = None
    retry_after: int | None = None

    def __post_init__(self) -> None:
        self.kind = FaultKind(self.kind)

    @property
    def http_status(self) -> int:
        """The HTTP status it answers with."""
        return self.status or (429 if self.kind is FaultKind.THROTTLE else 503)

    @property
    def error_code(self) -> str:
        """The error code it answers with."""
        if self.code is not None:
            return self.code
        if self.kind is FaultKind.THROTTLE:
            return "Throttling.User"
        return "InternalError" if self.http_status == 500 else "ServiceUnavailable"  # noqa: PLR2004 - HTTP


class FaultBook:
    """
    Faults waiting to happen.

    :param seed: of the dice for `probability`.
    """

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)  # noqa: S311 - dice, not secrets
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> None:
        """Let `fault` happen from now on."""
        with self._lock:
            self._faults.append(fault)

    def clear(self) -> None:
        """Let nothing go wrong any more."""
        with self._lock:
            self._faults.clear()

    def take_between(self, operation: str) -> list[Fault]:
        """Return what goes wrong on the way with this call, and use it up: delays, and one other fault at most."""
        taken: list[Fault] = []
        with self._lock:
            for fault in self._faults:
                taken_already = any(one.kind is not FaultKind.DELAY for one in taken)
                if fault.kind in WITHIN or (taken_already and fault.kind is not FaultKind.DELAY):
                    continue
                if self._strikes(fault, operation):
                    taken.append(fault)
        return taken

    def take_within(self, kind: FaultKind) -> float:
        """Return the seconds of a fault inside the service, and use it up; 0 if there is none."""
        with self._lock:
            for fault in self._faults:
                if fault.kind is kind and self._strikes(fault, fault.operation):
                    return fault.seconds
        return 0.0

    def _strikes(self, fault: Fault, operation: str) -> bool:
        if fault.times == 0 or fault.operation not in (operation, ANY_OPERATION):
            return False
        if self._rng.random() >= fault.probability:
            return False
        if fault.times is not None:
            fault.times -= 1
        return True
