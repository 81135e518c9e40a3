"""The last lines in a task log are the last that were written, and pods that are left out are named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from seams import KeptLog

from airflow_provider_pai_spot.attempts.judging import judge
from airflow_provider_pai_spot.attempts.log_ends import read_end
from airflow_provider_pai_spot.attempts.pod_logs import PodTail, read_tails
from airflow_provider_pai_spot.attempts.report import Report
from airflow_provider_pai_spot.attempts.task_jobs import Waiting
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import JobOutcome, Verdict
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.exceptions import PaiDlcUnavailable, SpotCapacityRevoked
from airflow_provider_pai_spot.recovery import SpotRecovery

RUN = (("Running", "2026-11-30T12:00:00Z", "2026-11-30T13:00:00Z"),)


@pytest.fixture
def lost(emulator: DlcEmulator, new_task: Callable[..., Any]) -> Any:
    """Return a function that lets a job of so many lines lose its capacity, and its task jobs and outcome."""

    def lose(lines: int, window: str = "tail") -> tuple[Any, JobOutcome]:
        emulator.control.switch("log_window", window)
        logs = tuple(f"line {n}" for n in range(lines))
        emulator.control.plan(JobPlan(run_seconds=3600, logs=logs, revoke_after=3599.9))
        jobs = new_task(f"run-{window}-{lines}").begin(recovery=SpotRecovery(max_revocations=0))
        begun = jobs.begin()
        assert isinstance(begun, Waiting)
        emulator.control.advance(7200)
        return jobs, judge(Job(jobs.hook.get_job(begun.job_id)), spot=True)

    yield lose
    emulator.control.switch("log_window", "tail")


@pytest.mark.parametrize("window", ["head", "tail"])
@pytest.mark.parametrize("lines", [30, 2_000, 2_001, 9_000])
def test_the_last_lines_are_the_last_whichever_dlc_gives(lost: Any, window: str, lines: int) -> None:
    jobs, outcome = lost(lines, window)
    [tail], _ = read_tails(jobs.hook, outcome, 50)
    kept = [f"line {n}" for n in range(lines)][-50:]
    assert [line.split("  ", 1)[1] for line in tail.lines] == kept
    assert (tail.is_whole, tail.goes_on) == (lines < 2_000, False)


def test_a_loss_that_ends_the_task_shows_the_last_lines_too(lost: Any, kept_log: KeptLog) -> None:
    jobs, outcome = lost(30)
    with pytest.raises(SpotCapacityRevoked):
        jobs.conclude(outcome)
    [shown] = [line for line in kept_log.lines if "last 30 lines of" in line]
    assert shown.endswith("line 29")


def test_pods_that_are_left_out_are_named(kept_log: KeptLog) -> None:
    pods = tuple({"pod_id": f"dlc1-worker-{n}", "type": "worker", "status": "Failed"} for n in range(6))
    outcome = JobOutcome(job_id="dlc1", verdict=Verdict.FAILED, status="Failed", pods=pods)
    tails = [PodTail(f"dlc1-worker-{n}", ("a",)) for n in range(4)]
    report = Report(push=lambda *_: None, log=kept_log, console_url=str, console_key="c")
    report.tails(outcome, tails)
    assert kept_log.lines[-1] == "WARNING the logs of 2 more pods are not shown here: worker-4, worker-5"
    report.tails(outcome, [*tails, PodTail("dlc1-worker-4", ("a",)), PodTail("dlc1-worker-5", ("a",))])
    assert "not shown" not in kept_log.lines[-1]


@pytest.mark.parametrize("crowded", [True, False], ids=["all in one second", "no answer any more"])
def test_lines_that_cannot_be_had_are_said_to_be_missing(crowded: bool, kept_log: KeptLog) -> None:
    class Hook:
        asked = 0

        def get_pod_logs(self, *_ids: str, **query: Any) -> list[str]:
            self.asked += 1
            if "start_time" in query and not crowded:
                raise PaiDlcUnavailable("down")
            return [f"2026-11-30 12:30:00  {self.asked} {n}" for n in range(2_000)]

    outcome = JobOutcome(job_id="dlc1", verdict=Verdict.FAILED, status="Failed", timeline=RUN)
    hook = Hook()
    end = read_end(hook, outcome, "dlc1-worker-0", 50)
    assert (end.goes_on, end.is_whole) == (True, False)
    assert hook.asked <= 21
    report = Report(push=lambda *_: None, log=kept_log, console_url=str, console_key="c")
    report.tails(outcome, [PodTail("dlc1-worker-0", tuple(end.lines[-50:]), goes_on=True)])
    assert "of dlc1-worker-0 (more may follow that could not be read):" in kept_log.lines[0]
