"""Copying logs beside the waiting, against the emulator with a clock that is moved by hand: every line exactly once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from seams import EmulatedClock

from airflow_provider_pai_spot.attempts.commands import Command, Do, Following, Look, Pause
from airflow_provider_pai_spot.attempts.drive import drive
from airflow_provider_pai_spot.attempts.follow import follow
from airflow_provider_pai_spot.attempts.ledger import MemoryStore
from airflow_provider_pai_spot.attempts.limits import WaitLimits
from airflow_provider_pai_spot.attempts.log_notes import StoreNotes
from airflow_provider_pai_spot.attempts.log_options import NOT_UPLOADED, OVERWRITTEN, LogOptions
from airflow_provider_pai_spot.attempts.log_stream import LogStream
from airflow_provider_pai_spot.dlc.outcome import JobOutcome
from airflow_provider_pai_spot.dlc.stamps import CHINA
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.emulator.lifecycle import Phases
from airflow_provider_pai_spot.exceptions import PaiDlcUnavailable
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.hooks.retrying import RetryRules

LAG = timedelta(seconds=5)
LINES = tuple(f"step {n // 3}" for n in range(120))  # each text three times
AIMASTER = {
    "EnableErrorMonitoringInAIMaster": True,
    "ErrorMonitoringArgs": "--job-execution-mode=Sync --enable-job-restart=True --max-num-of-job-restart 2",
}
VPC = {"VpcId": "vpc-1", "SwitchId": "vsw-1", "SecurityGroupId": "sg-1"}


@dataclass
class Bench:
    """One try's log, and whoever writes it: streams come and go, what is noted down stays."""

    emulator: DlcEmulator
    log: Any
    clock: EmulatedClock = field(init=False)
    hook: PaiDlcHook = field(init=False)
    store: MemoryStore = field(default_factory=MemoryStore)

    def __post_init__(self) -> None:
        self.clock = EmulatedClock(self.emulator)
        connection = PaiDlcHook.get_connection("pai_dlc_default")
        self.hook = PaiDlcHook.from_connection(connection, retry_rules=RetryRules(attempts=1), clock=self.clock)

    def submit(self, plan: JobPlan, *, pods: int = 1, ecs_spec: str = "ecs.g7.xlarge", **more: Any) -> str:
        self.emulator.control.plan(plan)
        spot = {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.9}
        role = {"Type": "Worker", "Image": "i", "PodCount": pods, "EcsSpec": ecs_spec, "SpotSpec": spot}
        body = {"DisplayName": "t", "JobType": "PyTorchJob", "JobSpecs": [role], "UserCommand": "x", **more}
        return self.hook.create_job({**body, "WorkspaceId": "1"})

    def stream(self, *, interval: float = 30, notes: Any = None, writer: str = "a", **options: Any) -> LogStream:
        chosen = LogOptions(**{"interval": interval, "lag": LAG, "repeats": frozenset({OVERWRITTEN}), **options})
        kept = StoreNotes(self.store) if notes is None else notes
        return LogStream(chosen, now=self.clock.now, log=self.log, notes=kept, try_number=1, writer=writer)

    def follow(self, job_id: str, stream: LogStream, *, looks: int | None = None) -> JobOutcome | None:
        """Follow the job to its end, or for some looks, after which nobody hears of the stream again."""
        following = follow(
            job_id,
            limits=WaitLimits(),
            poll_interval=30,
            now=self.clock.now,
            log=self.log,
            spot=True,
            companions=[stream],
        )
        return drive(following if looks is None else cut_off(following, looks), self.hook, self.clock)

    @property
    def copied(self) -> dict[str, list[str]]:
        """The lines in the log, without their times, by pod."""
        pods: dict[str, list[str]] = {}
        for line in "\n".join(self.log.lines).split("\n"):
            head, _, text = line.removeprefix("INFO ").partition("] ")
            if head.startswith("["):
                pods.setdefault(head[1:], []).append(text.split("  ", 1)[1])
        return pods


@dataclass
class Slow:
    """A DLC that takes nine seconds to answer GetPodLogs."""

    bench: Bench
    asked: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bench.hook, name)

    def get_pod_logs(self, *ids: str, **query: Any) -> list[str]:
        self.asked.append(ids[1][-1])
        self.bench.clock.sleep(9)
        return self.bench.hook.get_pod_logs(*ids, **query)


