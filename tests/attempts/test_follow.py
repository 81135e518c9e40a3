"""Following one job: what is asked, what is logged, how it ends. Driven by a list of answers and a manual clock."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts import judging
from airflow_provider_pai_spot.attempts.commands import Do, Look, Missed, ReadEvents, ReadPodEvents, Stop, Wait
from airflow_provider_pai_spot.attempts.follow import follow
from airflow_provider_pai_spot.attempts.limits import WaitLimits
from airflow_provider_pai_spot.attempts.unseen import JOB_GONE, NOT_OBSERVED
from airflow_provider_pai_spot.dlc.outcome import JobOutcome, StopReason, Verdict
from airflow_provider_pai_spot.exceptions import PaiDlcNotFound, PaiDlcUnavailable

JOB = "dlc1abc"


def at(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class Scripted:
    """Answers looks from a list (its last entry repeats), and counts stops."""

    def __init__(self, clock: Any, answers: Iterable[Any]) -> None:
        self.clock, self.answers, self.stops, self.looks = clock, list(answers), 0, 0
        self.after_stop: Any = None
        self.events: list[str] = []
        self.done: list[Any] = []

    def run(self, following: Any) -> JobOutcome:
        reply: Any = None
        while True:
            try:
                command = following.send(reply)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            reply = self._answer(command)

    def _answer(self, command: Any) -> Any:
        match command:
            case Wait(seconds):
                assert seconds > 0
                self.clock.sleep(seconds)
                return None
            case Stop():
                self.stops += 1
                if self.after_stop is not None:
                    self.answers = [self.after_stop]
                return True
            case ReadEvents():
                return self.events
            case Do(work):
                self.done.append(work())
                return self.done[-1]
            case ReadPodEvents(_, pod_id):
                return [f"{pod_id}: Failed to pull image: ErrImagePull"]
            case Look():
                self.looks += 1
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                return answer(self.clock.now()) if callable(answer) else answer
        raise AssertionError(command)


def job(status: str, created: datetime, **fields: Any) -> dict[str, Any]:
    return {"JobId": JOB, "Status": status, "GmtCreateTime": at(created), **fields}


def follow_to_the_end(clock: Any, log: Any, answers: Iterable[Any], **limits: Any) -> tuple[JobOutcome, Scripted]:
    script = Scripted(clock, answers)
    if "after_stop" in limits:
        script.after_stop = limits.pop("after_stop")
    following = follow(JOB, limits=WaitLimits(**limits), poll_interval=30, now=clock.now, log=log, spot=True)
    return script.run(following), script


def test_each_change_of_status_is_one_line_and_polls_are_none(clock: Any, kept_log: Any) -> None:
    start = clock.now()
    statuses = ["Creating", *["Queuing"] * 80, *["Running"] * 40, "Succeeded"]
    outcome, script = follow_to_the_end(clock, kept_log, [job(status, start) for status in statuses])
    assert outcome.verdict is Verdict.SUCCEEDED
    assert script.looks == len(statuses)
    assert kept_log.lines == [
        f"INFO {JOB}: Creating",
        f"INFO {JOB}: Creating → Queuing after 30 s",
        f"INFO {JOB}: Queuing → Running after 40 min",
        f"INFO {JOB}: Running → Succeeded after 20 min",
    ]


def test_an_unheard_of_status_keeps_waiting_and_is_warned_of_once(clock: Any, kept_log: Any) -> None:
    start = clock.now()
    answers = [job("Running", start), *[job("Hibernating", start)] * 5, job("Succeeded", start)]
    outcome, _ = follow_to_the_end(clock, kept_log, answers)
    assert outcome.verdict is Verdict.SUCCEEDED
    warnings = [line for line in kept_log.lines if line.startswith("WARNING")]
    assert len(warnings) == 1
    assert "'Hibernating'" in warnings[0]


def test_reserving_is_decided_and_said_to_be_billed(clock: Any, kept_log: Any) -> None:
    outcome, script = follow_to_the_end(clock, kept_log, [job("SucceededReserving", clock.now())])
    assert (outcome.verdict, outcome.reserving, script.looks) == (Verdict.SUCCEEDED, True, 1)
    assert any("perhaps billed" in line for line in kept_log.lines)


def test_errors_that_pass_fail_nothing_and_are_two_lines(clock: Any, kept_log: Any) -> None:
    start = clock.now()
    broken = PaiDlcUnavailable("connection reset")
    answers = [job("Running", start), *[broken] * 10, job("Running", start), job("Succeeded", start)]
    outcome, _ = follow_to_the_end(clock, kept_log, answers)
    assert outcome.verdict is Verdict.SUCCEEDED
    assert [line for line in kept_log.lines if "could not be asked" in line or "answers again" in line] == [
        f"WARNING {JOB}: DLC could not be asked, waiting on: connection reset",
        f"INFO {JOB}: DLC answers again",
    ]


def test_errors_that_last_give_up_without_a_claim_about_the_job(clock: Any, kept_log: Any) -> None:
    outcome, script = follow_to_the_end(clock, kept_log, [PaiDlcUnavailable("down")], poll_error_tolerance=300.0)
    assert (outcome.verdict, outcome.rule) == (Verdict.UNKNOWN, NOT_OBSERVED)
    assert script.looks == 11
    assert script.stops == 0


def test_a_missing_job_is_believed_gone_only_after_a_minute(clock: Any, kept_log: Any) -> None:
    missing = PaiDlcNotFound("no such job", code="NotFound", status_code=404)
    start = clock.now()
    late, _ = follow_to_the_end(clock, kept_log, [missing, missing, job("Succeeded", start)])
    assert late.verdict is Verdict.SUCCEEDED
    gone, _ = follow_to_the_end(clock, kept_log, [missing])
    assert (gone.verdict, gone.rule) == (Verdict.UNKNOWN, JOB_GONE)


def test_pending_timeout_stops_the_job_and_waits_until_it_is_over(clock: Any, kept_log: Any) -> None:
    start = clock.now()
    stopped = job("Stopped", start, ReasonCode="JobStoppedByUser")
    outcome, script = follow_to_the_end(
        clock, kept_log, [job("Queuing", start)], pending_timeout=7200.0, after_stop=stopped
    )
    assert (outcome.verdict, outcome.stop_reason) == (Verdict.STOPPED, StopReason.PENDING_TIMEOUT)
    assert script.stops == 1
    assert clock.now() - start <= timedelta(hours=2, minutes=1)


def test_an_image_that_cannot_be_pulled_is_quoted_when_the_wait_ends(clock: Any, kept_log: Any) -> None:
    start = clock.now()
    outcome, _ = follow_to_the_end(
        clock,
        kept_log,
        [job("EnvPreparing", start, Pods=[{"PodId": "dlc1abc-worker-0", "Status": "Pending"}])],
        pending_timeout=600.0,
        after_stop=job("Stopped", start),
    )
    assert outcome.stop_reason is StopReason.PENDING_TIMEOUT
    assert outcome.evidence[0] == "dlc1abc-worker-0: Failed to pull image: ErrImagePull"
    assert any("ErrImagePull" in line for line in kept_log.lines)


def test_a_poll_does_not_sleep_past_a_limit(clock: Any, kept_log: Any) -> None:
    start = clock.now()
    deadline = start + timedelta(seconds=47)
    follow_to_the_end(
        clock,
        kept_log,
        [job("Running", start)],
        total_deadline=deadline,
        after_stop=lambda now: job("Stopped", now),
    )
    assert clock.now() - deadline < timedelta(seconds=5)


def test_pending_timeout_counts_from_creation_not_from_our_first_look(clock: Any, kept_log: Any) -> None:
    long_ago = clock.now() - timedelta(hours=3)
    outcome, script = follow_to_the_end(
        clock,
        kept_log,
        [job("Bidding", long_ago)],
        pending_timeout=7200.0,
        after_stop=job("Stopped", long_ago),
    )
    assert outcome.stop_reason is StopReason.PENDING_TIMEOUT
    assert script.looks == 2


def test_run_timeout_counts_only_running(clock: Any, kept_log: Any) -> None:
    start = clock.now() - timedelta(hours=5)
    running_since = clock.now()

    def running(_now: datetime) -> dict[str, Any]:
        return job(
            "Running",
            start,
            StatusHistory=[
                {"Status": "Queuing", "StartTime": at(start), "EndTime": at(running_since)},
                {"Status": "Running", "StartTime": at(running_since), "EndTime": ""},
            ],
        )

    outcome, _ = follow_to_the_end(clock, kept_log, [running], run_timeout=3600.0, after_stop=job("Stopped", start))
    assert outcome.stop_reason is StopReason.RUN_TIMEOUT
    assert timedelta(hours=1) <= clock.now() - running_since <= timedelta(hours=1, minutes=1)


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
def test_an_end_that_was_faster_than_the_stop_is_told_as_it_was(clock: Any, kept_log: Any, end: str) -> None:
    start = clock.now()
    failed = {"Pods": [{"PodId": "p", "Status": "Failed", "StatusDetail": {"ExitCode": 1}}]}
    outcome, _ = follow_to_the_end(
        clock,
        kept_log,
        [job("Running", start)],
        total_deadline=start + timedelta(seconds=60),
        after_stop=job(end, start, **(failed if end == "Failed" else {})),
    )
    assert outcome.verdict.value == end.lower()
    assert outcome.stop_reason is None


def test_a_stop_that_does_not_go_through_is_repeated_and_then_reported(clock: Any, kept_log: Any) -> None:
    start = clock.now()
    outcome, _ = follow_to_the_end(
        clock, kept_log, [job("Queuing", start)], total_deadline=start + timedelta(seconds=60)
    )
    assert (outcome.verdict, outcome.rule) == (Verdict.UNKNOWN, "not_over")
    assert outcome.stop_reason is StopReason.TOTAL_TIMEOUT
    assert clock.now() - start <= timedelta(minutes=3)


def test_a_watcher_that_may_not_stop_leaves_the_job_alone(clock: Any, kept_log: Any) -> None:
    start = clock.now()
    outcome, script = follow_to_the_end(
        clock,
        kept_log,
        [job("Running", start)],
        total_deadline=start + timedelta(seconds=60),
        stop_at_limit=False,
    )
    assert (outcome.status, outcome.stop_reason) == ("Running", StopReason.TOTAL_TIMEOUT)
    assert script.stops == 0


def test_a_stop_by_hand_is_nobody_s_limit(clock: Any, kept_log: Any) -> None:
    start = clock.now()
    stopped = job("Stopped", start, GmtFinishTime=at(start + timedelta(minutes=5)))
    outcome, _ = follow_to_the_end(
        clock, kept_log, [stopped], pending_timeout=7200.0, total_deadline=start + timedelta(hours=1)
    )
    assert (outcome.verdict, outcome.stop_reason) == (Verdict.STOPPED, None)


def test_a_stop_of_ours_that_nobody_saw_is_recognised_by_its_limit(clock: Any, kept_log: Any) -> None:
    """The triggerer died between StopJob and its event; the next one finds the job Stopped."""
    created = clock.now() - timedelta(hours=3)
    ended = created + timedelta(hours=2, seconds=4)
    stopped = job(
        "Stopped",
        created,
        GmtFinishTime=at(ended),
        StatusHistory=[
            {"Status": "Queuing", "StartTime": at(created), "EndTime": at(ended)},
            {"Status": "Stopped", "StartTime": at(ended), "EndTime": ""},
        ],
    )
    outcome, _ = follow_to_the_end(clock, kept_log, [stopped], pending_timeout=7200.0)
    assert outcome.stop_reason is StopReason.PENDING_TIMEOUT


def test_events_are_read_only_when_the_job_itself_cannot_tell(clock: Any, kept_log: Any) -> None:
    script = Scripted(clock, [job("Failed", clock.now(), ReasonCode="JobFailed")])
    script.events = ["2026-11-30 06:00:00 pod dlc1abc-worker-0 was preempted"]
    following = follow(JOB, limits=WaitLimits(), poll_interval=30, now=clock.now, log=kept_log, spot=True)
    assert script.run(following).verdict is Verdict.REVOKED


def test_an_evicted_pod_of_a_job_that_runs_decides_nothing(clock: Any, kept_log: Any) -> None:
    """One lost worker is the loss of the job only once DLC ends the job: AIMaster may restart it."""
    start = clock.now()
    evicted = {"PodId": f"{JOB}-worker-7", "NodeName": "cn-hangzhou.10.1.2.3", "SubStatus": "Evicted"}
    workers = [*({"PodId": f"{JOB}-worker-{number}", "Status": "Running"} for number in range(7)), evicted]
    answers = [job("Running", start, Pods=workers)] * 20
    outcome, script = follow_to_the_end(clock, kept_log, [*answers, job("Failed", start, Pods=workers)])
    assert script.looks == 21
    assert (outcome.verdict, outcome.evidence) == (
        Verdict.REVOKED,
        ("pod worker-7 on cn-hangzhou.10.1.2.3 Evicted",),
    )


def test_a_secret_in_an_event_is_neither_logged_nor_evidence(clock: Any, kept_log: Any) -> None:
    start = clock.now()
    script = Scripted(clock, [job("Queuing", start)])
    script.after_stop = job("Stopped", start)
    script.events = ["Failed to pull image: https://robot:planted@hub/x token=planted"]
    limits = WaitLimits(pending_timeout=600.0)
    following = follow(JOB, limits=limits, poll_interval=30, now=clock.now, log=kept_log, spot=True)
    outcome = script.run(following)
    assert outcome.evidence[0] == "Failed to pull image: https://***@hub/x token=***"
    assert "planted" not in "".join(kept_log.lines)
    assert any("last seen: Failed to pull image" in line for line in kept_log.lines)


def test_a_driver_that_hears_of_changes_by_itself_says_when_all_was_well(clock: Any, kept_log: Any) -> None:
    """Nobody looked for two hours, because nothing changed; the tolerance counts from the last good answer."""
    following = follow(
        JOB, limits=WaitLimits(poll_error_tolerance=900.0), poll_interval=30, now=clock.now, log=kept_log
    )
    error = PaiDlcUnavailable("ListJobs: 503", status_code=503)
    following.send(None)
    assert isinstance(following.send({"JobId": JOB, "Status": "Running"}), Wait)
    clock.sleep(7200.0)
    last_good = clock.now() - timedelta(seconds=60)
    following.send(None)
    assert isinstance(following.send(Missed(error, last_good)), Wait)
    clock.sleep(900.0)
    following.send(None)
    with pytest.raises(StopIteration) as end:
        following.send(Missed(error, last_good))
    assert end.value.value.rule == NOT_OBSERVED


def test_many_events_are_not_masked_where_following_must_not_block(
    clock: Any, kept_log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2,000 lines took two seconds, on the one loop of all triggers."""
    masked: list[str] = []

    def count(text: str, limit: int) -> str:
        masked.append(text)
        return text[:limit]

    monkeypatch.setattr(judging, "without_secrets", count)
    start = clock.now()
    script = Scripted(clock, [job("Queuing", start)])
    script.after_stop = job("Stopped", start)
    script.events = [f"event {number}" for number in range(2000)]
    limits = WaitLimits(pending_timeout=600.0)
    script.run(follow(JOB, limits=limits, poll_interval=30, now=clock.now, log=kept_log, spot=True))
    assert masked == script.events[-3:]


def test_events_that_decide_are_masked_by_whoever_may_block(clock: Any, kept_log: Any) -> None:
    script = Scripted(clock, [job("Failed", clock.now(), ReasonCode="JobFailed")])
    script.events = ["pod was preempted, token=planted"]
    following = follow(JOB, limits=WaitLimits(), poll_interval=30, now=clock.now, log=kept_log, spot=True)
    script.run(following)
    assert script.done == [["pod was preempted, token=***"]]
