"""The judge of the chaos suite must be able to say no: each kind of wrong is planted, and found."""

from __future__ import annotations

from typing import Any

import pytest
from judgement import Judgement, judge, lives, orphans
from observing import TaskInstance

WORK, OVERDUE_WORK, PAIR_WORK = "r1-deferred-000", "r1-overdue-000", "r1-pair-000"
Entry = dict[str, Any]


def job(
    job_id: str, created_at: float, *statuses: tuple[float, str], work: str = WORK, **happened: float
) -> list[Entry]:
    """Return the journal of one job; `revoked` and `stop` are when that happened."""
    entries = [_entry("created", created_at, job_id, display_name=work, tags={})]
    entries += [_entry("status", at, job_id, status=status) for at, status in statuses]
    entries += [_entry(kind, at, job_id) for kind, at in happened.items()]
    return sorted(entries, key=lambda entry: float(entry["at"]))


def _entry(kind: str, at: float, job_id: str, **detail: Any) -> Entry:
    return {"at": at, "kind": kind, "job_id": job_id, "detail": detail}


LOST_FIRST = job("a", 0, (1, "Running"), (9, "Failed"), revoked=8)
THEN_DONE = job("b", 9, (10, "Running"), (20, "Succeeded"))
WRONG_KINDS = ("duplicates", "lost", "unexpected", "not_green")


def verdict(journal: list[Entry], *, state: str = "success", told: str = "b", work: str = WORK) -> Judgement:
    task_id = {"pair": "pair.wait"}.get(work.split("-")[1], work.split("-")[1])
    xcoms = {("r1", task_id, 0): {"outcome": {"job_id": told, "verdict": "succeeded"}, "return_value": told}}
    return judge(journal, [TaskInstance("uuid", "r1", task_id, 0, state, 1, 10)], xcoms, [work])


def wrong(judgement: Judgement) -> set[str]:
    return {kind for kind in WRONG_KINDS if getattr(judgement, kind)}


def test_a_loss_and_its_successor_are_as_expected() -> None:
    judgement = verdict([*LOST_FIRST, *THEN_DONE])
    assert wrong(judgement) == set()
    assert (judgement.jobs_created, judgement.jobs_expected, judgement.losing_task_instances) == (2, 2, 1)


PLANTED = {
    "two live jobs": (
        [*job("a", 0, (9, "Succeeded")), *job("b", 5, (20, "Succeeded"))],
        {},
        {"duplicates", "unexpected"},
    ),
    "submitted while the old one stops": (
        [*job("a", 0, (1, "Running"), (4, "Stopping"), (9, "Stopped"), stop=4), *job("b", 5, (20, "Succeeded"))],
        {},
        {"duplicates", "unexpected"},
    ),
    "two at once, one lost": ([*LOST_FIRST, *job("b", 8.5, (20, "Succeeded"))], {}, {"duplicates"}),
    "one after the other for nothing": ([*job("a", 0, (4, "Succeeded")), *THEN_DONE], {}, {"unexpected"}),
    "work that nobody asked for": (
        [*LOST_FIRST, *THEN_DONE, *job("c", 0, (1, "Failed"), work="x-y-000")],
        {},
        {"unexpected"},
    ),
    "green, but the job failed": (job("b", 0, (4, "Failed")), {}, {"lost"}),
    "green, but the job was revoked": (LOST_FIRST, {"told": "a"}, {"lost"}),
    "green, but the job still runs": (job("b", 0, (1, "Running")), {}, {"lost"}),
    "green, but nothing was submitted": ([], {}, {"lost"}),
    "red, but the job succeeded": (job("b", 0, (4, "Succeeded")), {"state": "failed"}, {"lost", "not_green"}),
    "red, as the job is": (job("b", 0, (4, "Failed")), {"state": "failed"}, {"not_green"}),
    "tells of another job": ([*LOST_FIRST, *THEN_DONE], {"told": "a"}, {"lost"}),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_is_found(name: str) -> None:
    journal, how, expected = PLANTED[name]
    assert wrong(verdict(sorted(journal, key=lambda entry: float(entry["at"])), **how)) == expected


def test_tags_do_not_hide_a_duplicate_since_the_provider_writes_them() -> None:
    journal = [*job("a", 0, (9, "Succeeded")), *job("b", 5, (20, "Succeeded"))]
    for entry in journal:
        if entry["kind"] == "created":
            entry["detail"]["tags"] = {"airflow-ti": entry["job_id"]}
    assert "duplicates" in wrong(verdict(journal))


def test_a_job_may_end_at_its_time_limit_once_if_that_was_planned() -> None:
    def overdue(job_id: str, began: float) -> list[Entry]:
        return job(job_id, began, (began + 8, "Stopping"), (began + 18, "Stopped"), work=OVERDUE_WORK, stop=began + 8)

    done = job("b", 100, (110, "Succeeded"), work=OVERDUE_WORK)
    once = verdict([*overdue("a", 0), *done], work=OVERDUE_WORK)
    twice = verdict([*overdue("a", 0), *overdue("a2", 50), *done], work=OVERDUE_WORK)
    assert (wrong(once), once.jobs_expected, once.slow_stops) == (set(), 2, 1)
    assert wrong(twice) == {"unexpected"}


def test_both_tasks_of_a_pair_lose_capacity_with_their_job() -> None:
    assert verdict(job("a", 0, (9, "Failed"), work=PAIR_WORK, revoked=8), work=PAIR_WORK).losing_task_instances == 2


@pytest.mark.parametrize("status", ["Creating", "Bidding", "Queuing", "Running", "Stopping", "Whatever"])
def test_what_has_not_ended_is_an_orphan(status: str) -> None:
    journal = [*THEN_DONE, *job("c", 30, (31, status))]
    assert orphans(lives(journal).values()) == [f"{WORK}: c is {status}"]


def test_answers_to_create_job_that_leave_doubt_are_counted() -> None:
    faults = [
        _entry("fault", 0, "", operation=operation, fault=fault)
        for operation in ("CreateJob", "ListJobs")
        for fault in ("lost_answer", "drop", "server_error", "html_error", "throttle")
    ]
    assert verdict([*faults, *LOST_FIRST, *THEN_DONE]).ambiguous_answers == 4
