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

ENDED = frozenset({"Succeeded", "Failed", "Stopped"})
_TAG = "airflow-ti"
_AMBIGUOUS = frozenset({"lost_answer", "drop", "server_error", "html_error"})
_ANSWERING_TASK = {"deferred": "deferred", "waiting": "waiting", "pair": "pair.wait"}

Key = tuple[str, str, int]


@dataclass(slots=True)
class JobLife:
    """One job as the emulator's journal tells it; times are seconds since the epoch."""

    job_id: str
    work: str
    owner: str
    created_at: float
    status: str = ""
    ended_at: float = float("inf")
    revoked: bool = False
    stopped_by_request: bool = False

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self.status not in ENDED

    def overlaps(self, other: JobLife) -> bool:
        """Whether both were alive at the same instant."""
        return max(self.created_at, other.created_at) < min(self.ended_at, other.ended_at)


@dataclass(frozen=True, slots=True)
class Judgement:
    """
    The verdict on one seed.

    :param jobs_expected: one for each piece of work, and one more for each job that the market took: what somebody
        pays who never submits twice what is under way or done.
    :param duplicates: two jobs of one task instance alive at one instant, each with its readable story.
    :param lost: task instances whose end in Airflow is not their job's end.
    :param not_green: task instances that did not succeed.
    """

    task_instances: int
    successes: int
    works: int
    jobs_created: int
    jobs_expected: int
    jobs_revoked: int
    works_revoked: int
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
            tags = detail["tags"]
            jobs[job_id] = JobLife(job_id, detail["display_name"], tags.get(_TAG, job_id), entry["at"])
        elif kind == "status":
            job = jobs[job_id]
            job.status = detail["status"]
            if job.status in ENDED:
                job.ended_at = min(job.ended_at, entry["at"])
        elif kind == "revoked":
            jobs[job_id].revoked = True
        elif kind == "stop":
            jobs[job_id].stopped_by_request = True
    return jobs


def by_owner(jobs: Iterable[JobLife]) -> dict[str, list[JobLife]]:
    """Return the jobs of each task instance, by its tag, oldest first."""
    found: dict[str, list[JobLife]] = {}
    for job in sorted(jobs, key=lambda one: one.created_at):
        found.setdefault(job.owner, []).append(job)
    return found


def duplicates(jobs: Iterable[JobLife]) -> list[str]:
    """Name every pair of one task instance's jobs that were alive at the same time."""
    return [
        f"{older.work}: {older.job_id} and {younger.job_id} both lived for "
        f"{min(older.ended_at, younger.ended_at) - younger.created_at:.1f} s from {younger.created_at:.1f}"
        for family in by_owner(jobs).values()
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
    families = by_owner(jobs)
    of_work = {family[0].work: family for family in families.values()}
    green = [one for one in instances if one.state == "success"]
    states = {one.key: one.state for one in instances}
    return Judgement(
        task_instances=len(instances),
        successes=len(green),
        works=len(works),
        jobs_created=len(jobs),
        jobs_expected=len(works) + sum(job.revoked for job in jobs),
        jobs_revoked=sum(job.revoked for job in jobs),
        works_revoked=sum(any(job.revoked for job in family) for family in families.values()),
        ambiguous_answers=sum(map(_is_ambiguous, journal)),
        duplicates=duplicates(jobs),
        lost=[story for work in works if (story := _loss(work, of_work.get(work, []), states, xcoms))],
        not_green=[
            f"{one.run_id} {one.task_id}[{one.map_index}] is {one.state}" for one in instances if one not in green
        ],
        unexpected=[story for work in works if (story := _unexpected(work, of_work.get(work, [])))],
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


def _unexpected(work: str, family: Sequence[JobLife]) -> str:
    """Say why a piece of work has more jobs than one, and one for each loss; '' if it has not."""
    wanted = 1 + sum(job.revoked for job in family)
    if len(family) <= wanted:
        return ""
    story = ", ".join(f"{job.job_id} {job.status}{' (revoked)' if job.revoked else ''}" for job in family)
    return f"{work}: {len(family)} jobs where {wanted} were enough: {story}"
