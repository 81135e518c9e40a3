"""A word on an unusual wait: when it is said, what is asked for it, and that no trouble with it ends the waiting."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.attempts.commands import (
    DiagnoseQueue,
    Look,
    ReadEvents,
    ReadOffers,
    ReadPodEvents,
    Wait,
)
from airflow_provider_pai_spot.attempts.follow import follow
from airflow_provider_pai_spot.attempts.limits import WaitLimits
from airflow_provider_pai_spot.attempts.queue_word import QueueWord, Spoken
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import Verdict
from airflow_provider_pai_spot.exceptions import PaiDlcRefused, PaiDlcUnavailable

JOB = "dlc1abc"
TYPE = "ecs.g7.xlarge"
OFFER = {"InstanceType": TYPE, "SpotStockStatus": "WithStock", "NonProtectSpotDiscount": 0.55}
ROLE = {"EcsSpec": TYPE, "SpotSpec": {"SpotDiscountLimit": 0.4}}
REFUSED = PaiDlcRefused("not allowed", status_code=403)


class Clock:
    """A clock for rules that are tried many times in one test."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 30, 22, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class Log:
    """The same for its log."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def warning(self, message: str, *args: object) -> None:
        self.lines.append(message % args)


class Cloud:
    """A job that waits for `pending` seconds and then succeeds; everything else is answered as told."""

    def __init__(
        self, clock: Any, *, pending: float, offers: Any = None, events: Any = None, status: str = "", quota: str = ""
    ) -> None:
        self.clock = clock
        self.created, self.ends = clock.now(), clock.now() + timedelta(seconds=pending)
        self.offers = [OFFER] if offers is None else offers
        self.events = ["2026-12-01 06:00:00 spot bid too low"] if events is None else events
        self.status, self.quota = status or "Queuing", quota
        self.asked: list[Any] = []

    def job(self) -> dict[str, Any]:
        status = self.status if self.clock.now() < self.ends else "Succeeded"
        created = self.created.strftime("%Y-%m-%dT%H:%M:%SZ")
        pods = [{"PodId": "p0"}, {"PodId": "p1"}, {"PodId": "p2"}]
        shown = {"JobId": JOB, "Status": status, "GmtCreateTime": created, "JobSpecs": [ROLE], "Pods": pods}
        return {**shown, "ResourceId": self.quota}

    def answer(self, command: Any) -> Any:
        match command:
            case Wait(seconds):
                self.clock.sleep(seconds)
                return None
            case Look():
                return self.job()
        self.asked.append(command)
        if isinstance(command, DiagnoseQueue):
            return REFUSED
        return self.offers if isinstance(command, ReadOffers) else self.events

    def follow(self, word: QueueWord, log: Any, poll_interval: float = 30.0) -> Any:
        following = follow(
            JOB,
            limits=WaitLimits(),
            poll_interval=poll_interval,
            now=self.clock.now,
            log=log,
            spot=True,
            companions=(word,),
        )
        reply: Any = None
        while True:
            try:
                reply = self.answer(following.send(reply))
            except StopIteration as end:
                return end.value


def word_of(clock: Any, log: Any, unusual_wait: float = 600.0, **more: Any) -> QueueWord:
    return QueueWord(unusual_wait=unusual_wait, now=clock.now, log=log, **more)


def words(log: Any) -> list[str]:
    return [line for line in log.lines if "has been waiting" in line]


def minutes_said(log: Any) -> list[str]:
    return [line.split("waiting for ")[1].split(" and is")[0] for line in words(log)]


def test_it_speaks_when_the_wait_turns_unusual_and_then_at_doubled_waits(clock: Any, kept_log: Any) -> None:
    cloud = Cloud(clock, pending=6 * 3600)
    assert cloud.follow(word_of(clock, kept_log), kept_log).verdict is Verdict.SUCCEEDED
    assert minutes_said(kept_log) == ["10 min", "20 min", "40 min", "1 h 20 min", "2 h 40 min", "5 h 20 min"]
    assert words(kept_log)[0] == (
        f"WARNING {JOB} has been waiting for 10 min and is Queuing; {TYPE} costs 0.55 of list price, above the bid of "
        "0.4, spot stock is left; newest event: 2026-12-01 06:00:00 spot bid too low"
    )


def test_a_usual_wait_is_not_worth_a_word_nor_a_question(clock: Any, kept_log: Any) -> None:
    cloud = Cloud(clock, pending=599)
    cloud.follow(word_of(clock, kept_log), kept_log)
    assert (words(kept_log), cloud.asked) == ([], [])


def test_zero_switches_it_off(clock: Any, kept_log: Any) -> None:
    cloud = Cloud(clock, pending=6 * 3600)
    cloud.follow(word_of(clock, kept_log, unusual_wait=0), kept_log)
    assert (words(kept_log), cloud.asked) == ([], [])


def test_a_running_job_is_not_spoken_of(clock: Any, kept_log: Any) -> None:
    cloud = Cloud(clock, pending=6 * 3600, status="Running")
    cloud.follow(word_of(clock, kept_log), kept_log)
    assert (words(kept_log), cloud.asked) == ([], [])


def test_a_driver_that_need_not_poll_still_looks_in_time(clock: Any, kept_log: Any) -> None:
    cloud = Cloud(clock, pending=3 * 3600)
    cloud.follow(word_of(clock, kept_log), kept_log, poll_interval=3600.0)
    assert minutes_said(kept_log) == ["10 min", "20 min", "40 min", "1 h 20 min", "2 h 40 min"]


def test_one_question_of_each_kind_is_asked_for_a_line(clock: Any, kept_log: Any) -> None:
    cloud = Cloud(clock, pending=700)
    cloud.follow(word_of(clock, kept_log), kept_log)
    assert cloud.asked == [ReadOffers((TYPE,)), ReadEvents(JOB)]


def test_a_job_that_has_its_machines_is_asked_about_its_pods_and_not_about_prices(clock: Any, kept_log: Any) -> None:
    cloud = Cloud(clock, pending=700, status="EnvPreparing", events=["Back-off: ImagePullBackOff"])
    cloud.follow(word_of(clock, kept_log), kept_log)
    assert cloud.asked == [ReadPodEvents(JOB, "p0"), ReadPodEvents(JOB, "p1"), ReadEvents(JOB)]
    assert "newest pod event: Back-off: ImagePullBackOff" in words(kept_log)[0]


def test_a_missing_permission_is_told_once_and_costs_only_the_prices(clock: Any, kept_log: Any) -> None:
    cloud = Cloud(clock, pending=3000, offers=REFUSED)
    assert cloud.follow(word_of(clock, kept_log), kept_log).verdict is Verdict.SUCCEEDED
    assert ["ListEcsSpecs was refused" in line for line in words(kept_log)] == [True, False, False]
    assert all("spot bid too low" in line for line in words(kept_log))


@pytest.mark.parametrize("trouble", [PaiDlcUnavailable("down"), PaiDlcRefused("no", status_code=400)])
def test_no_trouble_with_its_questions_ends_the_waiting(clock: Any, kept_log: Any, trouble: Exception) -> None:
    cloud = Cloud(clock, pending=3000, offers=trouble, events=trouble)
    assert cloud.follow(word_of(clock, kept_log), kept_log).verdict is Verdict.SUCCEEDED
    assert len(words(kept_log)) == 3
    assert not any("newest event" in line for line in words(kept_log))


def test_another_session_goes_on_where_the_last_one_stopped_speaking(clock: Any, kept_log: Any) -> None:
    cloud = Cloud(clock, pending=3 * 3600)
    spoken = Spoken()
    while clock.now() < cloud.ends:  # each look a process of its own
        word = word_of(clock, kept_log, spoken=spoken)
        carry(word, cloud)
        spoken = word.spoken
        clock.sleep(30)
    assert minutes_said(kept_log) == ["10 min", "20 min", "40 min", "1 h 20 min", "2 h 40 min"]


def test_a_session_that_finds_a_long_wait_lets_a_while_pass_first(clock: Any, kept_log: Any) -> None:
    """A restarted triggerer finds many, and each word takes calls."""
    cloud = Cloud(clock, pending=3 * 3600)
    clock.sleep(3600)
    cloud.follow(word_of(clock, kept_log, patience=240.0), kept_log)
    assert minutes_said(kept_log) == ["1 h 4 min", "1 h 20 min", "2 h 40 min"]


def test_a_restart_begins_another_wait(clock: Any, kept_log: Any) -> None:
    cloud = Cloud(clock, pending=10 * 3600)
    spoken = Spoken(since="2026-11-30T20:00:00+00:00", after=5000.0)
    clock.sleep(600)
    carry(word_of(clock, kept_log, spoken=spoken), cloud)
    assert minutes_said(kept_log) == ["10 min"]


@given(
    unusual=st.floats(1, 1e5),
    looks=st.lists(st.floats(0.1, 1e5), max_size=60),
)
def test_however_it_is_polled_each_doubling_is_said_at_most_once(unusual: float, looks: list[float]) -> None:
    clock, log = Clock(), Log()
    cloud = Cloud(clock, pending=1e9)
    word = word_of(clock, log, unusual_wait=unusual)
    said_at: list[float] = []
    for pause in looks:
        clock.sleep(pause)
        before = len(log.lines)
        carry(word, cloud)
        if len(log.lines) > before:
            said_at.append((clock.now() - cloud.created).total_seconds())
    thresholds = [unusual * 2**power for power in range(64)]
    spans = [sum(1 for threshold in thresholds if threshold <= at) for at in said_at]
    assert spans == sorted(set(spans))
    assert 0 not in spans


def test_a_job_that_queues_for_a_quota_is_diagnosed_and_a_refusal_is_told_once(clock: Any, kept_log: Any) -> None:
    cloud = Cloud(clock, pending=3000, quota="quota1")
    cloud.follow(word_of(clock, kept_log), kept_log)
    assert cloud.asked[:3] == [ReadOffers((TYPE,)), DiagnoseQueue("quota1", JOB), ReadEvents(JOB)]
    assert ["(not allowed)" in line for line in words(kept_log)] == [True, False, False]
    assert all("it queues for quota quota1, which the PAI console can diagnose" in line for line in words(kept_log))
    assert all("costs 0.55 of list price" in line for line in words(kept_log))


def carry(word: QueueWord, cloud: Cloud) -> None:
    asking: Any = word.look(Job(cloud.job()))
    reply: Any = None
    answer: Callable[[Any], Any] = cloud.answer
    while True:
        try:
            reply = answer(asking.send(reply))
        except StopIteration:
            return
