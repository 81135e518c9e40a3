"""SpotJobTrigger: its stored format, its one event, and when it stops a job."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from blocking_calls import blocking_calls

from airflow_provider_pai_spot.dlc.outcome import JobOutcome, StopReason, Verdict
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.emulator.lifecycle import Phases
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.triggers import watch
from airflow_provider_pai_spot.triggers.early_question import EarlyQuestion
from airflow_provider_pai_spot.triggers.spot_job import SpotJobTrigger

QUICK = Phases(creating=0.05, queuing=0.1, env_preparing=0.05, stopping=0.05, restarting=0.05, bidding=0.1)

# A row that release 0.1.0 stored in a metadata database. It must load in every later release: never edit it.
STORED_BY_0_1_0 = (
    "airflow_provider_pai_spot.triggers.spot_job.SpotJobTrigger",
    {
        "job_id": "dlc1example00000",
        "pai_dlc_conn_id": "pai_dlc_default",
        "region_id": None,
        "workspace_id": None,
        "poll_interval": 30.0,
        "pending_timeout": 7200.0,
        "run_timeout": None,
        "total_deadline": "2026-12-07T02:00:00+00:00",
        "execution_deadline": None,
        "stop_at_limit": True,
        "cancel_on_kill": True,
    },
)


@dataclass
class Instance:
    """What the triggerer tells a trigger about its task instance."""

    dag_id: str = "nightly"
    run_id: str = "scheduled__2026-11-30"
    task_id: str = "train"
    map_index: int = -1


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[DlcEmulator]:
    with DlcEmulator(phases=QUICK, default_plan=JobPlan(run_seconds=0.3)) as running:
        monkeypatch.setenv("AIRFLOW_CONN_PAI_DLC_DEFAULT", running.connection_uri())
        monkeypatch.setenv("AIRFLOW__PAI_SPOT__TRIGGER_MIN_DWELL", "0")
        yield running


def submit(emulator: DlcEmulator, plan: JobPlan | None = None, **changes: Any) -> str:
    if plan is not None:
        emulator.control.plan(plan)
    spot = {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.6}
    role = {"Type": "Worker", "Image": "i", "PodCount": 1, "EcsSpec": "ecs.g7.xlarge", "SpotSpec": spot}
    body = {"DisplayName": "t", "JobType": "PyTorchJob", "JobSpecs": [role], "UserCommand": "x", "WorkspaceId": "1"}
    return PaiDlcHook().create_job(body | changes)


def trigger(job_id: str, **changes: Any) -> SpotJobTrigger:
    return SpotJobTrigger(**{"job_id": job_id, "pai_dlc_conn_id": "pai_dlc_default", "poll_interval": 0.05, **changes})


def owned_by(made: SpotJobTrigger, over: bool | Exception) -> SpotJobTrigger:
    """Give the trigger a task instance, and an Airflow that answers `over`."""

    def answer(_identity: object) -> bool:
        if isinstance(over, Exception):
            raise over
        return over

    made._task_instance = Instance()  # type: ignore[assignment]
    made.ask_airflow = answer
    return made


async def events_of(made: SpotJobTrigger) -> list[dict[str, Any]]:
    return [event.payload async for event in made.run()]


def test_a_stored_row_loads_and_is_stored_again_unchanged() -> None:
    path, kwargs = STORED_BY_0_1_0
    loaded = SpotJobTrigger(**kwargs)
    assert loaded.serialize() == (path, kwargs)
    assert json.loads(json.dumps(kwargs)) == kwargs


def test_a_row_of_only_the_first_two_names_loads() -> None:
    assert SpotJobTrigger(job_id="dlc1", pai_dlc_conn_id="c").serialize()[1]["cancel_on_kill"] is True


def test_what_is_not_asked_for_is_not_stored_and_what_is_comes_back() -> None:
    """A triggerer of an older release takes the rows of tasks that copy no logs."""
    path, kwargs = SpotJobTrigger(job_id="dlc1", pai_dlc_conn_id="c", log_poll_interval=30.0).serialize()
    assert kwargs["log_poll_interval"] == 30.0
    assert SpotJobTrigger(**kwargs).serialize() == (path, kwargs)
    path, kwargs = SpotJobTrigger(job_id="dlc1", pai_dlc_conn_id="c", own_job=False).serialize()
    assert kwargs["own_job"] is False
    assert SpotJobTrigger(**kwargs).serialize() == (path, kwargs)


@pytest.mark.parametrize(("own_job", "verdict"), [(True, Verdict.REVOKED), (False, Verdict.UNKNOWN)])
async def test_a_task_knows_that_its_own_job_bid(emulator: DlcEmulator, own_job: bool, verdict: Verdict) -> None:
    emulator.control.switch("echo_spot_spec", False)
    job_id = submit(emulator, JobPlan(run_seconds=0.3, revoke_after=0.1))
    [event] = await events_of(trigger(job_id, own_job=own_job))
    assert JobOutcome.from_dict(event).verdict is verdict


async def test_it_fires_once_with_a_small_versioned_outcome(emulator: DlcEmulator) -> None:
    job_id = submit(emulator)
    [event] = await events_of(trigger(job_id))
    assert event["version"] == 1
    assert len(json.dumps(event)) < 10_000
    outcome = JobOutcome.from_dict(event)
    assert (outcome.job_id, outcome.verdict) == (job_id, Verdict.SUCCEEDED)


async def test_jobs_of_another_workspace_than_the_connection_s_are_listed_there(emulator: DlcEmulator) -> None:
    jobs = [submit(emulator, JobPlan(run_seconds=1.5), WorkspaceId="7") for _ in range(5)]
    before = emulator.control.requests().get("ListJobs", 0)
    ended = await asyncio.gather(*(events_of(trigger(job_id, poll_interval=0.2)) for job_id in jobs))
    assert [JobOutcome.from_dict(events[0]).verdict for events in ended] == [Verdict.SUCCEEDED] * 5
    single = emulator.control.requests()["GetJob"]
    assert emulator.control.requests()["ListJobs"] - before >= 5
    assert single <= 4 * len(jobs)  # once to find its workspace, and at each change that a list cannot tell whole


async def test_it_copies_logs_beside_the_waiting(
    emulator: DlcEmulator, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__LOG_LAG", "1")
    lines = (*(f"line {n // 2}" for n in range(30)), 'PAI_SPOT_PROGRESS {"step": 30}')
    job_id = submit(emulator, JobPlan(run_seconds=3, logs=lines))
    [event] = await events_of(trigger(job_id, log_poll_interval=0.5))
    assert re.findall(r"\[worker-0\] \S+Z  (line \d+|PAI_SPOT_PROGRESS {.*?})", capfd.readouterr().out) == [*lines]
    assert JobOutcome.from_dict(event).progress == {"step": 30}


async def test_at_a_limit_the_job_is_over_before_the_event_is_fired(emulator: DlcEmulator) -> None:
    job_id = submit(emulator, JobPlan(pending_seconds=600))
    [event] = await events_of(trigger(job_id, pending_timeout=0.2))
    assert JobOutcome.from_dict(event).stop_reason is StopReason.PENDING_TIMEOUT
    assert emulator.control.job(job_id)["Status"] == "Stopped"


async def test_a_deadline_that_passed_while_nobody_looked_still_counts(emulator: DlcEmulator) -> None:
    job_id = submit(emulator, JobPlan(run_seconds=None))
    [event] = await events_of(trigger(job_id, total_deadline="2026-01-01T00:00:00"))
    assert JobOutcome.from_dict(event).stop_reason is StopReason.TOTAL_TIMEOUT


async def test_throttling_and_broken_connections_end_nothing(emulator: DlcEmulator) -> None:
    job_id = submit(emulator)
    emulator.control.fault("GetJob", "throttle", times=3)
    emulator.control.fault("GetJob", "drop", times=3)
    emulator.control.fault("GetJob", "html_error", times=1)
    [event] = await events_of(trigger(job_id))
    assert JobOutcome.from_dict(event).verdict is Verdict.SUCCEEDED


async def test_shutdown_cancels_and_stops_nothing(emulator: DlcEmulator) -> None:
    job_id = submit(emulator, JobPlan(run_seconds=None))
    made = owned_by(trigger(job_id), over=True)
    running = asyncio.create_task(events_of(made))
    await asyncio.sleep(0.5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await made.cleanup()
    assert emulator.control.job(job_id)["Status"] == "Running"


@pytest.mark.parametrize(
    ("over", "cancel_on_kill", "stopped"),
    [
        (True, True, True),
        (False, True, False),
        (RuntimeError("no answer"), True, False),
        (True, False, False),
    ],
    ids=["the task is over", "it was only cleared, or moved", "Airflow does not answer", "cancel_on_kill=False"],
)
async def test_on_kill_stops_only_what_airflow_gave_up(
    emulator: DlcEmulator, over: bool | Exception, cancel_on_kill: bool, stopped: bool
) -> None:
    job_id = submit(emulator, JobPlan(run_seconds=None))
    emulator.control.wait_for(job_id, "Running")
    await owned_by(trigger(job_id, cancel_on_kill=cancel_on_kill), over).on_kill()
    if stopped:
        assert emulator.control.wait_for(job_id, "Stopped") == "Stopped"
    else:
        assert emulator.control.job(job_id)["Status"] == "Running"


async def test_on_kill_repeats_a_stop_that_does_not_go_through(emulator: DlcEmulator) -> None:
    job_id = submit(emulator, JobPlan(run_seconds=None))
    emulator.control.fault("StopJob", "server_error", times=2)
    emulator.control.fault("StopJob", "throttle", times=2)
    await owned_by(trigger(job_id), over=True).on_kill()
    assert emulator.control.wait_for(job_id, "Stopped") == "Stopped"


async def test_on_kill_survives_being_cancelled_again_and_again(emulator: DlcEmulator) -> None:
    """Airflow's triggerer cancels a trigger at every exchange with its supervisor, also while on_kill runs."""
    job_id = submit(emulator, JobPlan(run_seconds=None))
    emulator.control.wait_for(job_id, "Running")
    emulator.control.fault("StopJob", "delay", seconds=0.5)
    killing = asyncio.ensure_future(owned_by(trigger(job_id), over=True).on_kill())
    for _ in range(5):
        await asyncio.sleep(0.1)
        killing.cancel()
    await killing
    assert emulator.control.wait_for(job_id, "Stopped") == "Stopped"


