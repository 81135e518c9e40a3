"""A job may exist although nobody said so, and may show long after: what is not seen yet is not taken for a no."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.ledger import AttemptLedger
from airflow_provider_pai_spot.attempts.task_jobs import Waiting
from airflow_provider_pai_spot.emulator import DlcEmulator
from airflow_provider_pai_spot.exceptions import PaiDlcUnavailable, SpotSubmissionRefused

PATIENCE = 120.0
"""The seconds that a task of these tests looks for a job."""
BEYOND = 200.0


def sent(emulator: DlcEmulator) -> int:
    return int(emulator.control.requests().get("CreateJob", 0))


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("InvalidParameter", SpotSubmissionRefused),
        ("Forbidden.RAM", SpotSubmissionRefused),
        ("ResourceAllocateFailed", PaiDlcUnavailable),
    ],
)
def test_a_no_after_a_lost_answer_leaves_the_intent_and_the_next_try_finds_the_job(
    emulator: DlcEmulator, new_task: Any, code: str, error: type[Exception]
) -> None:
    emulator.control.switch("list_lag_seconds", BEYOND)
    emulator.control.fault("CreateJob", "lost_answer")
    emulator.control.fault("CreateJob", "server_error", status=400, code=code)
    task, before = new_task(run_id=f"refused-later-{code}"), sent(emulator)
    with pytest.raises(error) as refused:
        task.begin().begin()
    assert refused.value.ambiguous
    newest = AttemptLedger(task.store).newest
    assert newest is not None
    assert (newest.number, newest.job_id) == (0, None)
    [job] = task.jobs()
    assert task.begin(2, generation=4).begin() == Waiting(job["JobId"])
    assert sent(emulator) == before + 2


def test_a_job_that_shows_by_the_time_of_the_no_is_taken(emulator: DlcEmulator, new_task: Any) -> None:
    emulator.control.switch("list_lag_seconds", PATIENCE + 0.5)
    emulator.control.fault("CreateJob", "lost_answer")
    emulator.control.fault("CreateJob", "server_error", status=400, code="InvalidParameter")
    task = new_task(run_id="shows-in-time")
    begun = task.begin().begin()
    [job] = task.jobs()
    assert begun == Waiting(job["JobId"])


def test_a_no_without_a_doubt_is_just_a_no(emulator: DlcEmulator, new_task: Any) -> None:
    emulator.control.fault("CreateJob", "server_error", status=400, code="InvalidParameter")
    task = new_task(run_id="plain-no")
    with pytest.raises(SpotSubmissionRefused) as refused:
        task.begin().begin()
    assert not refused.value.ambiguous
    assert AttemptLedger(task.store).is_blank


@pytest.mark.parametrize("lag", [PATIENCE + 0.5, BEYOND], ids=str)
def test_of_two_jobs_the_list_shows_late_the_older_one_stays_and_the_younger_is_stopped(
    emulator: DlcEmulator, new_task: Any, lag: float
) -> None:
    """The first answer is lost and its job shows only after another one was sent."""
    emulator.control.switch("list_lag_seconds", lag)
    emulator.control.fault("CreateJob", "lost_answer")
    task = new_task(run_id=f"twins-{lag}")
    begun = task.begin().begin()
    older, _younger = task.jobs()
    assert begun == Waiting(older["JobId"])
    emulator.control.advance(60)
    assert [job["JobId"] for job in task.live()] == [older["JobId"]]
    newest = AttemptLedger(task.store).newest
    assert newest is not None
    assert newest.job_id == older["JobId"]