def cut_off(following: Following, looks: int) -> Generator[Command, Any, Any]:
    """Die before one look more than `looks`, unless the job is over by then."""
    reply: Any = None
    while True:
        try:
            command = following.send(reply)
        except StopIteration as end:
            return end.value
        looks -= isinstance(command, Look)
        if looks < 0:
            return None
        reply = yield command


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[DlcEmulator]:
    with DlcEmulator(clock="manual", phases=Phases(creating=1, queuing=1, env_preparing=1)) as running:
        monkeypatch.setenv("AIRFLOW_CONN_PAI_DLC_DEFAULT", running.connection_uri())
        yield running


@pytest.fixture
def bench(emulator: DlcEmulator, kept_log: Any) -> Bench:
    return Bench(emulator, kept_log)


@pytest.mark.parametrize("window", ["head", "tail"])
@pytest.mark.parametrize("hours", [0, 8], ids=["UTC", "China's time"])
@pytest.mark.parametrize("lag", [0.0, 4.0], ids=["at once", "late"])
def test_every_line_of_every_pod_comes_once(bench: Bench, window: str, hours: int, lag: float) -> None:
    control = bench.emulator.control
    control.switch("log_window", window)
    control.switch("log_utc_offset_hours", hours)
    control.switch("log_lag_seconds", lag)
    plan = JobPlan(run_seconds=300, logs=LINES, aimaster_logs=("watching", "watching"))
    job_id = bench.submit(plan, pods=2, Settings=AIMASTER)
    bench.follow(job_id, bench.stream())
    assert bench.copied == {"worker-0": [*LINES], "worker-1": [*LINES], "aimaster-0": ["watching"] * 2}
    assert not [line for line in bench.log.lines if line.startswith("WARNING")]


@pytest.mark.parametrize("looks", [2, 3, 5, 9])
def test_a_restarted_triggerer_goes_on_where_the_last_one_was(bench: Bench, looks: int) -> None:
    job_id = bench.submit(JobPlan(run_seconds=300, logs=LINES), pods=2)
    for writer in ("first", "second", "third"):
        bench.follow(job_id, bench.stream(writer=writer), looks=looks)
    bench.follow(job_id, bench.stream(writer="fourth"))
    assert bench.copied == {"worker-0": [*LINES], "worker-1": [*LINES]}


@pytest.mark.parametrize("dies_at", ["before its lines", "after its lines"])
def test_a_triggerer_that_dies_while_it_copies_loses_nothing_and_what_may_be_there_twice_is_marked(
    bench: Bench, dies_at: str
) -> None:
    """Lines and notes go to Airflow on two ways; whether lines have arrived that were sent is not known."""
    job_id = bench.submit(JobPlan(run_seconds=300, logs=LINES))
    bench.follow(job_id, bench.stream(writer="first"), looks=3)
    before = bench.copied["worker-0"]
    doomed = bench.stream(writer="second")
    steps = follow(
        job_id, limits=WaitLimits(), poll_interval=30, now=bench.clock.now, log=bench.log, companions=[doomed]
    )
    dying = cut_off_at_pause(steps, after_its_lines=dies_at == "after its lines")
    drive(dying, bench.hook, bench.clock)
    bench.follow(job_id, bench.stream(writer="third"))
    copied = bench.copied["worker-0"]
    twice = [] if dies_at == "before its lines" else [*LINES[len(before) : len(copied) - len(LINES) + len(before)]]
    assert copied == [*before, *twice, *LINES[len(before) :]]
    mark = "WARNING a triggerer was ended while it copied lines: those of one look may be here twice"
    assert bench.log.lines.count(mark) == 1


def cut_off_at_pause(following: Following, *, after_its_lines: bool) -> Generator[Command, Any, Any]:
    """Die when the lines of the first look that has some were noted down as being copied, or were just sent."""
    reply: Any = None
    while True:
        command = following.send(reply)
        if isinstance(command, Pause):
            return
        if isinstance(command, Do) and not after_its_lines and "_show" in repr(command.work):
            return
        reply = yield command


