"""Whole sweeps: the emulator and a tiny Airflow over HTTP, on a clock that moves when the sweeper waits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.identity import (
    ENV_DAG_ID,
    TAG_OWNER,
    TAG_TASK_INSTANCE,
    Owner,
)
from airflow_provider_pai_spot.emulator import DlcEmulator
from airflow_provider_pai_spot.sweep.candidates import Reason
from airflow_provider_pai_spot.sweep.report import Result, SweepReport

DAG, RUN = "nightly", "scheduled__2026-11-30T00:00:00+00:00"
HOUR = 3600.0
Make = Callable[..., Any]


def results(report: SweepReport) -> dict[str, tuple[Result, Reason]]:
    return {one.job.job_id: (one.result, one.decision.reason) for one in report.jobs}


def stopped_by_us(cloud: DlcEmulator) -> set[str]:
    return {job["JobId"] for job in cloud.control.jobs() if job["Status"] in ("Stopped", "Stopping")}


def ago(clock: Any, **span: float) -> str:
    return (clock.now() - timedelta(**span)).isoformat()


# --- orphans ------------------------------------------------------------------------------------------------


def test_a_job_whose_task_is_finished_is_stopped(cloud: DlcEmulator, sweeper: Make, orphan: str) -> None:
    report = sweeper().sweep(apply=True)
    assert results(report) == {orphan: (Result.STOPPED, Reason.OWNER_FINISHED)}
    assert cloud.control.job(orphan)["Status"] == "Stopped"
    assert not report.is_incomplete


def test_a_dry_run_says_what_would_be_stopped_and_stops_nothing(cloud: DlcEmulator, sweeper: Make, orphan: str) -> None:
    report = sweeper().sweep(apply=False)
    assert results(report) == {orphan: (Result.WOULD_STOP, Reason.OWNER_FINISHED)}
    assert cloud.control.job(orphan)["Status"] == "Running"
    assert "StopJob" not in cloud.control.requests()
    assert report.summary == "1 live job in namespace 'airflow-prod', 1 orphan. A dry run: nothing was stopped."


@pytest.mark.parametrize("state", ["success", "failed", "skipped", "upstream_failed", "removed"])
def test_each_finished_state_of_a_task_makes_an_orphan(airflow: Any, sweeper: Make, orphan: str, state: str) -> None:
    airflow.task(DAG, RUN, "train", state)
    assert results(sweeper().sweep(apply=False))[orphan] == (Result.WOULD_STOP, Reason.OWNER_FINISHED)


@pytest.mark.parametrize("owner", Owner)
def test_a_job_whose_run_was_deleted_is_stopped(
    airflow: Any, cloud: DlcEmulator, sweeper: Make, submit: Make, owner: Owner
) -> None:
    job_id = submit(owner=owner)
    airflow.task(DAG, RUN, "train", "deferred")
    cloud.control.advance(HOUR)
    airflow.delete_run(DAG, RUN)
    assert results(sweeper().sweep(apply=True)) == {job_id: (Result.STOPPED, Reason.OWNER_GONE)}


@pytest.mark.parametrize("state", ["success", "failed"])
def test_a_two_task_job_whose_run_is_finished_is_stopped(
    airflow: Any, cloud: DlcEmulator, sweeper: Make, submit: Make, state: str
) -> None:
    job_id = submit("submit", owner=Owner.RUN)
    cloud.control.advance(HOUR)
    airflow.run(DAG, RUN, state)
    assert results(sweeper().sweep(apply=True)) == {job_id: (Result.STOPPED, Reason.OWNER_FINISHED)}


def test_a_job_that_still_waits_for_capacity_is_stopped_as_well(
    airflow: Any, cloud: DlcEmulator, sweeper: Make, submit: Make
) -> None:
    cloud.control.set_stock("ecs.g7.xlarge", 0)
    job_id = submit()
    cloud.control.advance(HOUR)
    assert cloud.control.job(job_id)["Status"] == "Queuing"
    assert results(sweeper().sweep(apply=True)) == {job_id: (Result.STOPPED, Reason.OWNER_GONE)}


def test_a_job_that_another_identity_of_this_airflow_submitted_is_found(
    cloud: DlcEmulator, sweeper: Make, submit: Make
) -> None:
    job_id = submit(keys=cloud.control.add_identity())
    cloud.control.advance(HOUR)
    assert results(sweeper().sweep(apply=True)) == {job_id: (Result.STOPPED, Reason.OWNER_GONE)}


def test_a_job_that_nobody_has_wanted_for_a_year_is_found(cloud: DlcEmulator, sweeper: Make, submit: Make) -> None:
    job_id = submit()
    cloud.control.advance(400 * 24 * HOUR)
    assert results(sweeper().sweep(apply=True)) == {job_id: (Result.STOPPED, Reason.OWNER_GONE)}


def test_a_list_that_shows_no_settings_hides_no_orphan(cloud: DlcEmulator, sweeper: Make, orphan: str) -> None:
    cloud.control.switch("settings_in_list", False)
    assert results(sweeper().sweep(apply=True)) == {orphan: (Result.STOPPED, Reason.OWNER_FINISHED)}


# --- what is never touched ----------------------------------------------------------------------------------


def test_a_healthy_two_task_pipeline_is_left_alone(
    airflow: Any, cloud: DlcEmulator, sweeper: Make, submit: Make
) -> None:
    """As in dags_examples/02: `submit` succeeded long ago, and the sensor waits."""
    job_id = submit("submit", owner=Owner.RUN)
    airflow.task(DAG, RUN, "submit", "success", end_date="2026-01-01T00:00:00Z")
    airflow.task(DAG, RUN, "wait", "up_for_reschedule")
    cloud.control.advance(24 * HOUR)
    assert results(sweeper().sweep(apply=True)) == {job_id: (Result.LEFT, Reason.OWNER_ALIVE)}
    assert stopped_by_us(cloud) == set()


@pytest.mark.parametrize("state", [None, "scheduled", "queued", "running", "restarting", "deferred", "up_for_retry"])
def test_a_job_whose_task_is_under_way_is_left_alone(  # noqa: PLR0917 - fixtures
    airflow: Any, cloud: DlcEmulator, clock: Any, sweeper: Make, submit: Make, state: str | None
) -> None:
    job_id = submit()
    airflow.task(DAG, RUN, "train", state)
    cloud.control.advance(24 * HOUR)
    assert results(sweeper().sweep(apply=True)) == {job_id: (Result.LEFT, Reason.OWNER_ALIVE)}
    assert clock.slept == [], "nobody waits a minute for a second look at nothing"


def _without_tags(body: dict[str, Any]) -> None:
    del body["Settings"]["Tags"]


def _with_a_tag_of_their_own(body: dict[str, Any]) -> None:
    body["Settings"]["Tags"] = {"team": "airflow"}


@pytest.mark.parametrize("foreign_key", [False, True], ids=["same access key", "another access key"])
@pytest.mark.parametrize(
    "theirs",
    [{"change": _without_tags}, {"change": _with_a_tag_of_their_own}, {"namespace": "airflow-staging"}],
    ids=["no tags", "other tags", "another namespace"],
)
def test_other_people_s_jobs_are_not_even_looked_at(  # noqa: PLR0917 - fixtures
    cloud: DlcEmulator, sweeper: Make, submit: Make, orphan: str, theirs: dict[str, Any], foreign_key: bool
) -> None:
    keys = cloud.control.add_identity() if foreign_key else None
    job_id = submit("not_in_airflow", keys=keys, **theirs)
    cloud.control.advance(HOUR)
    report = sweeper().sweep(apply=True)
    assert job_id not in results(report)
    assert stopped_by_us(cloud) == {orphan}


def _of_another_dag(body: dict[str, Any]) -> None:
    body["Envs"][ENV_DAG_ID] = "somebody_elses"


def _without_variables(body: dict[str, Any]) -> None:
    body["Envs"] = {}


def _with_another_owner(body: dict[str, Any]) -> None:
    body["Settings"]["Tags"][TAG_OWNER] = "me"


def _with_another_key(body: dict[str, Any]) -> None:
    body["Settings"]["Tags"][TAG_TASK_INSTANCE] = "0" * 32


@pytest.mark.parametrize(
    "change",
    [_of_another_dag, _without_variables, _with_another_owner, _with_another_key],
    ids=lambda one: one.__name__,
)
def test_a_job_whose_tags_and_variables_contradict_each_other_is_left_and_told(
    cloud: DlcEmulator, sweeper: Make, submit: Make, change: Callable[[dict[str, Any]], None]
) -> None:
    job_id = submit(change=change)
    cloud.control.advance(HOUR)
    assert results(sweeper().sweep(apply=True)) == {job_id: (Result.LEFT, Reason.NOT_AS_WE_MAKE_THEM)}
    assert stopped_by_us(cloud) == set()


@pytest.mark.parametrize("status", ["Stopping", "SucceededReserving", "FailedReserving", "Hibernating"])
def test_a_job_in_another_status_than_a_live_one_is_not_ours_to_stop(
    cloud: DlcEmulator, sweeper: Make, orphan: str, status: str
) -> None:
    cloud.control.set_status(orphan, status)
    assert results(sweeper().sweep(apply=True)) == {}
    assert "StopJob" not in cloud.control.requests()


def test_an_airflow_that_does_not_answer_is_no_reason_to_stop(
    airflow: Any, cloud: DlcEmulator, sweeper: Make, orphan: str
) -> None:
    airflow.broken["/api/"] = (503, {"detail": "busy"})
    report = sweeper().sweep(apply=True)
    assert results(report) == {orphan: (Result.LEFT, Reason.OWNER_UNKNOWN)}
    assert report.is_incomplete
    assert stopped_by_us(cloud) == set()


def test_an_owner_that_is_missing_in_the_answer_is_no_reason_to_stop(sweeper: Make, orphan: str) -> None:
    report = sweeper(owner_states=lambda _owners: {}).sweep(apply=True)
    assert results(report) == {orphan: (Result.LEFT, Reason.OWNER_UNKNOWN)}


# --- grace and two looks ------------------------------------------------------------------------------------


def test_a_job_in_its_first_ten_minutes_is_left_alone(
    cloud: DlcEmulator, clock: Any, sweeper: Make, submit: Make
) -> None:
    job_id = submit()
    cloud.control.advance(9 * 60)
    assert results(sweeper().sweep(apply=True)) == {job_id: (Result.LEFT, Reason.JUST_CREATED)}
    assert clock.slept == []


def test_a_job_whose_owner_ended_less_than_ten_minutes_ago_is_left_alone(
    airflow: Any, clock: Any, sweeper: Make, orphan: str
) -> None:
    airflow.task(DAG, RUN, "train", "failed", end_date=ago(clock, minutes=8.5))
    assert results(sweeper().sweep(apply=True)) == {orphan: (Result.LEFT, Reason.JUST_ENDED)}


def test_there_is_a_minute_between_two_looks(clock: Any, sweeper: Make, orphan: str) -> None:
    sweeper().sweep(apply=False)
    assert clock.slept == [60.0]


def test_a_task_that_is_cleared_between_the_looks_keeps_its_job(
    airflow: Any, cloud: DlcEmulator, clock: Any, sweeper: Make, orphan: str
) -> None:
    clock.meanwhile.append(lambda: airflow.task(DAG, RUN, "train", None))
    assert results(sweeper().sweep(apply=True)) == {orphan: (Result.LEFT, Reason.OWNER_ALIVE)}
    assert stopped_by_us(cloud) == set()


def test_a_job_that_ends_between_the_looks_is_not_reported(
    cloud: DlcEmulator, clock: Any, sweeper: Make, orphan: str
) -> None:
    clock.meanwhile.append(lambda: cloud.control.set_status(orphan, "Succeeded"))
    assert results(sweeper().sweep(apply=True)) == {}


def test_a_job_that_only_the_second_look_sees_waits_for_the_next_sweep(
    cloud: DlcEmulator, clock: Any, sweeper: Make, submit: Make, orphan: str
) -> None:
    cloud.control.switch("list_lag_seconds", HOUR)
    late = submit("late")
    cloud.control.advance(HOUR - 30)
    report = sweeper().sweep(apply=True)
    assert results(report) == {
        orphan: (Result.STOPPED, Reason.OWNER_FINISHED),
        late: (Result.LEFT, Reason.SEEN_ONCE),
    }


# --- several jobs of one task instance ----------------------------------------------------------------------


@pytest.fixture
def two_attempts(airflow: Any, cloud: DlcEmulator, submit: Make) -> tuple[str, str]:
    """Two live jobs of a task instance that is under way."""
    older = submit(attempt=0)
    cloud.control.advance(HOUR)
    newer = submit(attempt=1)
    cloud.control.advance(HOUR)
    airflow.task(DAG, RUN, "train", "deferred")
    return older, newer


def test_a_job_of_an_earlier_attempt_is_stopped_if_airflow_waits_for_a_later_one(
    airflow: Any, cloud: DlcEmulator, sweeper: Make, two_attempts: tuple[str, str]
) -> None:
    older, newer = two_attempts
    airflow.xcoms[DAG, RUN, "train", -1] = newer
    assert results(sweeper().sweep(apply=True)) == {
        older: (Result.STOPPED, Reason.SUPERSEDED),
        newer: (Result.LEFT, Reason.OWNER_ALIVE),
    }
    assert stopped_by_us(cloud) == {older}


def test_so_it_is_if_the_later_one_is_over_already(
    airflow: Any, cloud: DlcEmulator, sweeper: Make, two_attempts: tuple[str, str]
) -> None:
    older, newer = two_attempts
    airflow.xcoms[DAG, RUN, "train", -1] = newer
    cloud.control.set_status(newer, "Failed")
    assert results(sweeper().sweep(apply=True)) == {older: (Result.STOPPED, Reason.SUPERSEDED)}


@pytest.mark.parametrize("held", ["", "dlcnobodyknows"], ids=["Airflow names none", "Airflow names another"])
def test_two_attempts_are_both_left_if_airflow_does_not_say_which_it_waits_for(
    airflow: Any, cloud: DlcEmulator, sweeper: Make, two_attempts: tuple[str, str], held: str
) -> None:
    older, newer = two_attempts
    airflow.xcoms[DAG, RUN, "train", -1] = held
    assert results(sweeper().sweep(apply=True)) == {
        older: (Result.LEFT, Reason.RIVALS_UNCLEAR),
        newer: (Result.LEFT, Reason.OWNER_ALIVE),
    }
    assert stopped_by_us(cloud) == set()


@pytest.mark.parametrize("held", [0, 1], ids=["the older is held", "the younger is held"])
def test_of_two_jobs_of_one_attempt_the_one_that_airflow_does_not_wait_for_is_stopped(
    airflow: Any, cloud: DlcEmulator, sweeper: Make, submit: Make, held: int
) -> None:
    twins = [submit(), submit()]
    cloud.control.advance(HOUR)
    airflow.task(DAG, RUN, "train", "deferred")
    airflow.xcoms[DAG, RUN, "train", -1] = twins[held]
    assert results(sweeper().sweep(apply=True)) == {
        twins[held]: (Result.LEFT, Reason.OWNER_ALIVE),
        twins[1 - held]: (Result.STOPPED, Reason.TWIN),
    }


def test_a_lost_attempt_before_the_present_one_is_nothing_unusual(
    airflow: Any, cloud: DlcEmulator, sweeper: Make, two_attempts: tuple[str, str]
) -> None:
    older, newer = two_attempts
    cloud.control.set_status(older, "Failed")
    assert results(sweeper().sweep(apply=True)) == {newer: (Result.LEFT, Reason.OWNER_ALIVE)}
    assert not [request for request in airflow.requests if "xcom" in request]


def test_mapped_siblings_are_no_rivals(airflow: Any, cloud: DlcEmulator, sweeper: Make, submit: Make) -> None:
    jobs = [submit(map_index=index) for index in range(5)]
    for index, state in enumerate(["deferred", "failed", "deferred", "deferred", None]):
        airflow.task(DAG, RUN, "train", state, map_index=index)
    cloud.control.advance(HOUR)
    sweeper().sweep(apply=True)
    assert stopped_by_us(cloud) == {jobs[1]}
