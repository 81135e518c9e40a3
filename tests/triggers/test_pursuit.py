"""A job followed by way of the watcher: what is asked singly, what is logged, and how each end is reached."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from scripted_dlc import ScriptedDlc, ids, raising
from virtual_time import EPOCH, LoopClock, in_virtual_time

from airflow_provider_pai_spot.attempts.commands import Command, ReadEvents
from airflow_provider_pai_spot.attempts.follow import follow
from airflow_provider_pai_spot.attempts.limits import WaitLimits
from airflow_provider_pai_spot.attempts.unseen import JOB_GONE, NOT_OBSERVED
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import JobOutcome, StopReason, Verdict
from airflow_provider_pai_spot.exceptions import (
    PaiDlcError,
    PaiDlcNotFound,
    PaiDlcRefused,
    PaiDlcThrottled,
    PaiDlcUnavailable,
)
from airflow_provider_pai_spot.triggers.pursuit import Pursuit
from airflow_provider_pai_spot.triggers.watchers import watcher_for

PERIOD = 30.0
JOB = ids(1)[0]
Script = Callable[[ScriptedDlc], Awaitable[None]]


def pursue(
    dlc: ScriptedDlc,
    job_id: str = JOB,
    *,
    renew: Callable[[], Any] | None = None,
    companions: Sequence[Any] = (),
    **limits: Any,
) -> Awaitable[JobOutcome]:
    """Follow one job of `dlc` to its end on the running loop."""
    clock = LoopClock()
    wait_limits = WaitLimits(**limits)
    dlc.time = asyncio.get_running_loop().time

    async def again() -> Any:
        return renew() if renew else dlc

    pursuit = Pursuit(
        job_id,
        hook=dlc,  # type: ignore[arg-type]  # the part of it that is used
        renew=again,
        limits=wait_limits,
        poll_interval=PERIOD,
        clock=clock,
        **({"pods_needed": lambda _status: True} if companions else {}),  # type: ignore[arg-type]
    )
    return pursuit.to_the_end(
        follow(
            job_id,
            limits=wait_limits,
            poll_interval=PERIOD,
            now=clock.now,
            log=logging.getLogger("pursued"),
            spot=True,
            companions=companions,
        )
    )


def outcome_of(dlc: ScriptedDlc, *steps: tuple[float, Callable[[], Any]], **options: Any) -> JobOutcome:
    """Follow `JOB` in virtual time while `steps` happen at their moments."""

    async def story() -> JobOutcome:
        for at, step in steps:
            asyncio.get_running_loop().call_later(at, step)
        return await pursue(dlc, **options)

    return in_virtual_time(story())


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "pursued"]


@pytest.fixture
def dlc() -> ScriptedDlc:
    made = ScriptedDlc()
    made.add([JOB])
    return made


def test_a_quiet_day_costs_lists_only_and_the_end_is_read_singly(dlc: ScriptedDlc, caplog: Any) -> None:
    caplog.set_level("INFO")
    outcome = outcome_of(
        dlc,
        (3600.0, lambda: dlc.put(JOB, "Running")),
        (86_400.0, lambda: dlc.put(JOB, "Succeeded", ReasonCode="JobSucceeded")),
    )
    assert outcome.verdict is Verdict.SUCCEEDED
    assert len(dlc.singles) == 1
    assert dlc.singles[0][0] <= 86_400.0 + 1.1 * PERIOD
    assert [line.split(" after ")[0] for line in lines_of(caplog)] == [
        f"{JOB}: Queuing",
        f"{JOB}: Queuing → Running",
        f"{JOB}: Running → Succeeded",
    ]


def test_a_limit_is_believed_only_after_a_fresh_look(dlc: ScriptedDlc) -> None:
    """The list is half a minute old when the limit passes; the job found its capacity a second ago."""
    pending = 3600.0 + 600.0  # it was created an hour before
    outcome = outcome_of(
        dlc,
        (599.0, lambda: dlc.put(JOB, "Running")),
        (900.0, lambda: dlc.put(JOB, "Succeeded")),
        pending_timeout=pending,
    )
    assert outcome.verdict is Verdict.SUCCEEDED
    assert outcome.stop_reason is None
    assert dlc.stops == []


def test_a_limit_that_passes_stops_the_job_to_the_second_and_waits_for_its_end(dlc: ScriptedDlc) -> None:
    outcome = outcome_of(dlc, pending_timeout=3600.0 + 600.0)
    assert outcome.stop_reason is StopReason.PENDING_TIMEOUT
    assert dlc.stops == [JOB]
    assert 599.9 <= dlc.singles[0][0] <= 601.0
    assert dlc.singles[-1][0] <= 605.0
    assert len(dlc.lists) <= 25


def test_a_list_without_history_is_completed_singly_when_phases_are_timed(dlc: ScriptedDlc) -> None:
    lists = dlc.list_page
    dlc.list_page = lambda job_ids: [  # type: ignore[method-assign]
        {key: value for key, value in item.items() if key != "StatusHistory"} for item in lists(job_ids)
    ]
    outcome = outcome_of(dlc, (100.0, lambda: dlc.put(JOB, "Succeeded")), run_timeout=60.0)
    assert outcome.verdict is Verdict.SUCCEEDED
    assert len(dlc.singles) == 2


def test_a_job_that_the_list_does_not_show_is_asked_for_singly_until_it_does(dlc: ScriptedDlc) -> None:
    dlc.hidden.add(JOB)
    outcome = outcome_of(
        dlc, (300.0, dlc.hidden.clear), (900.0, lambda: dlc.put(JOB, "Succeeded", ReasonCode="JobSucceeded"))
    )
    assert outcome.verdict is Verdict.SUCCEEDED
    early = [at for at, _ in dlc.singles if at < 330.0]
    assert 9 <= len(early) <= 13
    assert len(dlc.singles) - len(early) == 1


def test_a_job_that_the_list_never_shows_still_ends(dlc: ScriptedDlc) -> None:
    dlc.hidden.add(JOB)
    assert outcome_of(dlc, (300.0, lambda: dlc.put(JOB, "Succeeded"))).verdict is Verdict.SUCCEEDED


def test_a_job_of_another_workspace_is_listed_there_after_one_single_look(dlc: ScriptedDlc) -> None:
    dlc.put(JOB, "Queuing", WorkspaceId="2")
    renewed = replace(dlc, fingerprint="two")
    outcome = outcome_of(dlc, (3_000.0, lambda: dlc.put(JOB, "Succeeded")), renew=lambda: renewed)
    assert outcome.verdict is Verdict.SUCCEEDED
    assert [at for at, _ in dlc.singles if at < 3_000.0] == [pytest.approx(0.05, abs=0.05)]
    assert len(dlc.lists) >= 100


@pytest.mark.parametrize(
    "error",
    [
        PaiDlcRefused("ListJobs: HTTP 403", code="Forbidden.RAM", status_code=403),
        PaiDlcRefused("ListJobs: HTTP 400", code="Forbidden.Workspace", status_code=400),
        PaiDlcRefused("ListJobs: HTTP 400", code="InvalidParameter", status_code=400),
        PaiDlcNotFound("ListJobs: HTTP 404", code="WorkspaceNotFound", status_code=404),
        PaiDlcUnavailable("ListJobs: HTTP 500", status_code=500),
    ],
    ids=str,
)
@pytest.mark.parametrize("from_when_on", [0.0, 1_000.0], ids=["from the first list on", "later"])
def test_a_workspace_whose_jobs_cannot_be_listed_costs_single_looks_and_no_task(
    dlc: ScriptedDlc, error: PaiDlcError, from_when_on: float
) -> None:
    dlc.put(JOB, "Queuing", WorkspaceId="2")
    outcome = outcome_of(
        dlc,
        (from_when_on, lambda: dlc.faults.update({"one-2": raising(error)})),
        (4_000.0, lambda: dlc.put(JOB, "Succeeded")),
        poll_error_tolerance=900.0,
    )
    assert outcome.verdict is Verdict.SUCCEEDED
    assert 40 <= len(dlc.singles) <= 150


def test_dlc_that_is_silent_everywhere_is_given_up_for_a_job_of_another_workspace_too(dlc: ScriptedDlc) -> None:
    dlc.put(JOB, "Queuing", WorkspaceId="2")

    def silent(_operation: str, _ids: Sequence[str]) -> None:
        raise OVERLOADED

    outcome = outcome_of(
        dlc,
        (1_000.0, lambda: dlc.faults.update({"one": silent, "one-2": silent})),
        poll_error_tolerance=900.0,
    )
    assert outcome.rule == NOT_OBSERVED


def test_credentials_that_are_renewed_are_used_in_the_other_workspace_as_well(dlc: ScriptedDlc) -> None:
    dlc.put(JOB, "Queuing", WorkspaceId="2")
    expired = raising(PaiDlcRefused("ListJobs: HTTP 403", code="InvalidSecurityToken.Expired", status_code=403))
    outcome = outcome_of(
        dlc,
        (300.0, lambda: dlc.faults.update({"one": expired, "one-2": expired})),
        (3_000.0, lambda: dlc.put(JOB, "Succeeded")),
        renew=lambda: replace(dlc, fingerprint="two"),
        poll_error_tolerance=60.0,
    )
    assert outcome.verdict is Verdict.SUCCEEDED
    assert len([at for at, _ in dlc.singles if at < 3_000.0]) <= 2


def test_a_list_that_is_ahead_of_getjob_does_not_put_the_waiting_to_sleep(dlc: ScriptedDlc) -> None:
    listed = dlc.jobs[JOB] | {"Status": "Succeeded"}
    dlc.list_page = lambda _ids: [listed]  # type: ignore[method-assign]
    assert outcome_of(dlc, (200.0, lambda: dlc.put(JOB, "Succeeded"))).verdict is Verdict.SUCCEEDED
    assert dlc.singles[-1][0] <= 200.0 + 1.2 * PERIOD


def test_a_job_that_is_gone_is_believed_gone_after_several_single_looks(dlc: ScriptedDlc) -> None:
    outcome = outcome_of(dlc, (120.0, dlc.jobs.clear))
    assert outcome.rule == JOB_GONE
    assert len(dlc.singles) >= 3
    assert dlc.singles[-1][0] - dlc.singles[0][0] >= 60.0


def test_a_404_of_the_list_itself_says_nothing_of_a_job(dlc: ScriptedDlc) -> None:
    fault = raising(PaiDlcNotFound("ListJobs: HTTP 404", code="NotFound", status_code=404))
    outcome = outcome_of(
        dlc,
        (100.0, lambda: setattr(dlc, "fault", fault)),
        (700.0, lambda: setattr(dlc, "fault", lambda *_: None)),
        (800.0, lambda: dlc.put(JOB, "Succeeded")),
    )
    assert outcome.verdict is Verdict.SUCCEEDED


def test_an_outage_is_logged_once_and_one_that_is_over_in_time_ends_nothing(dlc: ScriptedDlc, caplog: Any) -> None:
    caplog.set_level("INFO")
    fault = raising(PaiDlcUnavailable("ListJobs: HTTP 503", status_code=503))
    outcome = outcome_of(
        dlc,
        (7200.0, lambda: setattr(dlc, "fault", fault)),
        (8000.0, lambda: setattr(dlc, "fault", lambda *_: None)),
        (9000.0, lambda: dlc.put(JOB, "Succeeded")),
        poll_error_tolerance=900.0,
    )
    assert outcome.verdict is Verdict.SUCCEEDED
    assert [line.split(":")[1].strip() for line in lines_of(caplog)] == [
        "Queuing",
        "DLC could not be asked, waiting on",
        "DLC answers again",
        "Queuing → Succeeded after 3 h 30 min",
    ]


@pytest.mark.parametrize(
    "error",
    [
        PaiDlcUnavailable("ListJobs: HTTP 503", status_code=503),
        PaiDlcRefused("ListJobs: HTTP 403 Forbidden.RAM", code="Forbidden.RAM", status_code=403),
    ],
    ids=["an outage", "revoked credentials"],
)
def test_the_tolerance_counts_from_the_last_good_list(dlc: ScriptedDlc, error: Exception) -> None:
    """For two hours nothing changed, so nobody was woken; the lists were good all the same."""
    ended: list[float] = []

    async def story() -> JobOutcome:
        loop = asyncio.get_running_loop()
        loop.call_later(7200.0, lambda: setattr(dlc, "fault", raising(error)))  # type: ignore[arg-type]
        outcome = await pursue(dlc, poll_error_tolerance=900.0)
        ended.append(loop.time())
        return outcome

    outcome = in_virtual_time(story())
    assert outcome.rule == NOT_OBSERVED
    assert str(error) in outcome.evidence[0]
    assert 7200.0 + 900.0 - 1.1 * PERIOD <= ended[0] <= 7200.0 + 900.0 + 1.1 * PERIOD


def test_credentials_that_were_renewed_in_the_connection_are_taken_up(dlc: ScriptedDlc) -> None:
    renewed = ScriptedDlc(jobs=dlc.jobs, fingerprint="two")

    async def story() -> JobOutcome:
        loop = asyncio.get_running_loop()
        renewed.time = loop.time
        expired = raising(PaiDlcRefused("expired", code="InvalidSecurityToken.Expired", status_code=400))
        loop.call_later(600.0, lambda: setattr(dlc, "fault", expired))
        loop.call_later(900.0, lambda: dlc.put(JOB, "Succeeded"))
        return await pursue(dlc, renew=lambda: renewed if loop.time() > 650.0 else dlc)

    assert in_virtual_time(story()).verdict is Verdict.SUCCEEDED
    assert [at for at, _ in dlc.lists if at > 720.0] == []
    assert renewed.singles


def test_a_job_that_is_in_no_list_takes_up_renewed_credentials_as_well(dlc: ScriptedDlc) -> None:
    renewed = ScriptedDlc(jobs=dlc.jobs, fingerprint="two")

    async def story() -> JobOutcome:
        loop = asyncio.get_running_loop()
        renewed.time = loop.time

        def refuse(operation: str, _ids: Sequence[str]) -> None:
            if operation == "ListJobs":
                raise PaiDlcRefused("an odd id", code="InvalidParameter", status_code=400)
            if loop.time() > 600.0:
                raise PaiDlcRefused("expired", code="SecurityTokenExpired", status_code=400)

        dlc.fault = refuse
        loop.call_later(900.0, lambda: dlc.put(JOB, "Succeeded"))
        return await pursue(dlc, renew=lambda: renewed if loop.time() > 650.0 else dlc)

    assert in_virtual_time(story()).verdict is Verdict.SUCCEEDED
    assert renewed.singles
    assert max(at for at, _ in dlc.singles) <= 720.0


MISTYPED = PaiDlcRefused("InvalidAccessKeyId", code="InvalidAccessKeyId.Inactive", status_code=403)
OVERLOADED = PaiDlcUnavailable("ListJobs: HTTP 503", status_code=503)


@pytest.mark.parametrize("error", [MISTYPED, OVERLOADED], ids=["the new key is mistyped", "DLC is down for a moment"])
def test_new_credentials_that_do_not_work_at_once_get_the_whole_tolerance(dlc: ScriptedDlc, error: Any) -> None:
    """For two hours nobody was woken, so the last good answer is one that only the former watcher heard."""
    renewed = ScriptedDlc(jobs=dlc.jobs, fingerprint="two", fault=raising(error))
    outcome = outcome_of(
        dlc,
        (7200.0, lambda: setattr(dlc, "fault", raising(MISTYPED))),
        (7900.0, lambda: setattr(renewed, "fault", lambda *_: None)),
        (8000.0, lambda: dlc.put(JOB, "Succeeded")),
        renew=lambda: renewed,
        poll_error_tolerance=900.0,
    )
    assert outcome.verdict is Verdict.SUCCEEDED


def test_new_credentials_that_never_work_are_given_up_after_the_tolerance(dlc: ScriptedDlc) -> None:
    renewed = ScriptedDlc(jobs=dlc.jobs, fingerprint="two", fault=raising(MISTYPED))
    ended: list[float] = []

    async def story() -> JobOutcome:
        loop = asyncio.get_running_loop()
        loop.call_later(7200.0, lambda: setattr(dlc, "fault", raising(MISTYPED)))
        outcome = await pursue(dlc, renew=lambda: renewed, poll_error_tolerance=900.0)
        ended.append(loop.time())
        return outcome

    assert in_virtual_time(story()).rule == NOT_OBSERVED
    assert 7200.0 + 900.0 - 1.1 * PERIOD <= ended[0] <= 7200.0 + 900.0 + 1.2 * PERIOD


@pytest.mark.parametrize(("count", "a_second"), [(300, 5), (300, 100)])
def test_no_limit_of_many_is_told_while_a_job_lives_however_few_stops_dlc_takes(count: int, a_second: int) -> None:
    dlc = ScriptedDlc()
    jobs = dlc.add(ids(count))
    taken: Counter[int] = Counter()

    def throttle(operation: str, _ids: Sequence[str]) -> None:
        if operation == "StopJob":
            taken[int(dlc.time())] += 1
            if taken[int(dlc.time())] > a_second:
                raise PaiDlcThrottled("StopJob: HTTP 429", code="Throttling.User", status_code=429)

    dlc.fault = throttle
    told: list[tuple[float, str]] = []

    async def one(job_id: str) -> None:
        outcome = await pursue(dlc, job_id, pending_timeout=3900.0)  # of which an hour is over
        assert outcome.stop_reason is StopReason.PENDING_TIMEOUT
        told.append((dlc.time(), dlc.jobs[job_id]["Status"]))

    async def story() -> None:
        await asyncio.gather(*(one(job_id) for job_id in jobs))

    in_virtual_time(story())
    assert Counter(status for _, status in told) == {"Stopped": count}
    assert max(at for at, _ in told) <= 300.0 + 240.0
    assert sum(taken.values()) <= count * 2


class Watching:
    """A companion that keeps the pods it was shown, and reads events every ten seconds."""

    def __init__(self) -> None:
        self.looked: list[tuple[str, Any]] = []
        self.answers: list[Any] = []
        self.ended = False

    def look(self, job: Job) -> Generator[Command, Any, None]:
        self.looked.append((job.status, job.raw.get("Pods")))
        self.answers.append((yield ReadEvents(job.job_id)))

    def seconds_to_next(self, _job: Job) -> float | None:
        return 10.0

    def end(self, _job: Job) -> Generator[Command, Any, None]:
        self.ended = True
        yield from ()


def test_a_companion_gets_pods_and_its_commands_are_carried_out(dlc: ScriptedDlc) -> None:
    companion = Watching()
    outcome = outcome_of(
        dlc,
        (100.0, lambda: dlc.put(JOB, "Running")),
        (400.0, lambda: dlc.put(JOB, "Succeeded")),
        companions=[companion],
    )
    assert outcome.verdict is Verdict.SUCCEEDED
    assert companion.ended
    assert len(companion.looked) >= 35
    assert all(pods == [] for _, pods in companion.looked)
    assert set(map(str, companion.answers)) == {str([f"an event of {JOB}"])}
    # For each change, and once a period: pods come and go unseen where the list does not show them.
    assert 400 / PERIOD <= len(dlc.singles) <= 400 / PERIOD + 4


def test_a_companion_costs_no_single_look_where_the_list_shows_pods(dlc: ScriptedDlc) -> None:
    dlc.jobs[JOB]["Pods"] = []
    companion = Watching()
    assert outcome_of(dlc, (400.0, lambda: dlc.put(JOB, "Succeeded")), companions=[companion]).verdict
    assert len(companion.looked) >= 35
    assert len(dlc.singles) == 1


def test_a_storm_of_429_fails_no_task_and_every_end_is_heard_of() -> None:
    """The ten minutes of the throttling storm, from the side of those who wait."""
    dlc, dice = ScriptedDlc(), random.Random(3)
    jobs = dlc.add(ids(300))

    def strike(_operation: str, _ids: Sequence[str]) -> None:
        if 300.0 <= dlc.time() < 900.0 and dice.random() < 0.5:
            raise PaiDlcThrottled("HTTP 429", code="Throttling.User", status_code=429, retry_after=2.0)

    dlc.fault = strike

    async def story() -> list[JobOutcome]:
        for number, job in enumerate(jobs):
            asyncio.get_running_loop().call_later(320.0 + 4.0 * number, dlc.put, job, "Succeeded")
        return await asyncio.gather(*(pursue(dlc, job) for job in jobs))

    outcomes = in_virtual_time(story())
    assert [outcome.verdict for outcome in outcomes] == [Verdict.SUCCEEDED] * 300


def test_a_deadline_of_the_task_ends_the_waiting_although_dlc_is_silent_about_the_job(dlc: ScriptedDlc) -> None:
    deadline = EPOCH + timedelta(seconds=500)
    outcome = outcome_of(dlc, total_deadline=deadline)
    assert outcome.stop_reason is StopReason.TOTAL_TIMEOUT
    assert 499.9 <= dlc.singles[0][0] <= 501.0


@pytest.mark.long  # takes a minute of computing
def test_an_hour_of_429_to_half_of_all_calls_gives_up_none_of_three_thousand_jobs() -> None:
    """At the slowest pace a job's own turn comes after more than the tolerance; DLC answers all the time."""
    dlc, dice = ScriptedDlc(), random.Random(3)
    jobs = dlc.add(ids(3000))

    def strike(_operation: str, _ids: Sequence[str]) -> None:
        if 300.0 <= dlc.time() < 3900.0 and dice.random() < 0.5:
            raise PaiDlcThrottled("HTTP 429", code="Throttling.User", status_code=429)

    dlc.fault = strike

    async def story() -> list[JobOutcome]:
        waiting = [asyncio.create_task(pursue(dlc, job, poll_error_tolerance=600.0)) for job in jobs]
        await asyncio.sleep(3900.0)
        given_up = [task.result() for task in waiting if task.done()]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return given_up

    assert in_virtual_time(story()) == []