def test_lines_show_their_time_in_utc_whatever_dlc_writes(bench: Bench) -> None:
    bench.emulator.control.switch("log_utc_offset_hours", 8)
    job_id = bench.submit(JobPlan(run_seconds=60, logs=("hello",)))
    began = bench.clock.now() + timedelta(seconds=3)
    bench.follow(job_id, bench.stream())
    assert f"INFO [worker-0] {began:%Y-%m-%dT%H:%M:%SZ}  hello" in bench.log.lines


def test_a_zone_that_is_told_is_not_guessed(bench: Bench) -> None:
    bench.emulator.control.switch("log_utc_offset_hours", 8)
    job_id = bench.submit(JobPlan(run_seconds=120, logs=LINES))
    bench.follow(job_id, bench.stream(offset=CHINA))
    assert bench.copied == {"worker-0": [*LINES]}


def test_the_lines_of_a_second_job_follow_those_of_the_lost_one(bench: Bench) -> None:
    """Two triggerers: each has a log file of its own, and both are shown."""
    lost = bench.submit(JobPlan(run_seconds=300, logs=LINES, revoke_after=100))
    bench.follow(lost, bench.stream(writer="first"))
    before = bench.copied["worker-0"]
    bench.follow(bench.submit(JobPlan(run_seconds=60, logs=("again",))), bench.stream(writer="second"))
    assert before == [*LINES[:41]]
    assert bench.copied["worker-0"] == [*before, "again"]


def test_what_airflow_overwrites_at_a_deferral_is_written_again_once(bench: Bench) -> None:
    """One triggerer: its log file of the try begins anew with the second job's trigger."""
    lost = bench.submit(JobPlan(run_seconds=300, logs=LINES, revoke_after=100), pods=2)
    bench.follow(lost, bench.stream(), looks=3)
    del bench.log.lines[:]  # the trigger was handed out again
    bench.follow(lost, bench.stream())
    whole = {name: [*LINES[:41]] for name in ("worker-0", "worker-1")}
    assert bench.copied == whole
    del bench.log.lines[:]
    bench.follow(bench.submit(JobPlan(run_seconds=60, logs=("again",)), pods=2), bench.stream())
    assert bench.copied == {name: [*lines, "again"] for name, lines in whole.items()}
    assert [line for line in bench.log.lines if "again" in line and lost in line] == [
        f"INFO Airflow keeps no lines of {lost} that were copied before; here they are again"
    ]


def test_of_a_job_that_two_triggerers_watched_each_writes_its_own_part_again(bench: Bench) -> None:
    lost = bench.submit(JobPlan(run_seconds=300, logs=LINES, revoke_after=200))
    bench.follow(lost, bench.stream(writer="first"), looks=3)
    of_first = bench.copied["worker-0"]
    del bench.log.lines[:]
    bench.follow(lost, bench.stream(writer="second"))
    of_second = bench.copied["worker-0"]
    assert of_first + of_second == [*LINES[:81]]
    del bench.log.lines[:]
    bench.follow(bench.submit(JobPlan(run_seconds=30, logs=("again",))), bench.stream(writer="first"))
    assert bench.copied["worker-0"] == [*of_first, "again"]


def test_what_a_triggerer_that_was_ended_has_not_uploaded_is_written_again(bench: Bench) -> None:
    """Remote logging: the storage has what triggers wrote that came to their end, and nothing else."""
    uploaded: list[str] = []

    def watch(job_id: str, writer: str, *, looks: int | None = None) -> None:
        bench.follow(job_id, bench.stream(writer=writer, repeats=frozenset({NOT_UPLOADED})), looks=looks)
        if looks is None:
            uploaded.extend(bench.copied["worker-0"])
        del bench.log.lines[:]

    lost = bench.submit(JobPlan(run_seconds=300, logs=LINES, revoke_after=200))
    watch(lost, "first", looks=3)
    watch(lost, "second", looks=3)
    watch(lost, "third")
    watch(bench.submit(JobPlan(run_seconds=30, logs=("again",))), "third")
    assert uploaded == [*LINES[:81], "again"]


def test_where_lines_stay_nothing_is_written_again(bench: Bench) -> None:
    lost = bench.submit(JobPlan(run_seconds=300, logs=LINES, revoke_after=100))
    bench.follow(lost, bench.stream(repeats=frozenset()))
    bench.follow(bench.submit(JobPlan(run_seconds=30, logs=("again",))), bench.stream(repeats=frozenset()))
    assert bench.copied["worker-0"] == [*LINES[:41], "again"]


