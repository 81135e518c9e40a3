"""
What became of every piece of work: Airflow's states and XComs held against the emulator's own journal.

Pure: takes what was read from both sides, starts and asks nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from observing import TaskInstance
from workload import OVERDUE, kind_of

ENDED = frozenset({"Succeeded", "Failed", "Stopped"})
_AMBIGUOUS = frozenset({"lost_answer", "drop", "server_error", "html_error"})
_ANSWERING_TASK = {"deferred": "deferred", "waiting": "waiting", "overdue": "overdue", "pair": "pair.wait"}
_TASK_INSTANCES = {"deferred": 1, "waiting": 1, "overdue": 1, "pair": 2}
_SLOW_STOP_SECONDS = 5.0

Key = tuple[str, str, int]


@dataclass(slots=True)
class JobLife:
    """One job as the emulator's journal tells it; times are seconds since the epoch."""

    job_id: str
    work: str
    created_at: float
    status: str = ""
    ended_at: float = float("inf")
    revoked: bool = False
    stop_requested_at: float | None = None

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self.status not in ENDED

    @property
    def was_stopped_slowly(self) -> bool:
        """Whether it stayed in Stopping for long."""
        return self.stop_requested_at is not None and self.ended_at - self.stop_requested_at > _SLOW_STOP_SECONDS

    @property
    def was_overdue(self) -> bool:
        """Whether it ended at its time limit, as the first job of such a piece of work should."""
        return kind_of(self.work) == OVERDUE and self.status in ("Stopped", "Failed") and not self.revoked

    def overlaps(self, other: JobLife) -> bool:
        """Whether both were alive at the same instant."""
        return max(self.created_at, other.created_at) < min(self.ended_at, other.ended_at)


@dataclass(frozen=True, slots=True)
class Judgement:
    """
    The verdict on one seed.

    :param jobs_expected: one for each piece of work, one more for each job that the market took and for each that ended
        at its time limit, once for each piece of work: what somebody pays who never submits twice what is under way or
        done.
    :param losing_task_instances: those whose work lost its capacity at least once.
    :param duplicates: two jobs of one piece of work alive at one instant, each with its readable story.
    :param lost: task instances whose end in Airflow is not their job's end.
    :param not_green: task instances that did not succeed.
    """

    task_instances: int
    successes: int
    works: int
    jobs_created: int
    jobs_expected: int
    jobs_revoked: int
    jobs_overdue: int
    losing_task_instances: int
    slow_stops: int
    ambiguous_answers: int
    duplicates: Sequence[str] = ()
    lost: Sequence[str] = ()
    not_green: Sequence[str] = ()
    unexpected: Sequence[str] = field(default=())


def lives(journal: Iterable[Mapping[str, Any]]) -> dict[str, JobLife]:
    """Return every job of the journal by its id, oldest first."""
    jobs: dict[str, JobLife] = {}
    for entry in journal:
        kind, detail, job_id = entry["kind"], entry["detail"], entry["job_id"]
        if kind == "created":
            jobs[job_id] = JobLife(job_id, detail["display_name"], entry["at"])
        elif kind == "status":
            job = jobs[job_id]
            job.status = detail["status"]
            if job.status in ENDED:
                job.ended_at = min(job.ended_at, entry["at"])
        elif kind == "revoked":
            jobs[job_id].revoked = True
        elif kind == "stop":
            jobs[job_id].stop_requested_at = entry["at"]
    return jobs


def by_work(jobs: Iterable[JobLife]) -> dict[str, list[JobLife]]:
    """Return the jobs of each piece of work, oldest first: by the name its DAG gave it, not by the provider's tags."""
    found: dict[str, list[JobLife]] = {}
    for job in sorted(jobs, key=lambda one: one.created_at):
        found.setdefault(job.work, []).append(job)
    return found


