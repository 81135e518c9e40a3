"""What happened, as plain values: read from the cloud's own records and the pods' logs. No sockets, no clocks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

ENDED = frozenset({"Succeeded", "Failed", "Stopped"})
_PROGRESS = re.compile(r"(?:^|\s)PAI_SPOT_PROGRESS (\{.*\})\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """
    What one `PAI_SPOT_PROGRESS` line of the training says.

    :param step: the step just made; in an attempt's first line the one it starts from.
    :param of: steps in all.
    :param checkpoint: the last step that is safe.
    :param accuracy: share of unseen digits read correctly.
    """

    step: int
    of: int
    checkpoint: int
    accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """
    One DLC job of the task, as the cloud and its pods' logs show it.

    :param bid: fraction of list price.
    :param evicted: whether a pod lost its machine.
    :param statuses: every status it was in, oldest first.
    :param progress: its training's lines, oldest first.
    """

    job_id: str
    status: str
    bid: float
    instance_type: str
    evicted: bool = False
    statuses: tuple[str, ...] = ()
    progress: tuple[Progress, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether the job is over."""
        return self.status in ENDED

    @property
    def end(self) -> str:
        """The status, and that it was a loss if it was one."""
        return f"{self.status}, evicted" if self.evicted else self.status

    @property
    def last(self) -> Progress | None:
        """Where it is, or was when it ended; None before the first line."""
        return self.progress[-1] if self.progress else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """
    Everything worth showing at one moment.

    :param seconds: since the run was triggered.
    :param market_price: fraction of list price.
    """

    run_id: str
    seconds: float
    run_state: str
    task_state: str
    try_number: int
    market_price: float
    attempts: tuple[Attempt, ...] = ()


def attempt_from(job: Mapping[str, Any], log_lines: Iterable[str]) -> Attempt:
    """Read one job as GetJob shows it, with its pods' log lines."""
    role = job["JobSpecs"][0]
    return Attempt(
        job_id=job["JobId"],
        status=job["Status"],
        bid=float(role["SpotSpec"]["SpotDiscountLimit"]),
        instance_type=role["EcsSpec"],
        evicted=any(pod.get("SubStatus") == "Evicted" for pod in job.get("Pods") or ()),
        statuses=tuple(entry["Status"] for entry in job.get("StatusHistory") or ()),
        progress=progress_in(log_lines),
    )


def progress_in(lines: Iterable[str]) -> tuple[Progress, ...]:
    """Return the training's progress lines; DLC puts a timestamp before each."""
    found = (_PROGRESS.search(line) for line in lines)
    values = (json.loads(match[1]) for match in found if match)
    return tuple(Progress(**{key: value[key] for key in Progress.__slots__}) for value in values)


def is_worth_losing(attempt: Attempt, margin: int = 3) -> bool:
    """Whether a loss now shows something: half of the training is done, and a few steps are not safe yet."""
    last = attempt.last
    if last is None or attempt.status != "Running":
        return False
    return 2 * last.step >= last.of and last.step - last.checkpoint >= margin


def resumed_exactly(attempts: Sequence[Attempt]) -> bool:
    """Whether every attempt after the first began at the last checkpoint of the one before, above step 0."""
    if len(attempts) < 2:  # noqa: PLR2004 - one attempt has nothing to resume from
        return False
    return all(_took_over(before, after) for before, after in pairwise(attempts))


def steps_lost(attempts: Sequence[Attempt]) -> int:
    """Return how many steps were trained more than once."""
    return sum(
        before.last.step - after.progress[0].step
        for before, after in pairwise(attempts)
        if before.last and after.progress
    )


def _took_over(before: Attempt, after: Attempt) -> bool:
    if before.last is None or not after.progress:
        return False
    return 0 < before.last.checkpoint == after.progress[0].step
