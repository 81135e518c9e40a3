"""What is run in one seed: how much work of which kind, and what the cloud does to each piece of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from airflow_provider_pai_spot.emulator.plans import JobPlan

DAG_ID = "chaos"
OVERDUE = "overdue"
_LARGEST_RUN = 40
_WAITING_SHARE = 0.1
_OVERDUE_SHARE = 0.1
_PAIR_SHARE = 0.25
_LOSS_SHARE = 0.4
_RUN_SECONDS = (10.0, 40.0)
_LOST_AFTER = (2.0, 20.0)
_MOST_PLANNED_LOSSES = 3
RUN_TIMEOUT_SECONDS = 8.0
"""Limit of the work that is overdue at first: its first job runs until it is stopped."""
_IN_TIME_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Workload:
    """
    DAG runs of equal size.

    :param runs: how many DAG runs.
    :param deferred: task instances of each run that wait in the triggerer.
    :param waiting: those that wait on a worker (`deferrable=False`).
    :param overdue: those whose first job is stopped at its time limit, and whose second ends in time.
    :param pairs: pieces of work of each run that are submitted by one task and waited for by another.
    """

    runs: int
    deferred: int
    waiting: int
    overdue: int
    pairs: int

    @classmethod
    def of(cls, task_instances: int) -> Workload:
        """Return the workload with about that many task instances, a little more if it does not divide evenly."""
        runs = max(1, round(task_instances / _LARGEST_RUN))
        each = -(-task_instances // runs)
        waiting, overdue = round(each * _WAITING_SHARE), round(each * _OVERDUE_SHARE)
        pairs = round(each * _PAIR_SHARE / 2)
        return cls(runs, each - waiting - overdue - 2 * pairs, waiting, overdue, pairs)

    @property
    def sizes(self) -> str:
        """What the DAG file reads from its environment."""
        return f"{self.deferred},{self.waiting},{self.overdue},{self.pairs}"

    @property
    def run_ids(self) -> list[str]:
        """The DAG runs to start."""
        return [f"r{number}" for number in range(1, self.runs + 1)]

    @property
    def task_instances(self) -> int:
        """How many task instances there are in all runs."""
        return self.runs * (self.deferred + self.waiting + self.overdue + 2 * self.pairs)

    def works(self) -> Iterator[str]:
        """Yield the display name of each piece of work: what one job, or one and its successors, does."""
        counts = {"deferred": self.deferred, "waiting": self.waiting, OVERDUE: self.overdue, "pair": self.pairs}
        for run_id in self.run_ids:
            for kind, count in counts.items():
                yield from (f"{run_id}-{kind}-{number:03}" for number in range(count))


def kind_of(work: str) -> str:
    """Return `deferred`, `waiting`, `overdue` or `pair`."""
    return work.split("-")[1]


def defers(work: str) -> bool:
    """Whether the task that submits a piece of work defers next."""
    return kind_of(work) in ("deferred", OVERDUE)


def plans(workload: Workload, rng: random.Random) -> Iterator[tuple[str, JobPlan, int | None]]:
    """Yield (display name, plan, for how many jobs): the losses of each piece of work, then its success."""
    for name in workload.works():
        if kind_of(name) == OVERDUE:
            yield name, JobPlan(run_seconds=None), 1
            yield name, JobPlan(run_seconds=_IN_TIME_SECONDS), None
            continue
        losses = rng.randint(1, _MOST_PLANNED_LOSSES) if rng.random() < _LOSS_SHARE else 0
        run_seconds = round(rng.uniform(*_RUN_SECONDS), 1)
        for _ in range(losses):
            lost_after = round(min(run_seconds - 1, rng.uniform(*_LOST_AFTER)), 1)
            yield name, JobPlan(run_seconds=run_seconds, revoke_after=lost_after), 1
        yield name, JobPlan(run_seconds=run_seconds), None
