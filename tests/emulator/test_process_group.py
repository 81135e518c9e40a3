from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_pai_spot.emulator.process_group import (
    EXIT_CODE_LOST,
    ProcessGroup,
    container_exit_code,
    members_by_proc,
    members_by_ps,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEADLINE = 20.0
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="found through Linux's /proc")
needs_ps = pytest.mark.skipif(not Path("/bin/ps").exists(), reason="no ps here")

EMULATOR = """
import os, sys, time
from pathlib import Path
from airflow_provider_pai_spot.emulator.process_group import ProcessGroup
names = ["leader", "child", "unmarked", "stray"]
command = '''
echo $$ > leader
sleep 300 & echo $! > child
env -i /bin/sleep 300 & echo $! > unmarked
setsid sleep 300 & echo $! > stray
wait
'''
os.chdir(sys.argv[1])
ProcessGroup(command, {"PATH": "/usr/bin:/bin"}, Path(sys.argv[1]), 1)
while sys.argv[2] == "killed" or not all(os.path.exists(name) and os.path.getsize(name) for name in names):
    time.sleep(0.02)
"""


def eventually(predicate: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        if predicate():
            return True
        time.sleep(0.02)
    return predicate()


def is_running(pid: int) -> bool:
    """A zombie that nobody has reaped yet does not run."""
    listing = subprocess.run(
        ["/bin/ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return bool(listing) and not listing.startswith("Z")


def written_pid(file: Path) -> int:
    assert eventually(lambda: file.exists() and file.read_text().strip() != "")
    return int(file.read_text())


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], ProcessGroup]]:
    started: list[ProcessGroup] = []

    def start(command: str) -> ProcessGroup:
        group = ProcessGroup(command, ENVIRONMENT, tmp_path, sys.stderr.fileno())
        started.append(group)
        return group

    yield start
    for group in started:
        group.finish()


@pytest.mark.parametrize(
    ("command", "code"),
    [
        pytest.param("exit 0", 0, id="success"),
        pytest.param("exit 3", 3, id="own code"),
        pytest.param("kill -TERM $$", 143, id="SIGTERM"),
        pytest.param("kill -KILL $$", 137, id="SIGKILL"),
        pytest.param("no-such-command-anywhere", 127, id="not found"),
        pytest.param("", 0, id="empty"),
        pytest.param("-x", 127, id="looks like an option of the shell"),
        pytest.param("cat", 0, id="reads stdin, which is empty"),
        pytest.param('test -z "$(echo ${#BASH_VERSION})" && exit 9; [[ a == a ]]', 0, id="bash where there is bash"),
    ],
)
def test_the_exit_code_is_what_a_container_would_report(
    start: Callable[[str], ProcessGroup], command: str, code: int
) -> None:
    assert start(command).wait_for_leader() == code


@pytest.mark.parametrize(("returncode", "code"), [(0, 0), (7, 7), (-15, 143), (-9, 137)])
def test_a_signal_counts_as_128_more(returncode: int, code: int) -> None:
    assert container_exit_code(returncode) == code


def test_a_signal_reaches_the_whole_group(start: Callable[[str], ProcessGroup], tmp_path: Path) -> None:
    group = start("sleep 300 & echo $! > child; wait")
    child = written_pid(tmp_path / "child")
    group.signal(signal.SIGTERM)
    assert group.wait_for_leader() == 143
    assert eventually(lambda: not is_running(child))
    assert not group.is_alive()


def test_finish_kills_who_ignores_everything_else(start: Callable[[str], ProcessGroup], tmp_path: Path) -> None:
    group = start("(trap '' TERM HUP INT; echo $BASHPID > child; while :; do sleep 1; done) & wait")
    child = written_pid(tmp_path / "child")
    group.signal(signal.SIGTERM)
    group.wait_for_leader()
    assert group.is_alive()
    group.finish()
    assert not is_running(child)


@needs_proc
def test_finish_finds_who_left_the_group(start: Callable[[str], ProcessGroup], tmp_path: Path) -> None:
    group = start("setsid sh -c 'echo $$ > stray; sleep 300; true' & wait")
    stray = written_pid(tmp_path / "stray")
    group.signal(signal.SIGTERM)
    group.wait_for_leader()
    assert is_running(stray)
    group.finish()
    assert not is_running(stray)


@needs_proc
def test_a_groups_id_cannot_come_to_mean_a_stranger_before_it_is_finished(
    start: Callable[[str], ProcessGroup],
) -> None:
    group = start("exit 0")
    group.wait_for_leader()
    assert Path(f"/proc/{group.group_id}").exists()
    group.finish()
    assert not Path(f"/proc/{group.group_id}").exists()


def test_a_finished_group_is_signalled_no_more(start: Callable[[str], ProcessGroup]) -> None:
    group = start("exit 0")
    group.wait_for_leader()
    group.finish()
    group.signal(signal.SIGKILL)
    assert not group.is_alive()


def test_the_guard_goes_home_when_its_pod_is_finished(start: Callable[[str], ProcessGroup]) -> None:
    group = start("exit 0")
    group.wait_for_leader()
    group.finish()
    assert group._guard.returncode == 0


def test_the_pod_is_finished_even_if_its_guard_was_killed(start: Callable[[str], ProcessGroup]) -> None:
    group = start("exit 4")
    group._guard.kill()
    assert group.wait_for_leader() == 4
    group.finish()


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="no waitid here")
def test_an_exit_code_that_somebody_else_reaped_is_not_taken_for_success(
    start: Callable[[str], ProcessGroup],
) -> None:
    group = start("exit 0")
    os.waitpid(group.group_id, 0)
    assert group.wait_for_leader() == EXIT_CODE_LOST


def test_what_no_process_can_be_given_starts_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="null byte"):
        ProcessGroup("echo a\0b", ENVIRONMENT, tmp_path, sys.stderr.fileno())


@needs_proc
@needs_ps
def test_both_ways_to_look_see_the_same_group(start: Callable[[str], ProcessGroup], tmp_path: Path) -> None:
    group = start("sleep 300 & echo $! > child; wait")
    child = written_pid(tmp_path / "child")
    seen = set(members_by_proc(group.group_id, group._mark))
    assert seen == set(members_by_ps(group.group_id)) == {group.group_id, child}


@needs_proc
@pytest.mark.parametrize("end", ["killed", "exits without closing"])
def test_nothing_outlives_the_emulator(tmp_path: Path, end: str) -> None:
    emulator = subprocess.Popen([sys.executable, "-c", EMULATOR, str(tmp_path), end], stdout=subprocess.DEVNULL)
    pids = [written_pid(tmp_path / name) for name in ("leader", "child", "unmarked", "stray")]
    if end == "killed":
        assert all(map(is_running, pids))
        emulator.kill()
    emulator.wait(DEADLINE)
    assert eventually(lambda: not any(map(is_running, pids)))
