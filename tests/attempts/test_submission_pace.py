"""A burst of submissions goes out at the pace of the setting, whichever processes of the machine make it."""

from __future__ import annotations

import heapq
import itertools
import json
import logging
import multiprocessing
import stat
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.submission_pace import Queue, SubmissionPace
from airflow_provider_pai_spot.attempts.task_jobs import Waiting
from airflow_provider_pai_spot.emulator import DlcEmulator
from airflow_provider_pai_spot.exceptions import PaiDlcThrottled, SpotTotalTimeout

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


class TickingClock:
    """Time passes with each look at it, and nobody can sleep for less than no time, as with the machine's clock."""

    def __init__(self, tick: float) -> None:
        self._now, self._tick = NOON, timedelta(seconds=tick)

    def now(self) -> datetime:
        self._now += self._tick
        return self._now

    def sleep(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        self._now += timedelta(seconds=seconds)

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


@pytest.mark.parametrize("tick", [0.011, 0.023, 0.037, 0.051, 0.07, 0.09])
def test_a_turn_that_comes_while_the_clock_is_read_is_taken(tmp_path: Path, tick: float) -> None:
    clock = TickingClock(tick)
    for _ in range(50):
        pace_of(tmp_path, clock).wait_for_turn()


def test_who_is_throttled_makes_all_wait_and_go_slower(tmp_path: Path, clock: Any) -> None:
    began = clock.now()
    pace_of(tmp_path, clock).throttled(30.0)
    turns = []
    for _ in range(3):
        pace_of(tmp_path, clock).wait_for_turn()
        turns.append((clock.now() - began).total_seconds())
    assert turns == pytest.approx([30.0, 30.2, 30.4], abs=0.01)


def test_a_turn_that_was_taken_before_dlc_throttled_is_taken_anew(tmp_path: Path, clock: Any) -> None:
    began = clock.now()
    pace, other = pace_of(tmp_path, clock), pace_of(tmp_path, clock)
    pace.wait_for_turn()

    def sleep(seconds: float) -> None:
        if clock.now() == began:
            other.throttled(30.0)
        type(clock).sleep(clock, seconds)

    clock.sleep = sleep
    pace.wait_for_turn()
    assert clock.now() - began >= timedelta(seconds=30)


def test_a_quiet_minute_brings_the_full_pace_back(tmp_path: Path, clock: Any) -> None:
    pace = pace_of(tmp_path, clock)
    for _ in range(5):
        pace.throttled(0.0)
        clock.sleep(2.0)
    clock.sleep(60.0)
    began = clock.now()
    for _ in range(11):
        pace.wait_for_turn()
    assert (clock.now() - began).total_seconds() == pytest.approx(1.0, abs=0.001)


@pytest.mark.parametrize("workers", [8, 32, 200])
@pytest.mark.parametrize("accepted", [0.5, 1.0, 2.0, 5.0, 20.0])
def test_the_pace_that_dlc_takes_is_found(accepted: float, workers: int) -> None:
    """A thousand tasks whose submissions DLC takes at some rate are through in at most twice the time that needs."""
    took, longest = burst(1000, workers=workers, accepted=accepted, fastest=10.0)
    assert took <= 2.0 * 1000 / min(accepted, 10.0) + 120
    assert longest < timedelta(hours=1).total_seconds()


def burst(tasks: int, *, workers: int, accepted: float, fastest: float) -> tuple[float, float]:
    """Return when all were submitted, and how long one was throttled at most."""
    queue = Queue(free=0.0, rate=fastest, rated=0.0)
    tokens, refilled, longest, left, now = 1.0, 0.0, 0.0, tasks, 0.0
    waiting: list[tuple[float, int, int, float]] = []  # its turn, which worker, the round, since when it is throttled

    def take(at: float, worker: int, since: float) -> None:
        heapq.heappush(waiting, (queue.take(at, fastest), worker, queue.round, since))

    for worker in range(workers):
        take(0.0, worker, -1.0)
    while left:
        now, worker, taken_in, since = heapq.heappop(waiting)
        if taken_in != queue.round:
            take(now, worker, since)
            continue
        tokens, refilled = min(1.0, tokens + (now - refilled) * accepted), now
        if tokens >= 1.0 - 1e-9:
            tokens, left = tokens - 1.0, left - 1
            longest = max(longest, now - since if since >= 0 else 0.0)
            take(now, worker, -1.0)
        else:
            queue.slow_down(now, 2.0, fastest)
            take(now, worker, since if since >= 0 else now)
    return now, longest


def test_other_clouds_do_not_wait_and_a_pace_of_0_is_none(tmp_path: Path) -> None:
    clock = StoppedClock()
    pace_of(tmp_path, clock).throttled(30.0)
    pace_of(tmp_path, clock, place="cn-beijing").wait_for_turn()
    pace_of(tmp_path, clock, per_second=0.0).wait_for_turn()
    assert clock.slept == []


def stored(**changes: float) -> bytes:
    queue = Queue(free=NOON.timestamp(), rate=10.0, rated=NOON.timestamp())
    return json.dumps(asdict(replace(queue, **changes))).encode()


@pytest.mark.parametrize(
    "written", [b"", b"hello", b"\x00\xff", b"[1]", b"{}", b'{"free": "now"}', stored(held=float("nan"))], ids=repr
)
def test_what_else_the_file_holds_delays_nobody(tmp_path: Path, written: bytes) -> None:
    clock = StoppedClock()
    pace_of(tmp_path, clock).wait_for_turn()
    [file] = tmp_path.iterdir()
    file.write_bytes(written)
    pace_of(tmp_path, clock).wait_for_turn()
    assert clock.slept == []
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["free", "held", "rated"])
def test_a_clock_that_went_wrong_delays_nobody_for_long(tmp_path: Path, name: str) -> None:
    clock = StoppedClock()
    pace_of(tmp_path, clock).wait_for_turn()
    [file] = tmp_path.iterdir()
    file.write_bytes(stored(**{name: NOON.timestamp() + 3600}))
    pace_of(tmp_path, clock).wait_for_turn()
    assert clock.slept == []


