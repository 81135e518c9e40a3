"""How a sweep stops orphans, and what it tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_pai_spot.emulator import DlcEmulator
from airflow_provider_pai_spot.sweep.candidates import Reason
from airflow_provider_pai_spot.sweep.report import Result, SweepReport
from airflow_provider_pai_spot.sweep.sweeper import SweepRefused

DAG, RUN = "nightly", "scheduled__2026-11-30T00:00:00+00:00"
HOUR = 3600.0
Make = Callable[..., Any]


def results(report: SweepReport) -> dict[str, tuple[Result, Reason]]:
    return {one.job.job_id: (one.result, one.decision.reason) for one in report.jobs}


def stopped_by_us(cloud: DlcEmulator) -> set[str]:
    return {job["JobId"] for job in cloud.control.jobs() if job["Status"] in ("Stopped", "Stopping")}


# --- stopping -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("namespace", ["localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080"])
def test_nothing_is_stopped_in_a_namespace_that_many_call_theirs(
    cloud: DlcEmulator, sweeper: Make, namespace: str
) -> None:
    with pytest.raises(SweepRefused, match="nothing is stopped"):
        sweeper(namespace=namespace).sweep(apply=True)
    assert cloud.control.requests() == {}
    assert sweeper(namespace=namespace).sweep(apply=False).jobs == []


def test_a_stop_that_dlc_refuses_is_told_and_the_others_go_on(
    airflow: Any, cloud: DlcEmulator, sweeper: Make, submit: Make
) -> None:
    jobs = [submit("one"), submit("two")]
    cloud.control.advance(HOUR)
    cloud.control.fault("StopJob", "server_error", status=403, code="Forbidden")
    report = sweeper().sweep(apply=True)
    assert [result for result, _ in results(report).values()].count(Result.NOT_STOPPED) == 1
    assert len(stopped_by_us(cloud) & set(jobs)) == 1
    assert report.is_incomplete
    assert "1 stopped, 1 could not be stopped" in report.summary


def test_a_stop_that_takes_its_time_is_told_as_under_way(cloud: DlcEmulator, sweeper: Make, orphan: str) -> None:
    cloud.control.fault("StopJob", "slow_stop", seconds=600)
    report = sweeper().sweep(apply=True)
    assert results(report) == {orphan: (Result.STOPPING, Reason.OWNER_FINISHED)}
    assert not report.is_incomplete


def test_a_job_that_is_over_before_the_stop_arrives_is_no_error(
    cloud: DlcEmulator, hook_of: Make, sweeper: Make, orphan: str
) -> None:
    hook = hook_of()

    class Late:
        """Every call reaches the hook; the job ends right before the stop does."""

        def __getattr__(self, name: str) -> Any:
            return getattr(hook, name)

        def stop_job(self, job_id: str) -> bool:
            cloud.control.set_status(job_id, "Succeeded")
            return bool(hook.stop_job(job_id))

    report = sweeper(hook=Late()).sweep(apply=True)
    assert results(report) == {orphan: (Result.ENDED, Reason.OWNER_FINISHED)}


# --- what is told -------------------------------------------------------------------------------------------


def test_a_line_says_whose_it_is_how_old_what_it_costs_and_why(cloud: DlcEmulator, sweeper: Make, orphan: str) -> None:
    cloud.control.set_price("ecs.g7.xlarge", 0.3)
    (one,) = sweeper().sweep(apply=False).jobs
    line = str(one)
    assert line.startswith(f"{orphan} Running, {DAG} / {RUN} / train, 1 h 1 min old, ")
    assert "1 x ecs.g7.xlarge at 0.4 of list price at most, now at 0.3: an orphan, would be stopped: " in line
    assert "its task instance is over: failed" in line


def test_without_present_prices_the_bid_alone_is_told(cloud: DlcEmulator, sweeper: Make, orphan: str) -> None:
    cloud.control.fault("ListEcsSpecs", "server_error", status=403, code="Forbidden")
    (one,) = sweeper().sweep(apply=False).jobs
    assert "at 0.4 of list price at most: " in str(one)


def test_a_price_bid_is_told_in_cny_an_hour(airflow: Any, cloud: DlcEmulator, sweeper: Make, submit: Make) -> None:
    submit(spot_price_limit=0.011, map_index=2)
    cloud.control.advance(HOUR)
    (one,) = sweeper().sweep(apply=False).jobs
    assert "/ train / 2, " in str(one)
    assert "0.66 CNY an hour at most" in str(one)


def test_the_report_holds_no_variable_but_airflow_s_own(
    cloud: DlcEmulator, sweeper: Make, submit: Make, caplog: pytest.LogCaptureFixture
) -> None:
    submit(envs={"API_TOKEN": "planted-token-value"})
    cloud.control.advance(HOUR)
    with caplog.at_level("DEBUG"):
        report = sweeper().sweep(apply=True)
    said = f"{report.to_dict()} {report.summary} {[str(one) for one in report.jobs]} {caplog.text}"
    assert "planted-token-value" not in said


def test_the_cost_of_a_sweep_does_not_grow_with_the_jobs_of_the_past(
    airflow: Any, cloud: DlcEmulator, sweeper: Make, submit: Make
) -> None:
    for _ in range(3):
        cloud.control.set_status(submit(), "Succeeded")
    cloud.control.advance(HOUR)
    before = cloud.control.requests()["CreateJob"]
    sweeper().sweep(apply=False)
    assert cloud.control.requests() == {"CreateJob": before, "ListJobs": 7}
