"""
Turns for CreateJob that all worker processes of a machine take one after the other.

A mapped task starts a thousand processes, which otherwise submit as fast as the machine lets them. DLC publishes no
limit of its own, so the fastest pace is a setting, and the pace that DLC takes is learnt: slower by half when it
throttles, faster again bit by bit. The processes meet in a locked file.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from airflow_provider_pai_spot.clock import Clock

_LONGEST_QUEUE = 600.0
"""Seconds; a turn further away than this was taken by a clock that went wrong."""
_WORTH_SAYING = 5.0
_LONGEST_FILE = 1000
_SLOWEST = 1 / 64  # of the pace of the setting
_RISE_SECONDS = 60.0  # without throttling, from standstill to the pace of the setting
_ONE_EVENT = 1.0  # seconds within which further throttled calls were under way already
_LONGEST_HOLD = 120.0
"""Seconds; whether DLC's x-acs-retry-after counts milliseconds is not documented, and nobody waits for an hour."""


@dataclass(slots=True)
class Queue:
    """
    What the file holds; all times are seconds since the epoch.

    :param free: the first turn that nobody has taken.
    :param rate: turns a second.
    :param rated: when that was worked out.
    :param held: before this nobody submits, because DLC throttled.
    :param throttled: when it last did.
    :param round: turns of an earlier one do not count any more: they were given out at a pace that was too fast.
    """

    free: float
    rate: float
    rated: float
    held: float = 0.0
    throttled: float = 0.0
    round: int = 0

    def take(self, now: float, fastest: float) -> float:
        """Take the next turn and return when it is."""
        self.rate = min(fastest, self.rate + max(0.0, now - self.rated) * fastest / _RISE_SECONDS)
        self.rated = max(self.rated, now)
        turn = max(now, self.free, self.held)
        self.free = turn + 1 / self.rate
        return turn

    def slow_down(self, now: float, seconds: float, fastest: float) -> None:
        """Let nobody submit for so long, and everybody at half the pace from then on."""
        self.held = max(self.held, now + min(seconds, _LONGEST_HOLD))
        if now - self.throttled >= _ONE_EVENT:
            self.rate, self.throttled = max(fastest * _SLOWEST, self.rate / 2), now
            self.free, self.round = self.held, self.round + 1
        self.rated = max(self.rated, self.held)


class SubmissionPace:
    """
    The queue of one machine's submissions to one DLC.

    :param place: the endpoint or region that they go to.
    :param per_second: submissions a second at most, 0 for no limit.
    :param folder: where processes of one user meet; the machine's folder for temporary files if None.
    """

    def __init__(self, place: str, *, per_second: float, clock: Clock, log: Any, folder: Path | None = None) -> None:
        digest = hashlib.sha256(place.encode()).hexdigest()[:16]
        self._file = (folder or Path(tempfile.gettempdir())) / f"pai-spot-submissions-{os.getuid()}-{digest}"
        self._per_second = per_second
        self._clock = clock
        self._log = log
        self._is_shared = False

    def wait_for_turn(self) -> None:
        """Wait until this process may submit; at once where the processes cannot meet, which is said."""
        if self._per_second <= 0:
            return
        taken_in: int | None = None
        while True:
            with self._queue() as queue:
                if taken_in == queue.round:
                    return
                taken_in = queue.round
                turn = queue.take(self._now(), self._per_second)
            ahead = turn - self._now()
            if ahead <= 0:
                return
            self._say(ahead)
            self._clock.sleep(ahead)

    def throttled(self, retry_after: float) -> bool:
        """
        Let everybody on this machine submit more slowly; return whether that holds, and no wait of one's own is needed.

        :param retry_after: seconds in which nobody submits at all.
        """
        if self._per_second <= 0:
            return False
        with self._queue() as queue:
            queue.slow_down(self._now(), retry_after, self._per_second)
        return self._is_shared

    def _say(self, seconds: float) -> None:
        if seconds >= _WORTH_SAYING:
            self._log.info(
                "others of this machine submit as well, or DLC throttles; waiting %.0f s "
                "([pai_spot] submissions_per_second is %g)",
                seconds,
                self._per_second,
            )

    def _now(self) -> float:
        return self._clock.now().timestamp()

    @contextmanager
    def _queue(self) -> Iterator[Queue]:
        """Read the queue, and write what was made of it; nobody else does meanwhile. Alone if the file is no use."""
        self._is_shared = False
        with ExitStack() as stack:
            queue = self._fresh()
            try:
                # Not following a link: anybody may write to the folder for temporary files.
                file = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                stack.callback(os.close, file)
                fcntl.flock(file, fcntl.LOCK_EX)
                queue = self._read(file)
            except OSError as error:
                self._say_alone(error)
                yield queue
                return
            yield queue
            try:
                os.ftruncate(file, 0)
                os.pwrite(file, json.dumps(asdict(queue)).encode(), 0)
                self._is_shared = True
            except OSError as error:  # a full disk
                self._say_alone(error)

    def _say_alone(self, error: OSError) -> None:
        self._log.warning("submissions of this machine cannot wait for each other: %s", error)

    def _fresh(self) -> Queue:
        return Queue(free=0.0, rate=self._per_second, rated=self._now())

    def _read(self, file: int) -> Queue:
        """Return what is stored, unless that was written by somebody else, or at a time that cannot be."""
        try:
            stored = Queue(**json.loads(os.pread(file, _LONGEST_FILE, 0)))
            numbers = [float(number) for number in asdict(stored).values()]
        except (ValueError, TypeError):
            return self._fresh()
        latest = self._now() + _LONGEST_QUEUE
        is_sound = all(map(math.isfinite, numbers)) and max(stored.free, stored.held, stored.rated) <= latest
        if not is_sound or stored.rate < self._per_second * _SLOWEST:
            return self._fresh()
        return stored