def test_a_job_whose_lists_alone_fail_is_read_singly_after_the_tolerance(dlc: ScriptedDlc) -> None:
    async def others_are_answered() -> None:
        while True:
            await asyncio.sleep(10.0)
            watcher_for(dlc).answered_at = asyncio.get_running_loop().time()  # type: ignore[arg-type]

    async def story() -> JobOutcome:
        loop = asyncio.get_running_loop()
        loop.call_later(100.0, lambda: setattr(dlc, "fault", raising(OVERLOADED)))
        loop.call_later(1900.0, lambda: dlc.put(JOB, "Succeeded"))
        answering = asyncio.create_task(others_are_answered())
        outcome = await asyncio.wait_for(pursue(dlc, poll_error_tolerance=900.0), 86_400.0)
        answering.cancel()
        return outcome

    assert in_virtual_time(story()).verdict is Verdict.SUCCEEDED
    assert min(at for at, _ in dlc.singles) >= 900.0


REFUSED = PaiDlcRefused("GetJob: HTTP 403", code="Forbidden.RAM", status_code=403)


def test_a_job_that_cannot_be_read_singly_is_judged_by_its_list_after_the_tolerance(dlc: ScriptedDlc) -> None:
    dlc.fault = raising(REFUSED, "GetJob")
    ended: list[float] = []

    async def story() -> JobOutcome:
        loop = asyncio.get_running_loop()
        loop.call_later(600.0, lambda: dlc.put(JOB, "Succeeded", ReasonCode="JobSucceeded"))
        outcome = await asyncio.wait_for(pursue(dlc, poll_error_tolerance=900.0), 86_400.0)
        ended.append(loop.time())
        return outcome

    assert in_virtual_time(story()).verdict is Verdict.SUCCEEDED
    assert 1500.0 <= ended[0] <= 1500.0 + 3 * PERIOD


