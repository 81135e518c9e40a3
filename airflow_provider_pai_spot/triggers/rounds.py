"""
Whose turn it is: which jobs are asked for together, and when. Pure; the caller reads the clock and sends.

Each job has its own due time, so tasks may wish for different intervals. A batch is filled with jobs that would be
due soon, which makes batches few and keeps jobs that once were asked for together, together.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

from airflow_provider_pai_spot.triggers.rhythm import Rhythm

_SOON = 0.5  # of its period: how much earlier than due a job is taken along
_JITTER = (0.95, 1.05)
_GATHER_FIRST = 0.05
_GATHER = 1.0
"""Seconds between two looks for newcomers: a triggerer starts 50 triggers a second at most."""
_GOLDEN = 0.6180339887498949  # its multiples spread evenly over a period, however many there are
_FIRST_BACKOFF = 1.0
_LARGER_AGAIN_AFTER = 20.0  # periods without a refusal, after which a job's batches double with each answered one
_SUSPECT = 5
"""Failures in a row, other lists being answered meanwhile, after which one id of a list may be why it fails."""
_SMALLER_PROBES_AFTER = 3
"""Lists in a row that nobody answered, after which the next is shorter: one id may spoil them all."""
_OUT = float("inf")
YOUNG_PERIODS = 0.5
"""A young job's period, as a part of the wished one."""


@dataclass(slots=True, eq=False)
class Turn:
    """
    One job's place in the rounds.

    :param period: seconds between two looks.
    :param at_most: how many ids its batch may have; halved when one was refused.
    :param young_until: it is looked at more often before this moment.
    :param failures: looks that found nothing, in a row.
    :param failed_after: how many lists had been answered when it failed last.
    :param suspected: its lists failed again and again while others were answered; `at_most` is less because of that.
    :param alone: a list of nothing but this id cannot be had, so it is in none for a while.
    """

    job_id: str
    period: float
    due: float
    at_most: int
    fresh: bool = True
    failures: int = 0
    failed_after: int = 0
    refused_at: float = 0.0
    young_until: float = 0.0
    suspected: bool = False
    alone: bool = False
    dropped: bool = False


