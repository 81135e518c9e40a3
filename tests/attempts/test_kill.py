"""A worker is told to end: the job is stopped if Airflow gave the task up, and only then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.identity import TAG_ATTEMPT, TAG_LEDGER, TAG_TASK_INSTANCE, TaskIdentity
from airflow_provider_pai_spot.attempts.kill import KillSwitch
from airflow_provider_pai_spot.attempts.stopping import STOP_SEEN_WITHIN, stop_and_see
from airflow_provider_pai_spot.exceptions import PaiDlcUnavailable, SpotJobStopped

TASK = TaskIdentity(namespace="test", dag_id="nightly", run_id="run", task_id="train")
JOB = "dlc1"


class Dlc:
    """
    A job that shows one status after the other, once for each StopJob; an exception is StopJob's answer.

    :param lists: what ListJobs answers, one after the other: whether the job is listed, or an exception.
    """

    def __init__(self, *after_stops: str | Exception, lists: Sequence[bool | Exception] = ()) -> None:
        self._after_stops: Iterator[str | Exception] = iter(after_stops)
        self._lists = iter(lists)
        self._status = "Running"
        self.tags = {TAG_TASK_INSTANCE: TASK.key, TAG_ATTEMPT: "1", TAG_LEDGER: "l"}
        self.stops = 0
        self.workspaces: list[str | None] = []

    def list_jobs(self, *, workspace_id: str | None = None, **_query: Any) -> list[dict[str, Any]]:
        self.workspaces.append(workspace_id)
        answer = next(self._lists, False)
        if isinstance(answer, Exception):
            raise answer
        return [self.get_job(JOB)] if answer else []

    def stop_job(self, _job_id: str) -> bool:
        self.stops += 1
        answer = next(self._after_stops, self._status)
        if isinstance(answer, Exception):
            raise answer
        self._status = answer
        return True

    def get_job(self, job_id: str) -> dict[str, Any]:
        return {"JobId": job_id, "Status": self._status, "Settings": {"Tags": self.tags}}


@pytest.fixture
def switch(clock: Any, kept_log: Any) -> Any:
    """Make a switch over a job, with what Airflow answers."""

    def make(dlc: Dlc, over: bool | Exception, *, cancel_on_kill: bool = True) -> KillSwitch:
        def is_over(_identity: TaskIdentity) -> bool:
            if isinstance(over, Exception):
                raise over
            return over

        hook: Any = dlc
        return KillSwitch(
            hook=hook, identity=TASK, cancel_on_kill=cancel_on_kill, log=kept_log, is_over=is_over, clock=clock
        )

    return make


@pytest.mark.parametrize(
    ("over", "cancel_on_kill", "stops"),
    [(True, True, 1), (False, True, 0), (RuntimeError("no answer"), True, 0), (True, False, 0)],
    ids=["the task is over", "it was cleared, or the worker goes away", "Airflow is silent", "cancel_on_kill=False"],
)
def test_the_job_is_stopped_only_if_airflow_gave_the_task_up(
    switch: Any, over: bool | Exception, cancel_on_kill: bool, stops: int
) -> None:
    dlc = Dlc("Stopping")
    kill = switch(dlc, over, cancel_on_kill=cancel_on_kill)
    kill.check(JOB)
    kill.pull()
    assert dlc.stops == stops


def test_a_job_that_comes_to_be_after_the_request_is_stopped_at_the_next_point(switch: Any) -> None:
    dlc = Dlc("Stopping")
    kill = switch(dlc, over=True)
    kill.pull()
    assert dlc.stops == 0
    with pytest.raises(SpotJobStopped, match=f"ended in Airflow while {JOB} was under way"):
        kill.check(JOB)
    assert dlc.stops == 1


def test_after_the_request_no_job_is_created_for_a_task_that_is_over(switch: Any) -> None:
    kill = switch(Dlc(), over=True)
    kill.pull()
    with pytest.raises(SpotJobStopped, match="no job"):
        kill.check()


@pytest.mark.parametrize(
    ("lists", "stops"),
    [
        ([True], 1),
        ([False, False, True], 1),
        ([PaiDlcUnavailable("503"), True], 1),
        ([], 0),
    ],
    ids=["listed at once", "listed later", "DLC is silent at first", "never listed: the sweep's"],
)
def test_a_job_whose_createjob_is_unanswered_is_found_by_its_tags(switch: Any, lists: Any, stops: int) -> None:
    dlc = Dlc("Stopping", lists=lists)
    kill = switch(dlc, over=True)
    kill.before_create({**dlc.tags, "mine": "too"})
    kill.pull()
    assert dlc.stops == stops


def test_a_job_is_looked_for_in_the_workspace_that_it_is_created_in(switch: Any) -> None:
    dlc = Dlc("Stopping", lists=[True])
    kill = switch(dlc, over=True)
    kill.before_create(dlc.tags, "2")
    kill.pull()
    assert dlc.workspaces == ["2"]


def test_while_a_job_is_created_that_of_another_attempt_is_not_touched(switch: Any) -> None:
    dlc = Dlc("Stopping", lists=[True] * 20)
    kill = switch(dlc, over=True)
    kill.before_create({**dlc.tags, TAG_ATTEMPT: "2"})
    kill.pull()
    assert dlc.stops == 0


def test_once_its_answer_is_there_nobody_has_to_look_for_the_job(switch: Any) -> None:
    dlc = Dlc("Stopping", lists=[AssertionError("was asked")])
    kill = switch(dlc, over=True)
    kill.before_create(dlc.tags)
    kill.check(JOB)
    kill.pull()
    assert dlc.stops == 1


def test_a_worker_that_only_goes_away_goes_on_until_it_is_gone(switch: Any) -> None:
    dlc = Dlc()
    kill = switch(dlc, over=False)
    kill.pull()
    kill.check(JOB)
    assert dlc.stops == 0


def test_without_a_request_airflow_is_not_asked(switch: Any) -> None:
    switch(Dlc(), over=AssertionError("was asked")).check(JOB)


@pytest.mark.parametrize(
    ("after_stops", "stops"),
    [
        (("Stopping",), 1),
        (("Stopped",), 1),
        (("Succeeded",), 1),
        (("Creating", "Queuing", "Stopping"), 3),
        ((PaiDlcUnavailable("503"), "Stopped"), 2),
    ],
    ids=["on its way", "over", "was faster", "accepted early without effect", "no answer at first"],
)
def test_a_stop_is_repeated_until_it_shows(clock: Any, kept_log: Any, after_stops: Any, stops: int) -> None:
    dlc: Any = Dlc(*after_stops)
    assert stop_and_see(dlc, JOB, clock=clock, log=kept_log)
    assert dlc.stops == stops


def test_a_stop_that_never_shows_is_told_with_the_way_out(clock: Any, kept_log: Any) -> None:
    dlc: Any = Dlc()
    began = clock.now()
    assert not stop_and_see(dlc, JOB, clock=clock, log=kept_log)
    assert (clock.now() - began).total_seconds() == STOP_SEEN_WITHIN
    assert kept_log.lines[-1] == f"ERROR {JOB} is still Running; `pai-spot stop {JOB}` stops it"