def test_a_pod_that_started_again_first_tells_its_former_life_to_the_end(bench: Bench) -> None:
    plan = JobPlan(run_seconds=100, logs=LINES[:30], revoke_after=47)
    job_id = bench.submit(plan, pods=2, ecs_spec="ml.gu7xf.8xlarge-gu108", Settings=AIMASTER, UserVpc=VPC)
    bench.follow(job_id, bench.stream())
    job = bench.emulator.control.job(job_id)
    assert [len(pod["HistoryPods"]) for pod in job["Pods"][:2]] == [1, 1]
    lives = [*LINES[:15], *LINES[:30]]
    assert bench.copied == {"worker-0": lives, "worker-1": lives}


def test_of_a_pod_that_started_again_and_again_the_notes_stay_small_and_nothing_is_read_twice(bench: Bench) -> None:
    """AIMaster is used with hundreds of restarts."""
    often = {**AIMASTER, "ErrorMonitoringArgs": "--enable-job-restart=True --max-num-of-job-restart 200"}
    plan = JobPlan(run_seconds=100, logs=LINES[:30], revoke_after=12, revoke_times=60)
    job_id = bench.submit(plan, ecs_spec="ml.gu7xf.8xlarge-gu108", Settings=often, UserVpc=VPC)
    bench.follow(job_id, bench.stream(), looks=60)
    stored = json.dumps(bench.store.get("pai_spot_log"))
    bench.follow(job_id, bench.stream(writer="b"))
    restarts = len(bench.emulator.control.job(job_id)["Pods"][0]["HistoryPods"])
    assert restarts == 60
    assert len(stored) < 10_000
    assert bench.copied == {"worker-0": [*([*LINES[:4]] * restarts), *LINES[:30]]}


def test_a_job_that_was_over_before_anybody_looked_is_copied_at_once(bench: Bench) -> None:
    job_id = bench.submit(JobPlan(run_seconds=10, logs=LINES))
    bench.clock.sleep(3600)
    bench.follow(job_id, bench.stream())
    assert bench.copied == {"worker-0": [*LINES]}
    assert bench.clock.now() - datetime.fromisoformat(job_end(bench, job_id)) < timedelta(seconds=3600)


@pytest.mark.parametrize("window", ["head", "tail"])
def test_all_of_a_long_log_is_read_at_the_end_though_one_look_is_too_short(bench: Bench, window: str) -> None:
    bench.emulator.control.switch("log_window", window)
    lines = tuple(f"line {n}" for n in range(20_000))
    job_id = bench.submit(JobPlan(run_seconds=3 * 86_400, logs=lines))
    bench.clock.sleep(3 * 86_400 + 3600)
    bench.follow(job_id, bench.stream(lines_per_look=40_000))
    assert bench.copied == {"worker-0": [*lines]}
    assert "lines skipped" not in "".join(bench.log.lines)


def test_a_log_that_cannot_be_read_to_its_end_in_time_is_cut_and_one_line_says_so(bench: Bench) -> None:
    lines = tuple(f"line {n}" for n in range(20_000))
    job_id = bench.submit(JobPlan(run_seconds=3 * 86_400, logs=lines))
    bench.clock.sleep(3 * 86_400 + 3600)
    following = follow(
        job_id,
        limits=WaitLimits(),
        poll_interval=30,
        now=bench.clock.now,
        log=bench.log,
        companions=[bench.stream(lines_per_look=40_000)],
    )
    drive(following, Slow(bench), bench.clock)
    copied = bench.copied["worker-0"]
    assert copied == [*lines[: len(copied)]]
    assert 0 < len(copied) < len(lines)
    [said] = [line for line in bench.log.lines if "lines skipped" in line]
    assert said.startswith("WARNING worker-0: … lines skipped: its log could not be read to its end in time")