class Rounds:
    """
    The jobs of one watcher in the order of their turns.

    :param size: ids in one ListJobs at most.
    :param rhythm: what DLC allows.
    :param rng: source of jitter, so that several triggerers do not ask at the same moments.
    """

    def __init__(self, size: int, rhythm: Rhythm, rng: random.Random | None = None) -> None:
        self._size = size
        self._rhythm = rhythm
        self._rng = rng or random.Random()  # noqa: S311 - spreads load, guards nothing
        self._heap: list[tuple[float, int, Turn]] = []
        self._numbers = itertools.count()
        self._count = 0
        self._looks_a_second = 0.0
        self._last_call = float("-inf")
        self._last_gathered = float("-inf")
        self._groups = itertools.count(1)
        self._alone: set[Turn] = set()
        self._answers = 0
        self._vain = 0
        self._probe_at = float("-inf")

    def __len__(self) -> int:
        return self._count

    def enter(self, job_id: str, period: float, now: float) -> Turn:
        """Give a new job its turn: soon, together with others that come now."""
        due = max(now + _GATHER_FIRST, self._last_gathered + _GATHER)
        turn = Turn(job_id, period, due, self._size)
        self._count += 1
        self._looks_a_second += 1 / period
        self._push(turn)
        self._measure()
        return turn

    def quicken(self, turn: Turn, period: float, now: float) -> None:
        """Let a job be looked at more often from now on: somebody else waits for it, too."""
        if period >= turn.period:
            return
        self._looks_a_second += 1 / period - 1 / turn.period
        turn.period = period
        if now + period < turn.due < _OUT:
            turn.due = now + period
            self._push(turn)
        self._measure()

    def leave(self, turn: Turn) -> None:
        """Forget a job."""
        turn.dropped = True
        self._alone.discard(turn)
        self._count -= 1
        self._looks_a_second -= 1 / turn.period
        self._measure()

    def next_at(self, now: float) -> float | None:
        """Return when the next batch may be sent, None if nobody waits for one."""
        self._skip_stale()
        if not self._heap:
            return None
        return max(self._heap[0][0], self._last_call + self._gap(now), self._rhythm.open_at, self._probe_at)

    @property
    def vain_probes(self) -> int:
        """How many lists in a row were not answered; from the first on, one is asked for at a time."""
        return self._vain

    def may_change_at(self, now: float) -> float:
        """Return when `next_at` is worth asking again: a throttled pace rises as time goes by."""
        return now + self._rhythm.period / 10 if self._rhythm.share(now) < 1.0 else float("inf")

    def take(self, now: float) -> list[Turn]:
        """Return the jobs to ask for now, the most urgent and those due soon; they are out until put back."""
        batch: list[Turn] = []
        limit = max(1, self._size >> max(0, self._vain - _SMALLER_PROBES_AFTER + 1))
        for turn in self._urgent_first():
            limit = min(limit, turn.at_most)
            if len(batch) >= limit or turn.due > now + _SOON * self._period_of(turn, now):
                break
            heapq.heappop(self._heap)
            turn.due = _OUT
            batch.append(turn)
        self._last_call = now
        if any(turn.fresh for turn in batch):
            self._last_gathered = now
        return batch

    def answered(self, batch: list[Turn], now: float) -> None:
        """Put back jobs whose list was answered; those that came new begin spread over the period."""
        jitter = self._rng.uniform(*_JITTER)
        phase = next(self._groups) * _GOLDEN % 1.0
        self._recover()
        self._answers += 1
        if any(turn.alone for turn in batch):
            self._together_again(now)
        for turn in batch:
            part = max(0.1, phase) if turn.fresh else jitter
            turn.fresh, turn.failures = False, 0
            if turn.suspected:
                turn.suspected, turn.at_most = False, self._size
            if turn.at_most < self._size and now - turn.refused_at > _LARGER_AGAIN_AFTER * turn.period:
                turn.at_most = min(self._size, turn.at_most * 2)
            self._put_back(turn, now + self._period_of(turn, now) * part)

    def failed(self, batch: list[Turn], now: float, *, hopeless: bool = False, everywhere: bool = False) -> None:
        """
        Put back jobs that could not be asked for: soon, then later and later, up to their period.

        :param hopeless: asking again soon will not help.
        :param everywhere: any other list would probably not be answered either: one at a time finds out.
        """
        if everywhere:
            self._slow_down(batch, now)
            self._suspect(batch)
        jitter = self._rng.uniform(0.5, 1.0)
        for turn in batch:
            turn.failures += 1
            backoff = min(turn.period, _FIRST_BACKOFF * 2 ** min(turn.failures - 1, 16))
            self._put_back(turn, now + (turn.period if hopeless else backoff * jitter))

    def _suspect(self, batch: list[Turn]) -> None:
        """
        Put into shorter lists who failed again while others are answered: so the id that spoils them is found.

        Who is answered once is suspected no more; where DLC fails at random, that is soon.
        """
        for turn in batch:
            others_are_answered = self._answers > turn.failed_after
            if turn.failures + 1 >= _SUSPECT and others_are_answered:
                turn.suspected, turn.at_most = True, max(1, turn.at_most // 2)
            turn.failed_after = self._answers

    def left_alone(self, batch: list[Turn], now: float) -> bool:
        """
        Take a list that failed; return whether that was because of the one id in it, which is in none for a while.

        That it fails says nothing of other lists: these are answered.
        """
        turn = batch[0]
        spoils = turn.suspected and turn.at_most == 1 and self._answers > turn.failed_after
        if len(batch) > 1 or not (turn.alone or spoils):
            return False
        turn.failures += 1
        self._leave_alone(turn, now)
        return True

    def _slow_down(self, batch: list[Turn], now: float) -> None:
        """Let one list, whichever is the next, find out whether any is answered again: soon, then later and later."""
        if now < self._probe_at:
            return  # it was under way already when another one was not answered
        self._vain += 1
        backoff = min(_FIRST_BACKOFF * 2 ** min(self._vain - 1, 16), *(turn.period for turn in batch))
        self._probe_at = now + backoff * self._rng.uniform(0.5, 1.0)

    def _recover(self) -> None:
        self._vain, self._probe_at = 0, float("-inf")

    def refused(self, batch: list[Turn], now: float) -> None:
        """Put back jobs whose list was refused as a whole (400, 414), to be asked for in two halves."""
        self._recover()
        smaller = max(1, (len(batch) + 1) // 2)
        for index, turn in enumerate(batch):
            turn.at_most, turn.refused_at = smaller, now
            if len(batch) == 1:
                self._leave_alone(turn, now)
            else:  # the halves are due one after the other, so that they are not mixed again
                self._put_back(turn, now + 0.001 * (index // smaller))

    def _leave_alone(self, turn: Turn, now: float) -> None:
        """Ask for no list with this id in it for a while; what refused it may have been passing trouble."""
        turn.alone, turn.fresh = True, False
        if not turn.dropped:
            self._alone.add(turn)
        self._put_back(turn, now + _LARGER_AGAIN_AFTER * turn.period * self._rng.uniform(*_JITTER))

    def _together_again(self, now: float) -> None:
        """Let all that were left alone back into lists: one of them was answered, so it need not be their ids."""
        for turn in self._alone:
            turn.alone, turn.suspected, turn.at_most = False, False, self._size
            if turn.due < _OUT:
                self._put_back(turn, now)
        self._alone.clear()

    def _put_back(self, turn: Turn, due: float) -> None:
        turn.due = due
        if not turn.dropped:
            self._push(turn)

    def _push(self, turn: Turn) -> None:
        heapq.heappush(self._heap, (turn.due, next(self._numbers), turn))

    def _urgent_first(self) -> Iterator[Turn]:
        while self._heap:
            self._skip_stale()
            if self._heap:
                yield self._heap[0][2]

    def _skip_stale(self) -> None:
        """Pass over jobs that are gone, and former places of jobs that were moved forward."""
        while self._heap and (self._heap[0][2].dropped or self._heap[0][0] != self._heap[0][2].due):
            heapq.heappop(self._heap)

    def _gap(self, now: float) -> float:
        in_a_batch = min(self._size, self._count)
        return self._rhythm.gap(now, in_a_batch / self._looks_a_second if self._looks_a_second > 0 else 0.0)

    def _measure(self) -> None:
        """Tell the rhythm how long a round takes: the mean of the wished periods."""
        if not self._count:
            self._looks_a_second = 0.0  # what is left of it is rounding
        elif self._looks_a_second > 0:
            self._rhythm.period = self._count / self._looks_a_second

    @staticmethod
    def _period_of(turn: Turn, now: float) -> float:
        return turn.period * (YOUNG_PERIODS if now < turn.young_until else 1.0)
