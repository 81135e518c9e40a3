"""A burst of submissions goes out at the pace of the setting, whichever processes of the machine make it."""

from __future__ import annotations

import itertools
import logging
import multiprocessing
import stat
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.submission_pace import SubmissionPace
from airflow_provider_pai_spot.attempts.task_jobs import Waiting
from airflow_provider_pai_spot.emulator import DlcEmulator
from airflow_provider_pai_spot.exceptions import PaiDlcThrottled

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class StoppedClock:
    """It is always noon; what is slept is written down."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> datetime:
        return NOON

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)


def pace_of(folder: Path, clock: Any, *, per_second: float = 10.0, place: str = "cn-hangzhou", log: Any = None) -> Any:
    return SubmissionPace(place, per_second=per_second, clock=clock, log=log or logging.getLogger("t"), folder=folder)


def waits_of_one_process(folder: Path, tasks: int) -> list[float]:
    clock = StoppedClock()
    for _ in range(tasks):
        pace_of(folder, clock).wait_for_turn()
    return clock.slept


def test_a_thousand_submissions_of_four_processes_take_a_turn_each(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as processes:
        waits = processes.map(waits_of_one_process, [tmp_path] * 20, [50] * 20)
        turns = sorted(itertools.chain.from_iterable(waits))
    assert turns == [pytest.approx(number / 10, abs=1e-3) for number in range(1, 1000)]  # the first one need not wait


def test_a_machine_at_rest_waits_for_nothing(tmp_path: Path, clock: Any) -> None:
    pace, began = pace_of(tmp_path, clock), clock.now()
    for _ in range(5):
        pace.wait_for_turn()
        clock.sleep(1.0)
    assert clock.now() == began + timedelta(seconds=5)


def test_who_is_throttled_makes_all_wait(tmp_path: Path) -> None:
    clock = StoppedClock()
    pace_of(tmp_path, clock).hold(30.0)
    pace_of(tmp_path, clock).wait_for_turn()
    pace_of(tmp_path, clock).wait_for_turn()
    assert clock.slept == pytest.approx([30.0, 30.1])


def test_other_clouds_do_not_wait_and_a_pace_of_0_is_none(tmp_path: Path) -> None:
    clock = StoppedClock()
    pace_of(tmp_path, clock).hold(30.0)
    pace_of(tmp_path, clock, place="cn-beijing").wait_for_turn()
    pace_of(tmp_path, clock, per_second=0.0).wait_for_turn()
    assert clock.slept == []


@pytest.mark.parametrize("written", [b"", b"hello", b"\x00\xff", f"{NOON.timestamp() + 1e6:.3f}".encode()], ids=repr)
def test_what_else_the_file_holds_delays_nobody(tmp_path: Path, written: bytes) -> None:
    clock = StoppedClock()
    pace_of(tmp_path, clock).hold(0.0)
    [file] = tmp_path.iterdir()
    file.write_bytes(written)
    pace_of(tmp_path, clock).wait_for_turn()
    assert clock.slept == []
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_link_of_somebody_else_is_not_followed(tmp_path: Path, kept_log: Any) -> None:
    clock, victim = StoppedClock(), tmp_path / "victim"
    victim.write_text("kept")
    pace_of(tmp_path, clock).hold(0.0)
    [file] = [one for one in tmp_path.iterdir() if one != victim]
    file.unlink()
    file.symlink_to(victim)
    pace_of(tmp_path, clock, log=kept_log).wait_for_turn()
    assert victim.read_text() == "kept"
    assert "cannot wait for each other" in kept_log.lines[0]


def test_a_long_turn_is_said_once(tmp_path: Path, kept_log: Any) -> None:
    clock = StoppedClock()
    pace_of(tmp_path, clock).hold(60.0)
    pace_of(tmp_path, clock, log=kept_log).wait_for_turn()
    [line] = kept_log.lines
    assert "waiting 60 s" in line


def test_a_burst_reaches_dlc_at_that_pace(emulator: DlcEmulator, new_task: Any, tmp_path: Path) -> None:
    began, count = emulator.control.now(), 60
    for number in range(count):
        paced(new_task(run_id=f"burst-{number}").begin(), tmp_path, emulator).begin()
    created = [entry["at"] for entry in emulator.control.journal("create")][-count:]
    assert emulator.control.now() - began == pytest.approx((count - 1) / 10, abs=0.2)
    assert all(later - earlier >= 0.99 for earlier, later in zip(created, created[10:], strict=False))


def test_ten_minutes_of_throttling_cost_no_try(emulator: DlcEmulator, new_task: Any, tmp_path: Path) -> None:
    task = new_task(run_id="burst")
    emulator.control.fault("CreateJob", "throttle", times=12)
    assert isinstance(paced(task.begin(), tmp_path, emulator).begin(), Waiting)
    assert len(task.jobs()) == 1


def test_throttling_without_an_end_is_told(emulator: DlcEmulator, new_task: Any, tmp_path: Path) -> None:
    task = new_task(run_id="never")
    emulator.control.fault("CreateJob", "throttle", times=None)
    began = task.clock.now()
    with pytest.raises(PaiDlcThrottled):
        paced(task.begin(), tmp_path, emulator).begin()
    assert timedelta(minutes=15) <= task.clock.now() - began < timedelta(minutes=20)


def paced(jobs: Any, folder: Path, emulator: DlcEmulator) -> Any:
    pace = pace_of(folder, jobs.clock, place=emulator.base_url)
    jobs.submitter = replace(jobs.submitter, pace=pace)
    return jobs