def test_what_is_shown_again_of_a_long_log_is_all_of_it(bench: Bench) -> None:
    lines = tuple(f"line {n}" for n in range(20_000))
    lost = bench.submit(JobPlan(run_seconds=3 * 86_400, logs=lines, revoke_after=3 * 86_400 - 60))
    bench.clock.sleep(3 * 86_400 + 3600)
    bench.follow(lost, bench.stream(lines_per_look=40_000))
    before = bench.copied["worker-0"]
    del bench.log.lines[:]
    bench.follow(bench.submit(JobPlan(run_seconds=60, logs=("again",))), bench.stream(lines_per_look=40_000))
    assert bench.copied["worker-0"] == [*before, "again"]


def job_end(bench: Bench, job_id: str) -> str:
    return str(bench.emulator.control.job(job_id)["GmtFinishTime"])


def test_the_last_lines_are_waited_for(bench: Bench) -> None:
    bench.emulator.control.switch("log_lag_seconds", 4.0)
    job_id = bench.submit(JobPlan(run_seconds=57, logs=LINES))
    outcome = bench.follow(job_id, bench.stream())
    assert outcome is not None
    assert bench.copied == {"worker-0": [*LINES]}


def test_a_burst_is_written_in_blocks_each_line_with_its_pod(bench: Bench) -> None:
    """What Airflow's triggerer does for one record takes about a millisecond."""
    lines = tuple(f"line {n}" for n in range(1_000))
    job_id = bench.submit(JobPlan(run_seconds=20, logs=lines))
    bench.follow(job_id, bench.stream())
    assert bench.copied == {"worker-0": [*lines]}
    assert len([line for line in bench.log.lines if line.startswith("INFO [")]) == 100 + 900 / 50


@pytest.mark.parametrize("window", ["head", "tail"])
def test_more_than_dlc_gives_in_one_answer_is_read_in_parts(bench: Bench, window: str) -> None:
    lines = tuple(f"line {n}" for n in range(9_000))
    bench.emulator.control.switch("log_window", window)
    job_id = bench.submit(JobPlan(run_seconds=60, logs=lines))
    bench.follow(job_id, bench.stream(interval=600, lines_per_look=10_000))
    assert bench.copied == {"worker-0": [*lines]}


def test_a_flood_is_cut_and_what_follows_is_read(bench: Bench) -> None:
    lines = (*[f"flood {n}" for n in range(3_000)], *["calm"] * 10)
    job_id = bench.submit(JobPlan(run_seconds=301, logs=lines))
    bench.follow(job_id, bench.stream(lines_per_look=100))
    copied = bench.copied["worker-0"]
    assert copied[:100] == [*lines[:100]]
    assert len(copied) < 1_300
    assert "WARNING worker-0: … lines skipped: more than 100 are new at one look ([pai_spot] log_lines_per_look)" in (
        bench.log.lines
    )
    assert max(Counter(copied).values()) <= 10


def test_of_many_pods_some_are_copied_and_one_line_says_so(bench: Bench) -> None:
    plan = JobPlan(run_seconds=60, logs=("hello",), aimaster_logs=("watching",))
    job_id = bench.submit(plan, pods=5, Settings=AIMASTER)
    bench.follow(job_id, bench.stream(pods=2))
    assert sorted(bench.copied) == ["aimaster-0", "worker-0", "worker-1"]
    about = "WARNING the logs of 3 more pods are not copied while they run ([pai_spot] log_pods)"
    assert bench.log.lines.count(about) == 1


def test_a_log_that_cannot_be_read_is_told_once_and_read_later(bench: Bench) -> None:
    job_id = bench.submit(JobPlan(run_seconds=300, logs=LINES))
    bench.clock.sleep(10)
    bench.emulator.control.fault("GetPodLogs", "server_error", times=3)
    outcome = bench.follow(job_id, bench.stream())
    assert outcome is not None
    assert outcome.verdict.value == "succeeded"
    assert bench.copied == {"worker-0": [*LINES]}
    assert len([line for line in bench.log.lines if "cannot be read for now" in line]) == 1


def test_a_dlc_that_answers_slowly_keeps_nobody_from_looking_at_the_job(bench: Bench) -> None:
    job_id = bench.submit(JobPlan(run_seconds=600, logs=LINES), pods=6)
    slow = Slow(bench)
    steps = follow(
        job_id, limits=WaitLimits(), poll_interval=30, now=bench.clock.now, log=bench.log, companions=[bench.stream()]
    )
    drive(steps, slow, bench.clock)
    assert slow.asked[:6] == [*"012345"]
    assert bench.copied == {f"worker-{index}": [*LINES] for index in range(6)}
    assert bench.emulator.control.requests()["GetJob"] >= 600 / (30 + 3 * 9)


