"""What triggers of one loop share, what they do not, and that a day of waiting leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from scripted_dlc import ScriptedDlc, ids
from virtual_time import LoopClock, in_virtual_time

from airflow_provider_pai_spot.attempts.unseen import NOT_OBSERVED
from airflow_provider_pai_spot.dlc.outcome import JobOutcome, Verdict
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.emulator.lifecycle import Phases
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.triggers import watch, watchers
from airflow_provider_pai_spot.triggers.spot_job import SpotJobTrigger
from airflow_provider_pai_spot.triggers.watchers import connection_of, pace_of, watcher_for


def hook(conn_id: str = "one", **overrides: Any) -> PaiDlcHook:
    connection = Connection(
        conn_id=conn_id, conn_type="pai_dlc", login="id", password="secret", extra='{"region_id": "cn-hangzhou"}'
    )
    return PaiDlcHook.from_connection(connection, **overrides)


async def test_two_hooks_share_a_watcher_if_they_speak_to_the_same_dlc_as_the_same_caller() -> None:
    assert watcher_for(hook()) is watcher_for(hook())


@pytest.mark.parametrize(
    "other",
    [{"conn_id": "two"}, {"region_id": "cn-beijing"}, {"workspace_id": "9"}],
    ids=["another connection", "another region", "another workspace"],
)
async def test_hooks_that_differ_do_not(other: dict[str, str]) -> None:
    assert watcher_for(hook()) is not watcher_for(hook(**other))


async def test_what_dlc_asks_to_wait_holds_in_every_workspace_of_a_caller() -> None:
    here = hook()
    there = here.in_workspace("another")
    assert watcher_for(here) is not watcher_for(there)
    assert pace_of(here) is pace_of(there) is watcher_for(there).pace


def test_each_loop_has_its_own_and_a_closed_loop_is_forgotten() -> None:
    async def mine() -> object:
        return watcher_for(hook())

    first, second = asyncio.run(mine()), asyncio.run(mine())
    assert first is not second
    asyncio.run(asyncio.sleep(0))

    async def alone() -> int:
        watcher_for(hook())
        return len(watchers._by_loop)

    assert asyncio.run(alone()) == 1


async def test_the_last_to_leave_ends_the_watcher_and_the_next_one_gets_another() -> None:
    dlc: Any = ScriptedDlc()
    dlc.add(ids(2))
    first = watcher_for(dlc)
    seats = [first.sit_down(job, 30.0) for job in ids(2)]
    seats[0].leave()
    assert watcher_for(dlc) is first
    seats[1].leave()
    assert watcher_for(dlc) is not first


def test_a_thousand_who_need_a_connection_ask_airflow_once_and_again_half_a_minute_later() -> None:
    asked: list[str] = []

    async def ask(conn_id: str) -> object:
        asked.append(conn_id)
        await asyncio.sleep(0.5)
        return object()

    async def story() -> None:
        found = await asyncio.gather(*(connection_of("one", ask) for _ in range(1000)))
        assert len(set(map(id, found))) == 1
        await asyncio.sleep(31.0)
        assert await connection_of("one", ask) is not found[0]
        await connection_of("two", ask)

    in_virtual_time(story())
    assert asked == ["one", "one", "two"]


def test_who_is_cancelled_while_asking_airflow_leaves_it_to_the_next_and_a_failure_is_kept_for_seconds_only() -> None:
    asked: list[int] = []

    async def ask(_conn_id: str) -> str:
        asked.append(len(asked))
        await asyncio.sleep(5.0)
        if len(asked) == 2:
            raise LookupError("no such connection")
        return "found"

    async def story() -> None:
        first, second, third = (asyncio.create_task(connection_of("one", ask)) for _ in range(3))
        await asyncio.sleep(1.0)
        first.cancel()
        for one in (second, third):
            with pytest.raises(LookupError):
                await one
        await asyncio.sleep(4.0)
        assert await connection_of("one", ask) == "found"

    in_virtual_time(story())
    assert len(asked) == 3


def asking(monkeypatch: pytest.MonkeyPatch, works_from: float) -> list[float]:
    """Let Airflow's look-up of connections fail until then, as its triggerer does when the database is away."""
    asked: list[float] = []

    async def ask(conn_id: str) -> Any:
        now = asyncio.get_running_loop().time()
        asked.append(now)
        if now < works_from:
            raise AirflowNotFoundException(f"The conn_id `{conn_id}` isn't defined")
        return Connection(conn_id=conn_id, conn_type="pai_dlc", login="id", password="s", extra='{"region_id": "r"}')

    monkeypatch.setattr(PaiDlcHook, "aget_connection", ask)
    return asked


def fresh_trigger() -> SpotJobTrigger:
    made = SpotJobTrigger(job_id="dlc1", pai_dlc_conn_id="one")
    made.clock = LoopClock()
    return made


