"""What a sweep found and did, for log lines, JSON, an exit code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from airflow_provider_pai_spot.attempts.identity import (
    ENV_DAG_ID,
    ENV_MAP_INDEX,
    ENV_RUN_ID,
    ENV_TASK_ID,
    TAG_ATTEMPT,
    TAG_OWNER,
)
from airflow_provider_pai_spot.dlc.duration import duration
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.wire import integer_of
from airflow_provider_pai_spot.sweep.candidates import Decision, Reason
from airflow_provider_pai_spot.sweep.costs import RoleCost, describe


class Result(StrEnum):
    """What was done with a job."""

    LEFT = "left"
    WOULD_STOP = "would_stop"
    STOPPED = "stopped"
    STOPPING = "stopping"
    ENDED = "ended"
    NOT_STOPPED = "not_stopped"


_WORDS = {
    Result.LEFT: "left alone",
    Result.WOULD_STOP: "an orphan, would be stopped",
    Result.STOPPED: "an orphan, stopped",
    Result.STOPPING: "an orphan, is being stopped",
    Result.ENDED: "an orphan, ended by itself",
    Result.NOT_STOPPED: "an orphan, COULD NOT BE STOPPED",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptJob:
    """
    One live job, and what became of it.

    :param at: when it was decided.
    :param problem: why it could not be stopped.
    """

    job: Job
    decision: Decision
    result: Result
    at: datetime
    costs: tuple[RoleCost, ...] = ()
    problem: str = ""

    @property
    def age_seconds(self) -> float | None:
        """Seconds since it was created; None where DLC does not say."""
        return (self.at - self.job.created_at).total_seconds() if self.job.created_at else None

    @property
    def is_worrying(self) -> bool:
        """Whether something could not be found out, or not be done."""
        return self.decision.reason is Reason.OWNER_UNKNOWN or self.result is Result.NOT_STOPPED

    @property
    def whose(self) -> str:
        """DAG, run, task and map index, as the job's own variables tell."""
        envs = self.job.envs
        names = [envs.get(name, "?") for name in (ENV_DAG_ID, ENV_RUN_ID, ENV_TASK_ID)]
        mapped = [envs[ENV_MAP_INDEX]] if envs.get(ENV_MAP_INDEX, "-1") != "-1" else []
        return " / ".join(names + mapped)

    def __str__(self) -> str:
        age = "of unknown age" if self.age_seconds is None else f"{duration(self.age_seconds)} old"
        said = f"{_WORDS[self.result]}: {self.decision.words}"
        problem = f" ({self.problem})" if self.problem else ""
        return f"{self.job.job_id} {self.job.status}, {self.whose}, {age}, {describe(self.costs)}: {said}{problem}"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; no variable of the job but Airflow's own."""
        envs, tags = self.job.envs, self.job.tags
        return {
            "job_id": self.job.job_id,
            "status": self.job.status,
            "dag_id": envs.get(ENV_DAG_ID),
            "run_id": envs.get(ENV_RUN_ID),
            "task_id": envs.get(ENV_TASK_ID),
            "map_index": integer_of(envs.get(ENV_MAP_INDEX)),
            "attempt": integer_of(tags.get(TAG_ATTEMPT)),
            "owner": tags.get(TAG_OWNER),
            "age_seconds": None if self.age_seconds is None else round(self.age_seconds, 1),
            "costs": [cost.to_dict() for cost in self.costs],
            "result": self.result.value,
            "reason": self.decision.reason.value,
            "words": self.decision.words,
            "problem": self.problem or None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """All live jobs of a namespace, and what became of each."""

    namespace: str
    applied: bool
    jobs: Sequence[SweptJob]

    def count(self, *results: Result) -> int:
        """Return how many jobs have one of these results."""
        return sum(one.result in results for one in self.jobs)

    @property
    def unanswered(self) -> int:
        """About how many jobs Airflow gave no usable answer."""
        return sum(one.decision.reason is Reason.OWNER_UNKNOWN for one in self.jobs)

    @property
    def is_incomplete(self) -> bool:
        """Whether something could not be found out, or not be stopped."""
        return any(one.is_worrying for one in self.jobs)

    def log_to(self, log: Any) -> None:
        """Write one line per decision, and one for the whole."""
        for one in self.jobs:
            (log.warning if one.is_worrying else log.info)("%s", one)
        log.info("%s", self.summary)

    @property
    def summary(self) -> str:
        """The whole sweep in one line."""
        orphans = len(self.jobs) - self.count(Result.LEFT)
        parts = [f"{_jobs(len(self.jobs))} in namespace {self.namespace!r}", _jobs(orphans, "orphan")]
        parts += _parts(
            (self.count(Result.STOPPED), "stopped"),
            (self.count(Result.STOPPING), "being stopped"),
            (self.count(Result.ENDED), "ended by itself"),
            (self.count(Result.NOT_STOPPED), "could not be stopped"),
            (self.unanswered, "without an answer from Airflow"),
        )
        return f"{', '.join(parts)}.{'' if self.applied or not orphans else ' A dry run: nothing was stopped.'}"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "namespace": self.namespace,
            "applied": self.applied,
            "orphans": len(self.jobs) - self.count(Result.LEFT),
            "unanswered": self.unanswered,
            "jobs": [one.to_dict() for one in self.jobs],
        }


def _jobs(count: int, noun: str = "live job") -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _parts(*counted: tuple[int, str]) -> Iterable[str]:
    return [f"{count} {words}" for count, words in counted if count]
