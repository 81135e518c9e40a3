"""A job that DLC itself restarts and that bids again: waited through, counted, and still held to every limit."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from airflow.sdk import Connection

from airflow_provider_pai_spot.attempts.drive import drive
from airflow_provider_pai_spot.attempts.follow import follow
from airflow_provider_pai_spot.attempts.limits import WaitLimits
from airflow_provider_pai_spot.attempts.queue_word import QueueWord
from airflow_provider_pai_spot.dlc.outcome import JobOutcome, StopReason, Verdict
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

TYPE = "ml.gu7xf.8xlarge-gu108"
HOUR = 3600.0


class EmulatedClock:
    """Sleeping lets time pass in the emulator; at moments told beforehand something happens there."""

    def __init__(self, emulator: DlcEmulator) -> None:
        self._emulator = emulator
        self._start = emulator.control.now()
        self.at: dict[float, Any] = {}

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._emulator.control.now(), UTC)

    def sleep(self, seconds: float) -> None:
        until = self._emulator.control.now() + seconds
        for moment in sorted(one for one in self.at if self._start + one <= until):
            self._emulator.control.advance(max(0.0, self._start + moment - self._emulator.control.now()))
            self.at.pop(moment)()
        self._emulator.control.advance(max(0.0, until - self._emulator.control.now()))

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)


@pytest.fixture
def cloud() -> Iterator[DlcEmulator]:
    with DlcEmulator(clock="manual") as emulator:
        yield emulator


@pytest.fixture
def clock(cloud: DlcEmulator) -> EmulatedClock:
    return EmulatedClock(cloud)


@pytest.fixture
def hook(cloud: DlcEmulator, clock: EmulatedClock) -> PaiDlcHook:
    connection = Connection.from_uri(cloud.connection_uri(), conn_id="pai_dlc_default")
    return PaiDlcHook.from_connection(connection, clock=clock)


def submit(hook: PaiDlcHook, cloud: DlcEmulator, plan: JobPlan, most_restarts: int = 3) -> str:
    cloud.control.plan(plan)
    spot = {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.5}
    role = {"Type": "Worker", "Image": "i", "PodCount": 1, "EcsSpec": TYPE, "SpotSpec": spot}
    arguments = f"--enable-job-restart=True --max-num-of-job-restart={most_restarts}"
    settings = {"EnableErrorMonitoringInAIMaster": True, "ErrorMonitoringArgs": arguments}
    vpc = {"VpcId": "vpc-1", "SwitchId": "vsw-1", "SecurityGroupId": "sg-1"}
    body = {"DisplayName": "t", "JobType": "PyTorchJob", "JobSpecs": [role], "UserCommand": "x", "WorkspaceId": "1"}
    return hook.create_job({**body, "Settings": settings, "UserVpc": vpc})


def followed(job_id: str, hook: PaiDlcHook, clock: EmulatedClock, log: Any, **limits: Any) -> JobOutcome:
    word = QueueWord(unusual_wait=600, now=clock.now, log=log)
    following = follow(
        job_id,
        limits=WaitLimits(**limits),
        poll_interval=30,
        now=clock.now,
        log=log,
        spot=True,
        companions=(word,),
    )
    return drive(following, hook, clock)


def test_restarts_are_waited_through_and_counted(
    cloud: DlcEmulator, hook: PaiDlcHook, clock: EmulatedClock, kept_log: Any
) -> None:
    job_id = submit(hook, cloud, JobPlan(run_seconds=HOUR, revoke_after=600, revoke_times=2))
    outcome = followed(job_id, hook, clock, kept_log, pending_timeout=HOUR, run_timeout=2 * HOUR)
    assert (outcome.verdict, outcome.restarts, outcome.stop_reason) == (Verdict.SUCCEEDED, 2, None)
    assert [step[0] for step in outcome.timeline].count("Restarting") == 2
    assert outcome.seconds_running == pytest.approx(600 + 600 + HOUR, abs=5)
    assert len(cloud.control.jobs()) == 1


def test_a_loss_beyond_dlc_s_own_restarts_is_a_loss(
    cloud: DlcEmulator, hook: PaiDlcHook, clock: EmulatedClock, kept_log: Any
) -> None:
    job_id = submit(hook, cloud, JobPlan(run_seconds=HOUR, revoke_after=60, revoke_times=9), most_restarts=2)
    outcome = followed(job_id, hook, clock, kept_log)
    assert (outcome.verdict, outcome.restarts) == (Verdict.REVOKED, 2)


def test_pending_timeout_counts_anew_from_the_restart(
    cloud: DlcEmulator, hook: PaiDlcHook, clock: EmulatedClock, kept_log: Any
) -> None:
    """40 minutes to the first machine and 40 to the second are two waits below an hour; the third is longer."""
    job_id = submit(hook, cloud, JobPlan(run_seconds=9 * HOUR))
    cloud.control.set_stock(TYPE, 0)
    minute = 60.0
    clock.at = {
        40 * minute: lambda: cloud.control.set_stock(TYPE, 1),
        60 * minute: lambda: cloud.control.set_stock(TYPE, 0),
        100 * minute: lambda: cloud.control.set_stock(TYPE, 1),
        120 * minute: lambda: cloud.control.set_stock(TYPE, 0),
    }
    outcome = followed(job_id, hook, clock, kept_log, pending_timeout=HOUR)
    assert (outcome.stop_reason, outcome.restarts) == (StopReason.PENDING_TIMEOUT, 2)
    assert cloud.control.job(job_id)["Status"] == "Stopped"
    ended = datetime.fromisoformat(cloud.control.job(job_id)["GmtFinishTime"]).timestamp() - clock._start
    assert ended == pytest.approx(180 * minute, abs=60)


def test_each_wait_for_a_machine_is_explained_anew(
    cloud: DlcEmulator, hook: PaiDlcHook, clock: EmulatedClock, kept_log: Any
) -> None:
    job_id = submit(hook, cloud, JobPlan(run_seconds=HOUR))
    cloud.control.set_stock(TYPE, 0)
    clock.at = {
        900.0: lambda: cloud.control.set_stock(TYPE, 1),
        1800.0: lambda: cloud.control.set_stock(TYPE, 0),
        2700.0: lambda: cloud.control.set_stock(TYPE, None),
    }
    assert followed(job_id, hook, clock, kept_log).restarts == 1
    said = [line for line in kept_log.lines if "has been waiting" in line]
    assert [line.split("waiting for ")[1].split(";")[0] for line in said] == ["10 min and is Bidding"] * 2
    assert all("within the bid of 0.5, there is no spot stock" in line for line in said)


def test_run_timeout_counts_all_time_in_running_together(
    cloud: DlcEmulator, hook: PaiDlcHook, clock: EmulatedClock, kept_log: Any
) -> None:
    job_id = submit(hook, cloud, JobPlan(run_seconds=9 * HOUR, revoke_after=2000, revoke_times=2))
    outcome = followed(job_id, hook, clock, kept_log, run_timeout=1.5 * HOUR)
    assert (outcome.stop_reason, outcome.restarts) == (StopReason.RUN_TIMEOUT, 2)
    assert outcome.seconds_running == pytest.approx(1.5 * HOUR, abs=60)
    assert cloud.control.job(job_id)["Status"] == "Stopped"