def test_a_limit_holds_although_the_job_cannot_be_read_singly(dlc: ScriptedDlc) -> None:
    dlc.fault = raising(REFUSED, "GetJob")

    async def story() -> JobOutcome:
        deadline = EPOCH + timedelta(hours=2)
        return await asyncio.wait_for(pursue(dlc, total_deadline=deadline, poll_error_tolerance=900.0), 86_400.0)

    assert in_virtual_time(story()).stop_reason is StopReason.TOTAL_TIMEOUT
    assert dlc.stops == [JOB]


def test_a_job_that_no_list_shows_and_that_cannot_be_read_is_given_up(dlc: ScriptedDlc) -> None:
    dlc.hidden.add(JOB)
    dlc.fault = raising(REFUSED, "GetJob")

    async def story() -> JobOutcome:
        return await asyncio.wait_for(pursue(dlc, poll_error_tolerance=900.0), 86_400.0)

    assert in_virtual_time(story()).rule == NOT_OBSERVED


@pytest.mark.parametrize(
    "error",
    [
        PaiDlcThrottled("GetJobEvents: HTTP 429", status_code=429, retry_after=1.0),
        PaiDlcUnavailable("GetJobEvents: HTTP 503", status_code=503),
    ],
    ids=["429", "503"],
)
@pytest.mark.parametrize(("failures", "verdict"), [(1, Verdict.REVOKED), (4, Verdict.REVOKED), (99, Verdict.UNKNOWN)])
def test_the_events_that_tell_of_a_loss_are_asked_for_again(
    dlc: ScriptedDlc, error: Any, failures: int, verdict: Verdict
) -> None:
    asked: list[float] = []

    def events(_job_id: str) -> list[str]:
        asked.append(dlc.time())
        if len(asked) <= failures:
            raise error
        return ["2026-11-30 12:10:00 pod preempted: spot instance reclaimed"]

    dlc.get_job_events = events  # type: ignore[method-assign]
    over = {"ReasonCode": "JobFailed", "GmtFinishTime": "2026-11-30T12:10:00Z"}
    outcome = outcome_of(dlc, (600.0, lambda: dlc.put(JOB, "Failed", **over)))
    assert outcome.verdict is verdict
    assert asked[-1] - asked[0] <= 180.0
    assert len(asked) == min(failures + 1, 7)


def test_events_that_are_refused_are_not_asked_for_again(dlc: ScriptedDlc) -> None:
    asked: list[str] = []

    def events(job_id: str) -> list[str]:
        asked.append(job_id)
        raise PaiDlcRefused("GetJobEvents: HTTP 403", code="Forbidden.RAM", status_code=403)

    dlc.get_job_events = events  # type: ignore[method-assign]
    over = {"ReasonCode": "JobFailed", "GmtFinishTime": "2026-11-30T12:10:00Z"}
    assert outcome_of(dlc, (600.0, lambda: dlc.put(JOB, "Failed", **over))).verdict is Verdict.UNKNOWN
    assert asked == [JOB]