def duplicates(jobs: Iterable[JobLife]) -> list[str]:
    """Name every pair of jobs of one piece of work that were alive at the same time."""
    return [
        f"{older.work}: {older.job_id} and {younger.job_id} both lived for "
        f"{min(older.ended_at, younger.ended_at) - younger.created_at:.1f} s from {younger.created_at:.1f}"
        for family in by_work(jobs).values()
        for older, younger in combinations(family, 2)
        if older.overlaps(younger)
    ]


def orphans(jobs: Iterable[JobLife]) -> list[str]:
    """Name every job that still lives."""
    return [f"{job.work}: {job.job_id} is {job.status}" for job in jobs if job.alive]


def judge(
    journal: Sequence[Mapping[str, Any]],
    instances: Sequence[TaskInstance],
    xcoms: Mapping[Key, Mapping[str, Any]],
    works: Sequence[str],
) -> Judgement:
    """Hold both sides against each other."""
    jobs = list(lives(journal).values())
    families = by_work(jobs)
    green = [one for one in instances if one.state == "success"]
    states = {one.key: one.state for one in instances}
    return Judgement(
        task_instances=len(instances),
        successes=len(green),
        works=len(works),
        jobs_created=len(jobs),
        jobs_expected=sum(map(_jobs_wanted, (families.get(work, []) for work in works))),
        jobs_revoked=sum(job.revoked for job in jobs),
        jobs_overdue=sum(job.was_overdue for job in jobs),
        losing_task_instances=sum(
            _TASK_INSTANCES[kind_of(work)] for work, family in families.items() if any(job.revoked for job in family)
        ),
        slow_stops=sum(job.was_stopped_slowly for job in jobs),
        ambiguous_answers=sum(map(_is_ambiguous, journal)),
        duplicates=duplicates(jobs),
        lost=[story for work in works if (story := _loss(work, families.get(work, []), states, xcoms))],
        not_green=[
            f"{one.run_id} {one.task_id}[{one.map_index}] is {one.state}" for one in instances if one not in green
        ],
        unexpected=[
            story for work, family in families.items() if (story := _unexpected(work, family, known=work in works))
        ],
    )


def _is_ambiguous(entry: Mapping[str, Any]) -> bool:
    detail = entry["detail"]
    return entry["kind"] == "fault" and detail["operation"] == "CreateJob" and detail["fault"] in _AMBIGUOUS


def answering_task(work: str) -> Key:
    """Return the task instance that tells how a piece of work ended."""
    run_id, kind, number = work.split("-")
    return run_id, _ANSWERING_TASK[kind], int(number)


def _loss(
    work: str, family: Sequence[JobLife], states: Mapping[Key, str], xcoms: Mapping[Key, Mapping[str, Any]]
) -> str:
    """Say how Airflow's end of a piece of work differs from its newest job's; '' if it does not."""
    key = answering_task(work)
    state, newest = states.get(key, "missing"), family[-1] if family else None
    truth = newest.status if newest else "never submitted"
    if (state == "success") != (truth == "Succeeded"):
        return f"{work}: Airflow says {state}, the newest job {newest.job_id if newest else ''} is {truth}"
    if newest is None or state != "success":
        return ""
    said = xcoms.get(key, {})
    outcome = said.get("outcome") or {}
    told = (outcome.get("job_id"), outcome.get("verdict"), said.get("return_value"))
    expected = (newest.job_id, "succeeded", newest.job_id)
    return "" if told == expected else f"{work}: XComs say {told}, the truth is {expected}"


def _jobs_wanted(family: Sequence[JobLife]) -> int:
    """Count one job, one for each loss, and one for the first that ended at its time limit."""
    return 1 + sum(job.revoked for job in family) + any(job.was_overdue for job in family)


def _unexpected(work: str, family: Sequence[JobLife], *, known: bool) -> str:
    """Say which jobs nobody needed; '' if there are none."""
    if not known:
        return f"{work}: no such work, but {', '.join(job.job_id for job in family)}"
    wanted = _jobs_wanted(family)
    if len(family) <= wanted:
        return ""
    story = ", ".join(f"{job.job_id} {job.status}{' (revoked)' if job.revoked else ''}" for job in family)
    return f"{work}: {len(family)} jobs where {wanted} were enough: {story}"
