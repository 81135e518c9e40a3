"""A job whose machines are taken while it prepares did no work, and so tells nothing of progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.judging import judge
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import JobOutcome, Verdict
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.exceptions import SpotNoProgress

PREPARES = JobPlan(never_starts=True)
SILENT = JobPlan(run_seconds=600, revoke_after=300)
PRINTS = JobPlan(run_seconds=600, revoke_after=300, logs=('PAI_SPOT_PROGRESS {"step": 5}',) * 60)

Lose = Callable[..., Any]


@pytest.fixture
def lose(emulator: DlcEmulator) -> Lose:
    """Return a function that lets a job be lost, and what its task does about it."""

    def lose_one(jobs: Any, job_id: str) -> Any:
        emulator.control.advance(3600)
        if emulator.control.job(job_id)["Status"] == "EnvPreparing":
            emulator.control.revoke(job_id)
            emulator.control.advance(60)
        return jobs.conclude(judge(Job(jobs.hook.get_job(job_id)), spot=True))

    return lose_one


def test_losses_before_running_are_stepped_over_by_the_breaker(
    emulator: DlcEmulator, new_task: Any, lose: Lose
) -> None:
    for plan in (PRINTS, PREPARES, PREPARES, PREPARES, PRINTS, PRINTS):
        emulator.control.plan(plan)
    jobs = new_task("never-ran").begin(log_tail_lines=5)
    waiting = jobs.begin()
    for _ in range(5):
        waiting = lose(jobs, waiting.job_id)
    assert [one.progressed for one in jobs.ledger.attempts[:5]] == [True, None, None, None, False]
    with pytest.raises(SpotNoProgress, match="2 losses without any progress"):
        lose(jobs, waiting.job_id)


def test_a_loss_before_running_is_no_reason_to_warn_of_a_silent_command(
    emulator: DlcEmulator, new_task: Any, kept_log: Any, lose: Lose
) -> None:
    warned = []
    jobs = new_task("silent").begin()
    for plan in (PREPARES, SILENT, PREPARES, SILENT, SILENT):
        emulator.control.plan(plan)
    waiting = jobs.begin()
    for _ in range(4):
        waiting = lose(jobs, waiting.job_id)
        warned.append(sum("no progress can be seen" in line for line in kept_log.lines))
    assert warned == [0, 1, 1, 1]


RAN: dict[str, tuple[dict[str, Any], bool]] = {
    "never": ({}, False),
    "while it waited": ({"timeline": (("Queuing", "", ""), ("EnvPreparing", "", ""))}, False),
    "for less than a second": ({"timeline": (("Running", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),)}, True),
    "of whose history nothing is shown": ({"seconds_running": 60.0}, True),
    "whose command printed something": ({"progress": {"step": 1}}, True),
}


@pytest.mark.parametrize(("known", "has_run"), RAN.values(), ids=RAN)
def test_a_job_has_run_if_anything_says_so(known: dict[str, Any], has_run: bool) -> None:
    assert JobOutcome(job_id="dlc1", verdict=Verdict.REVOKED, status="Failed", **known).has_run is has_run
