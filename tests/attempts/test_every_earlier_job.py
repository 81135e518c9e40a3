"""The table of what a try does with an earlier job, walked on real jobs, with and without what was stored of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.ledger import AttemptLedger, MemoryStore
from airflow_provider_pai_spot.attempts.task_jobs import Ended, TaskJobs, Waiting
from airflow_provider_pai_spot.dlc.outcome import StopReason
from airflow_provider_pai_spot.emulator import DlcEmulator

TAKEN_OVER, REPLACED, ITS_END, ANEW = "taken over", "stopped, then anew", "its end", "anew"
RETRIED, CLEARED, EDITED = "retried", "cleared", "cleared and edited"

# what the earlier job is, whether an earlier try acted on its end -> what becomes of it: (retried, cleared, edited)
TABLE: dict[tuple[str, bool], tuple[str, str, str]] = {
    ("live", False): (TAKEN_OVER, TAKEN_OVER, REPLACED),
    ("being stopped by us", False): (ITS_END, ANEW, ANEW),
    ("stopped by us", False): (ITS_END, ANEW, ANEW),
    ("stopped by us", True): (ANEW, ANEW, ANEW),
    ("succeeded", False): (ITS_END, ITS_END, ANEW),
    ("succeeded", True): (ITS_END, ANEW, ANEW),
    ("failed", False): (ITS_END, ANEW, ANEW),
    ("failed", True): (ANEW, ANEW, ANEW),
    ("revoked", False): (ITS_END, ANEW, ANEW),
    ("revoked", True): (ANEW, ANEW, ANEW),
    ("stopped by hand", False): (ITS_END, ANEW, ANEW),
    ("stopped by hand", True): (ANEW, ANEW, ANEW),
}
KEPT = [(*row, turn, TABLE[row][column]) for row in TABLE for column, turn in enumerate((RETRIED, CLEARED, EDITED))]
LOST = [(state, turn, end) for state, consumed, turn, end in KEPT if not consumed]
"""DLC's tags tell all but whether somebody acted on the end."""


def _ours(jobs: TaskJobs, job_id: str) -> None:
    jobs.ledger.change(0, stop_reason=StopReason.RUN_TIMEOUT.value)
    jobs.hook.stop_job(job_id)


def _slowly(jobs: TaskJobs, job_id: str, emulator: DlcEmulator) -> None:
    emulator.control.fault("StopJob", "slow_stop", seconds=60)
    _ours(jobs, job_id)


BECOMES: dict[str, Callable[[TaskJobs, str, DlcEmulator], object]] = {
    "live": lambda *_: None,
    "being stopped by us": _slowly,
    "stopped by us": lambda jobs, job_id, _: _ours(jobs, job_id),
    "succeeded": lambda _, job_id, emulator: emulator.control.set_status(job_id, "Succeeded"),
    "failed": lambda _, job_id, emulator: emulator.control.set_status(job_id, "Failed"),
    "revoked": lambda _, job_id, emulator: emulator.control.revoke(job_id),
    "stopped by hand": lambda jobs, job_id, _: jobs.hook.stop_job(job_id),
}


def earlier_job(task: Any, emulator: DlcEmulator, state: str) -> str:
    """Submit in the first try, and bring the job into its state."""
    jobs = task.begin()
    begun = jobs.begin()
    assert isinstance(begun, Waiting)
    emulator.control.advance(60)
    BECOMES[state](jobs, begun.job_id, emulator)
    if state != "being stopped by us":
        emulator.control.advance(20)
    return begun.job_id


def second_try(task: Any, turn: str) -> Waiting | Ended:
    if turn == EDITED:
        task.edit(user_command="python train.py --lr 0.1")
    began: Waiting | Ended = task.begin(2, generation=3 if turn == RETRIED else 4).begin()
    return began


def what_became(task: Any, earlier: str, step: Waiting | Ended) -> str:
    task.clock.sleep(120)
    jobs = {job["JobId"]: job["Status"] for job in task.jobs()}
    if isinstance(step, Ended):
        assert (step.outcome.job_id, list(jobs)) == (earlier, [earlier])
        return ITS_END
    assert [job["JobId"] for job in task.live()] == [step.job_id]
    if step.job_id == earlier:
        assert list(jobs) == [earlier]
        return TAKEN_OVER
    return REPLACED if any("the task now asks for another job" in line for line in task.log.lines) else ANEW


@pytest.mark.parametrize(("state", "consumed", "turn", "end"), KEPT, ids=str)
def test_each_cell(emulator: DlcEmulator, new_task: Any, state: str, consumed: bool, turn: str, end: str) -> None:  # noqa: PLR0917 - a row of the table
    task = new_task(run_id=f"kept {state} {consumed} {turn}")
    earlier = earlier_job(task, emulator, state)
    AttemptLedger(task.store).change(0, consumed=consumed)
    assert what_became(task, earlier, second_try(task, turn)) == end


@pytest.mark.parametrize(("state", "turn", "end"), LOST, ids=str)
def test_each_cell_by_dlc_s_tags_alone(emulator: DlcEmulator, new_task: Any, state: str, turn: str, end: str) -> None:
    task = new_task(run_id=f"lost {state} {turn}")
    earlier = earlier_job(task, emulator, state)
    task.store = MemoryStore()
    assert what_became(task, earlier, second_try(task, turn)) == end


def test_a_stop_of_ours_is_told_with_its_reason(emulator: DlcEmulator, new_task: Any) -> None:
    task = new_task(run_id="reason")
    earlier_job(task, emulator, "being stopped by us")
    step = second_try(task, RETRIED)
    assert isinstance(step, Ended)
    assert step.outcome.stop_reason is StopReason.RUN_TIMEOUT