@pytest.mark.parametrize(("cancel_on_kill", "asked"), [(True, ["train"]), (False, [])])
async def test_a_trigger_that_may_have_to_stop_its_job_asks_airflow_as_it_begins(
    emulator: DlcEmulator, monkeypatch: pytest.MonkeyPatch, cancel_on_kill: bool, asked: list[str]
) -> None:
    """The first question takes Airflow long: it must not be the one on which a stop depends."""
    monkeypatch.setattr(watch, "EARLY_QUESTION", EarlyQuestion())
    made = owned_by(trigger(submit(emulator), cancel_on_kill=cancel_on_kill), over=False)
    seen: list[str] = []
    made.ask_airflow = lambda identity: seen.append(identity.task_id) is not None
    await events_of(made)
    assert seen == asked


async def test_without_a_task_instance_nothing_is_stopped(emulator: DlcEmulator) -> None:
    job_id = submit(emulator, JobPlan(run_seconds=None))
    await trigger(job_id).on_kill()
    assert emulator.control.job(job_id)["Status"] != "Stopped"


async def test_all_that_wait_for_one_type_share_one_question_for_its_price(
    emulator: DlcEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__UNUSUAL_WAIT", "1")
    emulator.control.plan(JobPlan(pending_seconds=600), times=None)
    jobs = [submit(emulator) for _ in range(50)]
    await asyncio.gather(*(events_of(trigger(job_id, pending_timeout=3)) for job_id in jobs))
    requests = emulator.control.requests()
    assert requests["ListEcsSpecs"] == 1
    assert requests["GetJobEvents"] >= len(jobs)


async def test_wrong_rules_of_ones_own_do_not_end_the_watching_of_a_job(
    emulator: DlcEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__VERDICT_RULES", "no_such_package_at_all.RULES")
    [event] = await events_of(trigger(submit(emulator, JobPlan(run_seconds=0.2, exit_code=1))))
    assert JobOutcome.from_dict(event).verdict is Verdict.FAILED


async def test_waiting_blocks_its_loop_with_no_call(emulator: DlcEmulator) -> None:
    """Twenty triggers on slow answers; how long a callback takes is the long tests' concern."""
    jobs = [submit(emulator, JobPlan(run_seconds=1.0)) for _ in range(20)]
    await events_of(trigger(submit(emulator)))  # the SDK is imported by then, in a thread
    for operation in ("ListJobs", "GetJob"):
        emulator.control.fault(operation, "delay", times=40, seconds=0.3)
    with blocking_calls() as seen:
        ended = await asyncio.gather(*(events_of(trigger(job_id)) for job_id in jobs))
    emulator.control.clear_faults()
    assert [JobOutcome.from_dict(events[0]).verdict for events in ended] == [Verdict.SUCCEEDED] * 20
    assert seen == []


async def test_a_call_that_blocks_would_be_seen(emulator: DlcEmulator) -> None:
    job_id = submit(emulator)
    with blocking_calls() as seen:
        await asyncio.to_thread(PaiDlcHook().get_job, job_id)
        assert seen == []
        PaiDlcHook().get_job(job_id)
        time.sleep(0.001)  # noqa: ASYNC251 - a planted fault
    assert {call.split()[0] for call in seen} >= {"socket.sendall", "socket.recv_into", "sleep"}