class BrokenNotes:
    """An Airflow that does not answer."""

    def read(self) -> Any:
        raise RuntimeError("no answer")

    def write(self, _value: Any) -> None:
        raise RuntimeError("no answer")


def test_without_an_airflow_that_remembers_lines_are_copied_all_the_same(bench: Bench) -> None:
    job_id = bench.submit(JobPlan(run_seconds=300, logs=LINES))
    bench.follow(job_id, bench.stream(notes=BrokenNotes()))
    assert bench.copied == {"worker-0": [*LINES]}
    assert len([line for line in bench.log.lines if "lines may be repeated" in line]) == 1


@pytest.mark.parametrize("value", [None, "x", [], {"version": 9}, {"version": 1, "try": 1, "parts": ["x", {}, None]}])
def test_notes_that_somebody_has_edited_read_as_nothing_shown(bench: Bench, value: Any) -> None:
    bench.store.set("pai_spot_log", value)
    bench.follow(bench.submit(JobPlan(run_seconds=60, logs=LINES)), bench.stream())
    assert bench.copied == {"worker-0": [*LINES]}


def test_trouble_of_its_own_ends_the_copying_and_not_the_waiting(bench: Bench) -> None:
    class Log:
        lines: list[str] = bench.log.lines

        def info(self, _message: str, *arguments: object) -> None:
            if str(arguments[0]).startswith("["):
                raise OSError("disk full")

        warning = bench.log.warning

    job_id = bench.submit(JobPlan(run_seconds=60, logs=LINES))
    stream = LogStream(LogOptions(interval=30), now=bench.clock.now, log=Log())
    outcome = bench.follow(job_id, stream)
    assert outcome is not None
    assert outcome.verdict.value == "succeeded"
    assert "WARNING pod logs are not copied any more: OSError: disk full" in bench.log.lines


def test_notes_are_small_and_plain(bench: Bench) -> None:
    job_id = bench.submit(JobPlan(run_seconds=300, logs=LINES), pods=8)
    bench.follow(job_id, bench.stream(), looks=6)
    assert len(json.dumps(bench.store.get("pai_spot_log"))) < 8 * 300


def test_progress_is_the_last_that_was_printed(bench: Bench) -> None:
    logs = ("start", 'PAI_SPOT_PROGRESS {"step": 1}', 'PAI_SPOT_PROGRESS {"step": 2}', "end")
    stream = bench.stream()
    bench.follow(bench.submit(JobPlan(run_seconds=90, logs=logs), pods=2), stream)
    assert stream.progress == {"step": 2}


def test_nothing_is_asked_of_a_job_that_waits(bench: Bench) -> None:
    job_id = bench.submit(JobPlan(pending_seconds=3600, run_seconds=1))
    bench.follow(job_id, bench.stream(interval=1), looks=20)
    assert "GetPodLogs" not in bench.emulator.control.requests()


def test_a_short_interval_is_kept_between_two_polls(bench: Bench) -> None:
    job_id = bench.submit(JobPlan(run_seconds=100, logs=LINES))
    bench.follow(job_id, bench.stream(interval=10))
    assert 8 <= bench.emulator.control.requests()["GetPodLogs"] <= 14


def test_an_answer_that_is_no_list_is_a_problem_like_any_other(bench: Bench) -> None:
    job_id = bench.submit(JobPlan(run_seconds=60, logs=LINES))

    class Odd:
        def __getattr__(self, name: str) -> Any:
            return getattr(bench.hook, name)

        def get_pod_logs(self, *_ids: str, **_query: Any) -> list[str]:
            raise PaiDlcUnavailable("down")

    stream = bench.stream()
    following = follow(
        job_id, limits=WaitLimits(), poll_interval=30, now=bench.clock.now, log=bench.log, companions=[stream]
    )
    assert drive(following, Odd(), bench.clock).verdict.value == "succeeded"
    assert "WARNING the log of worker-0 cannot be read for now: down" in bench.log.lines