def test_a_link_of_somebody_else_is_not_followed(tmp_path: Path, kept_log: Any) -> None:
    clock, victim = StoppedClock(), tmp_path / "victim"
    victim.write_text("kept")
    pace_of(tmp_path, clock).wait_for_turn()
    [file] = [one for one in tmp_path.iterdir() if one != victim]
    file.unlink()
    file.symlink_to(victim)
    pace_of(tmp_path, clock, log=kept_log).wait_for_turn()
    assert victim.read_text() == "kept"
    assert "cannot wait for each other" in kept_log.lines[0]


def test_a_long_turn_is_said_once(tmp_path: Path, clock: Any, kept_log: Any) -> None:
    pace_of(tmp_path, clock).throttled(60.0)
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


def test_nothing_is_sent_after_the_task_s_time(emulator: DlcEmulator, new_task: Any, tmp_path: Path) -> None:
    task = new_task(run_id="late")
    pace_of(tmp_path, task.clock, place=emulator.base_url).throttled(100.0)
    deadline = task.clock.now() + timedelta(seconds=60)
    with pytest.raises(SpotTotalTimeout):
        paced(task.begin(total_deadline=deadline), tmp_path, emulator).begin()
    assert task.jobs() == []


def test_ten_minutes_of_throttling_cost_no_try(emulator: DlcEmulator, new_task: Any, tmp_path: Path) -> None:
    task = new_task(run_id="burst")
    emulator.control.fault("CreateJob", "throttle", times=60)
    began = task.clock.now()
    assert isinstance(paced(task.begin(), tmp_path, emulator).begin(), Waiting)
    assert len(task.jobs()) == 1
    assert task.clock.now() - began >= timedelta(minutes=2)


@pytest.mark.parametrize("per_second", [10.0, 0.0], ids=["a file that is no use", "no pace"])
def test_who_cannot_share_a_pace_waits_longer_and_longer_by_itself(
    emulator: DlcEmulator, new_task: Any, tmp_path: Path, per_second: float
) -> None:
    task = new_task(run_id=f"alone-{per_second}")
    folder = tmp_path / "there is no such folder"
    emulator.control.fault("CreateJob", "throttle", times=5)
    jobs, began = task.begin(), task.clock.now()
    pace = pace_of(folder, jobs.clock, per_second=per_second, log=task.log)
    jobs.submitter = replace(jobs.submitter, pace=pace)
    assert isinstance(jobs.begin(), Waiting)
    assert task.clock.now() - began >= timedelta(seconds=(2 + 4 + 8 + 16 + 32) / 2)
    assert sum("CreateJob is throttled" in line for line in task.log.lines[-60:]) == 1


def test_throttling_without_an_end_is_told(emulator: DlcEmulator, new_task: Any, tmp_path: Path) -> None:
    task = new_task(run_id="never")
    emulator.control.fault("CreateJob", "throttle", times=None)
    began = task.clock.now()
    with pytest.raises(PaiDlcThrottled):
        paced(task.begin(), tmp_path, emulator).begin()
    assert timedelta(hours=1) <= task.clock.now() - began < timedelta(minutes=70)


def paced(jobs: Any, folder: Path, emulator: DlcEmulator) -> Any:
    pace = pace_of(folder, jobs.clock, place=emulator.base_url)
    jobs.submitter = replace(jobs.submitter, pace=pace)
    return jobs