def test_a_thousand_triggers_outlast_an_outage_of_airflow_and_say_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", watchers.__name__)
    asked = asking(monkeypatch, works_from=600.0)

    async def story() -> list[Any]:
        return await asyncio.gather(*(watch._hook_in_time(fresh_trigger()) for _ in range(1000)))

    found = in_virtual_time(story())
    assert all(isinstance(hook, PaiDlcHook) for hook in found)
    assert len(asked) <= 600 / 4 + 2
    lines = [record.getMessage() for record in caplog.records if record.name == watchers.__name__]
    assert [line.split(",")[0] for line in lines] == [
        "Connection 'one' cannot be read from Airflow",
        "Connection 'one' can be read again",
    ]


def test_a_connection_that_stays_away_ends_the_watching_after_the_tolerance_and_not_the_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asking(monkeypatch, works_from=float("inf"))

    async def story() -> tuple[JobOutcome, float]:
        [event] = [event.payload async for event in fresh_trigger().run()]
        return JobOutcome.from_dict(event), asyncio.get_running_loop().time()

    outcome, at = in_virtual_time(story())
    assert (outcome.rule, outcome.job_id) == (NOT_OBSERVED, "dlc1")
    assert "'one'" in outcome.evidence[0]
    assert "isn't defined" in outcome.evidence[0]
    assert 900.0 <= at <= 940.0


@pytest.mark.parametrize(("rules", "threads"), [("", 0), ("no_such_package_at_all.RULES", 1)])
def test_only_rules_of_ones_own_are_looked_for_in_a_thread(
    monkeypatch: pytest.MonkeyPatch, rules: str, threads: int
) -> None:
    """A thousand triggers that start together would queue for it, behind calls to DLC."""
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__VERDICT_RULES", rules)
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__POLL_ERROR_TOLERANCE", "1")
    asking(monkeypatch, works_from=float("inf"))
    used: list[object] = []

    async def counted(call: Any, *args: Any) -> Any:
        used.append(call)
        return call(*args)

    monkeypatch.setattr(watch, "in_dlc_thread", counted)
    assert in_virtual_time(watch.follow_to_the_end(fresh_trigger())).rule == NOT_OBSERVED
    assert len(used) == threads


def test_a_job_is_stopped_with_the_connection_it_was_watched_with_if_there_is_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asking(monkeypatch, works_from=float("inf"))
    made = fresh_trigger()

    async def story() -> Any:
        assert await watch._hook_to_stop_with(made) is None
        made.hook = hook()
        return await watch._hook_to_stop_with(made)

    assert in_virtual_time(story()) is made.hook


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[DlcEmulator]:
    quick = Phases(creating=0.05, queuing=0.05, env_preparing=0.05, stopping=0.05)
    with DlcEmulator(tls=True, phases=quick, default_plan=JobPlan(run_seconds=None)) as running:
        monkeypatch.setenv("AIRFLOW_CONN_PAI_DLC_DEFAULT", running.connection_uri())
        monkeypatch.setenv("SSL_CERT_FILE", str(running.ca_file))
        yield running


def submitted(count: int) -> list[str]:
    spot = {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.6}
    role = {"Type": "Worker", "Image": "i", "PodCount": 1, "EcsSpec": "ecs.g7.xlarge", "SpotSpec": spot}
    body = {"DisplayName": "t", "JobType": "PyTorchJob", "JobSpecs": [role], "UserCommand": "x", "WorkspaceId": "1"}
    return [PaiDlcHook().create_job(body) for _ in range(count)]


def open_sockets() -> int:
    links = (os.path.join("/proc/self/fd", one) for one in os.listdir("/proc/self/fd"))  # noqa: PTH118, PTH208
    return sum(os.path.exists(link) and os.readlink(link).startswith("socket:") for link in links)  # noqa: PTH110, PTH115


def test_a_day_of_waiting_leaks_no_task_thread_or_socket(emulator: DlcEmulator) -> None:
    """Real calls over TLS in virtual time; the counts of the first hour are those of the last."""
    jobs = submitted(20)
    assert [emulator.control.wait_for(job, "Running") for job in jobs] == ["Running"] * 20

    async def story() -> list[Any]:
        waiting = [asyncio.create_task(ended(job)) for job in jobs]
        await asyncio.sleep(3600.0)
        early = counts()
        for hour in range(23):
            await asyncio.sleep(3600.0)
            if hour % 6 == 0:  # one goes, one comes
                waiting.append(asyncio.create_task(ended(jobs[hour % 20])))
        late = counts()
        assert [now <= before + 8 for before, now in zip(early, late, strict=True)] == [True] * 3
        for job in jobs:
            emulator.control.set_status(job, "Succeeded")
        outcomes = await asyncio.gather(*waiting)
        await asyncio.sleep(1.0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return outcomes

    assert {JobOutcome.from_dict(event).verdict for event in in_virtual_time(story())} == {Verdict.SUCCEEDED}
    requests = emulator.control.requests()
    assert requests["ListJobs"] <= 24 * 3600 / 300 * 1.3
    assert requests["GetJob"] == len(jobs) + 4


async def ended(job: str) -> Any:
    trigger = SpotJobTrigger(job_id=job, pai_dlc_conn_id="pai_dlc_default", poll_interval=300.0)
    trigger.clock = LoopClock()
    [event] = [event.payload async for event in trigger.run()]
    return event


def counts() -> tuple[int, int, int]:
    gc.collect()
    return len(asyncio.all_tasks()), threading.active_count(), open_sockets()
