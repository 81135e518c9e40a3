"""
Turns for CreateJob that all worker processes of a machine take one after the other.

A mapped task starts a thousand processes, which otherwise submit as fast as the machine lets them. DLC publishes no
limit of its own, so the pace is a setting; who is throttled all the same makes everybody wait.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from airflow_provider_pai_spot.clock import Clock

_LONGEST_QUEUE = 3600.0
"""Seconds; a turn further away than this was taken by a clock that went wrong."""
_WORTH_SAYING = 5.0
_NUMBER_LENGTH = 32


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

    def wait_for_turn(self) -> None:
        """Wait until this process may submit; at once where the processes cannot meet, which is said."""
        if self._per_second <= 0:
            return
        now = self._now()
        turn = self._move(now, taken=1 / self._per_second)
        if turn - now >= _WORTH_SAYING:
            self._log.info(
                "others of this machine submit as well; waiting %.0f s ([pai_spot] submissions_per_second is %g)",
                turn - now,
                self._per_second,
            )
        if turn > now:
            self._clock.sleep(turn - now)

    def hold(self, seconds: float) -> None:
        """Let nobody on this machine submit for so long: DLC throttled."""
        if self._per_second > 0:
            self._move(self._now() + seconds, taken=0.0)

    def _now(self) -> float:
        return self._clock.now().timestamp()

    def _move(self, earliest: float, *, taken: float) -> float:
        """Return the first free turn not before `earliest`, and let the next be `taken` seconds after it."""
        try:
            with self._locked() as file:
                turn = max(earliest, _free_from(file, self._now()))
                os.pwrite(file, f"{turn + taken:<{_NUMBER_LENGTH}.6f}".encode(), 0)
                return turn
        except OSError as error:
            self._log.warning("submissions of this machine cannot wait for each other: %s", error)
            return earliest

    @contextmanager
    def _locked(self) -> Iterator[int]:
        # Not following a link: anybody may write to the folder for temporary files.
        file = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)


def _free_from(file: int, now: float) -> float:
    try:
        stored = float(os.pread(file, _NUMBER_LENGTH, 0))
    except ValueError:  # a file that was just made, or written by somebody else
        return now
    return stored if stored - now <= _LONGEST_QUEUE else now
