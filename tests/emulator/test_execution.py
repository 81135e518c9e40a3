from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_pai_spot.emulator.execution import (
    EXIT_CODE_CANNOT_START,
    MAX_LINE_BYTES,
    LineSplitter,
    LocalExecutor,
    PodProcess,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

DEADLINE = 30.0
CHARACTERS = st.characters(exclude_characters="\r\n", codec="utf-8")
# bash waits for a child that catches SIGTERM and needs a moment to save; the `:` keeps bash from exec'ing it.
SAVES_ON_SIGTERM = """
python -c '
import signal, time
def save(*_):
    time.sleep(0.3)
    print("saved")
    raise SystemExit(0)
signal.signal(signal.SIGTERM, save)
print("ready")
time.sleep(300)
'; :
"""
IGNORES_SIGTERM = "trap '' TERM; echo ready; while :; do sleep 0.1; done"


class Seen:
    """What a pod's owner was told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.exit_codes: list[int] = []
        self._changed = threading.Condition()

    def on_line(self, line: str) -> None:
        with self._changed:
            self.lines.append(line)
            self._changed.notify_all()

    def on_exit(self, code: int) -> None:
        self.exit_codes.append(code)

    def wait_for(self, line: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: line in self.lines, DEADLINE), self.lines


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[LocalExecutor]:
    with LocalExecutor(tmp_path / "root", grace_seconds=0.2) as executor:
        yield executor


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def start(executor: LocalExecutor, seen: Seen) -> Callable[..., PodProcess]:
    def start(
        command: str,
        envs: Mapping[str, str] | None = None,
        mounts: Sequence[tuple[str, str, str]] = (),
        job_id: str = "dlc1",
        pod_id: str = "dlc1-worker-0",
    ) -> PodProcess:
        return executor.start_pod(job_id, pod_id, command, envs or {}, mounts, seen.on_line, seen.on_exit)

    return start


@pytest.fixture
def run(start: Callable[..., PodProcess], seen: Seen) -> Callable[..., list[str]]:
    def run(command: str, **how: object) -> list[str]:
        before = len(seen.lines)
        assert start(command, **how).wait(DEADLINE) is not None
        return seen.lines[before:]

    return run


def test_stdout_and_stderr_arrive_as_one_stream_of_lines(run: Callable[..., list[str]]) -> None:
    assert run("echo one; echo two >&2; echo; printf 'no end'") == ["one", "two", "", "no end"]


def test_all_lines_arrive_before_the_one_exit(start: Callable[..., PodProcess], seen: Seen) -> None:
    at_exit: list[int] = []
    seen.on_exit = lambda code: at_exit.extend((code, len(seen.lines)))  # type: ignore[method-assign]
    assert start("seq 5000; exit 7").wait(DEADLINE) == 7
    assert at_exit == [7, 5000]


def test_a_megabyte_without_a_line_end_arrives_in_pieces(run: Callable[..., list[str]]) -> None:
    lines = run("head -c 1000000 /dev/zero | tr '\\0' x; echo; echo after")
    assert lines[-1] == "after"
    assert "".join(lines[:-1]) == "x" * 1_000_000
    assert max(map(len, lines)) <= MAX_LINE_BYTES


def test_invalid_utf8_is_replaced(run: Callable[..., list[str]]) -> None:
    assert run(r"printf 'ok \303\244 bad \377\n'") == ["ok ä bad �"]


def test_a_background_child_that_holds_the_output_open_delays_nothing(
    start: Callable[..., PodProcess], seen: Seen
) -> None:
    assert start("sleep 300 & echo $!; exit 5").wait(DEADLINE) == 5
    assert not _is_running(int(seen.lines[0]))


def test_a_process_that_got_away_with_the_output_delays_nothing(start: Callable[..., PodProcess], seen: Seen) -> None:
    """`env -i` drops the mark and `setsid` leaves the group: nobody can tell whose process that is."""
    command = "env -i PATH=$PATH setsid sh -c 'echo $$; exec sleep 300' & while :; do sleep 0.05; done"
    pod = start(command)
    _eventually(lambda: bool(seen.lines))
    try:
        pod.terminate(0)
        assert pod.wait(DEADLINE) is not None
    finally:
        os.kill(int(seen.lines[0]), 9)


def test_the_environment_holds_nothing_of_the_emulators_own(
    run: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AIRFLOW_HOME", "ALIBABA_CLOUD_ACCESS_KEY_SECRET", "HTTPS_PROXY", "PYTHONPATH"):
        monkeypatch.setenv(name, "planted-secret")
    lines = run("env -0 | tr '\\0' '\\n'", envs={"MINE": "1"})
    names = {line.partition("=")[0] for line in lines}
    set_by_the_shell = {"PWD", "SHLVL", "_", "OLDPWD"}
    assert names - set_by_the_shell == {
        "PATH", "HOME", "LANG", "TMPDIR", "PYTHONUNBUFFERED", "MINE", "PAI_SPOT_EMULATOR_POD",
    }  # fmt: skip
    assert "planted-secret" not in "\n".join(lines)


def test_python_is_the_emulators_own_interpreter(run: Callable[..., list[str]]) -> None:
    assert run("python -c 'import sys; print(sys.prefix)'") == [sys.prefix]


def test_a_jobs_envs_win(run: Callable[..., list[str]]) -> None:
    assert run("echo $LANG", envs={"LANG": "de_DE.UTF-8"}) == ["de_DE.UTF-8"]


def test_a_pod_works_in_its_own_folder_and_a_restart_gets_a_new_one(
    run: Callable[..., list[str]], executor: LocalExecutor
) -> None:
    folder = executor.root / "jobs" / "dlc1" / "dlc1-worker-0"
    assert run("pwd; echo $HOME $TMPDIR; touch left") == [str(folder), f"{folder} {folder}"]
    assert run("ls; pwd") == [f"{folder}.2"]


def test_what_one_job_writes_to_a_mount_another_finds_there(run: Callable[..., list[str]]) -> None:
    run("echo 7 > /mnt/checkpoints/step", mounts=[("/mnt/checkpoints/", "oss://b.oss/nightly/", "RW")])
    found = run(
        "cat $WHERE/step",
        envs={"WHERE": "/resume"},
        mounts=[("/resume", "oss://b.oss/nightly", "RO")],
        job_id="dlc2",
    )
    assert found == ["7"]


@pytest.mark.parametrize(
    ("command", "envs"),
    [
        pytest.param("echo a\0b", {}, id="NUL in the command"),
        pytest.param("echo", {"A": "\0"}, id="NUL in a value"),
        pytest.param("echo", {"A=B": "1"}, id="equals sign in a name"),
        pytest.param("echo", {"A": "\ud800"}, id="half a character"),
    ],
)
def test_what_no_process_can_be_given_ends_like_a_container_that_cannot_start(
    start: Callable[..., PodProcess], seen: Seen, command: str, envs: dict[str, str]
) -> None:
    assert start(command, envs).wait(DEADLINE) == EXIT_CODE_CANNOT_START
    assert seen.lines[0].startswith("cannot start the command: ")
    assert seen.exit_codes == [EXIT_CODE_CANNOT_START]


def test_the_grace_belongs_to_the_child_even_when_its_shell_is_gone(
    start: Callable[..., PodProcess], seen: Seen
) -> None:
    pod = start(SAVES_ON_SIGTERM)
    seen.wait_for("ready")
    pod.terminate(DEADLINE)
    assert pod.wait(DEADLINE) == 143
    assert seen.lines == ["ready", "saved"]


def test_after_the_grace_comes_sigkill(start: Callable[..., PodProcess], seen: Seen) -> None:
    pod = start(IGNORES_SIGTERM)
    seen.wait_for("ready")
    pod.terminate()
    assert pod.wait(DEADLINE) == 137
    assert seen.exit_codes == [137]


def test_a_second_terminate_can_only_shorten_the_grace(start: Callable[..., PodProcess], seen: Seen) -> None:
    pod = start(IGNORES_SIGTERM)
    seen.wait_for("ready")
    pod.terminate(3600)
    pod.terminate(0.1)
    pod.terminate(3600)
    assert pod.wait(DEADLINE) == 137


def test_terminating_what_has_ended_changes_nothing(start: Callable[..., PodProcess], seen: Seen) -> None:
    pod = start("exit 0")
    assert pod.wait(DEADLINE) == 0
    pod.terminate()
    assert pod.finished
    assert seen.exit_codes == [0]


def test_waiting_for_what_still_runs_returns_none(start: Callable[..., PodProcess]) -> None:
    assert start("sleep 300").wait(0.01) is None


def test_a_receiver_that_raises_stops_neither_output_nor_verdict(
    executor: LocalExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_line: str) -> None:
        raise RuntimeError("receiver broke")

    exit_codes: list[int] = []
    pod = executor.start_pod("dlc1", "p", "seq 3; exit 2", {}, (), refuse, exit_codes.append)
    assert pod.wait(DEADLINE) == 2
    assert exit_codes == [2]
    assert [record.levelname for record in caplog.records] == ["ERROR"] * 3


def test_close_ends_what_it_started_and_only_that(tmp_path: Path, seen: Seen) -> None:
    stranger = subprocess.Popen(["/bin/sleep", "300"])
    try:
        with LocalExecutor(tmp_path / "root", grace_seconds=0.1) as executor:
            pods = [
                executor.start_pod("j", f"p{i}", IGNORES_SIGTERM, {}, (), seen.on_line, seen.on_exit) for i in range(3)
            ]
            _eventually(lambda: seen.lines == ["ready"] * 3)
        assert [pod.exit_code for pod in pods] == [137] * 3
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_closed_executor_starts_nothing(executor: LocalExecutor, start: Callable[..., PodProcess]) -> None:
    executor.close()
    with pytest.raises(RuntimeError, match="was closed"):
        start("echo")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counted through Linux's /proc")
def test_ended_pods_leave_no_descriptors_and_no_children(run: Callable[..., list[str]]) -> None:
    run("echo warm up")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count
    for _ in range(3):
        run("echo again")
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - a count


@settings(max_examples=40, deadline=None)
@given(lines=st.lists(st.text(CHARACTERS, max_size=10), max_size=8), cuts=st.data())
def test_lines_do_not_depend_on_how_the_stream_is_cut(lines: list[str], cuts: st.DataObject) -> None:
    stream = "".join(f"{line}\n" for line in lines).encode()
    splitter, found, at = LineSplitter(), list[str](), 0
    while at < len(stream):
        size = cuts.draw(st.integers(1, len(stream) - at))
        found += splitter.feed(stream[at : at + size])
        at += size
    assert found == lines
    assert list(splitter.rest()) == []


@settings(max_examples=40, deadline=None)
@given(text=st.text(CHARACTERS, min_size=1), limit=st.integers(4, 9))
def test_a_long_line_is_cut_between_characters(text: str, limit: int) -> None:
    splitter = LineSplitter(limit)
    pieces = [*splitter.feed(text.encode()), *splitter.rest()]
    assert "".join(pieces) == text
    assert all(len(piece.encode()) <= limit for piece in pieces)


def _eventually(predicate: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not predicate():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _is_running(pid: int) -> bool:
    state = subprocess.run(
        ["/bin/ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return bool(state) and not state.startswith("Z")
