import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from airflow_provider_pai_spot.cli.demo.sessions import (
    Processes,
    ProcessSession,
    _ending_signals_held,
    end_sessions,
    session_members,
)

PATIENCE_SECONDS = 15
Start = Callable[[str], ProcessSession]
STUBBORN = "trap '' TERM; echo ready; while :; do sleep 1; done"
WITH_A_CHILD_IN_ANOTHER_GROUP = "set -m; sleep 1000 & echo ready; wait"
# A shell ignores SIGINT in what it runs in the background, and that is inherited: Ctrl-C is switched on again here.
PARENT = """
import signal, sys, time
from pathlib import Path
from airflow_provider_pai_spot.cli.demo.sessions import Processes
signal.signal(signal.SIGINT, signal.default_int_handler)
with Processes() as processes:
    started = processes.start("child", ["sh", "-c", "sleep 1000 & wait"], env={"PATH": sys.argv[2]},
                              log_path=Path(sys.argv[1]), cwd=Path("/"))
    print(started.session_id, flush=True)
    time.sleep(1000)
"""


@pytest.fixture
def processes() -> Iterator[Processes]:
    with Processes() as processes:
        yield processes


@pytest.fixture
def start(processes: Processes, tmp_path: Path) -> Callable[[str], ProcessSession]:
    def start_shell(command: str) -> ProcessSession:
        process = processes.start(
            "shell", ["bash", "-c", command], env=os.environ, log_path=tmp_path / "shell.log", cwd=tmp_path
        )
        eventually(lambda: "ready" in process.log_tail())
        return process

    return start_shell


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "It did not happen."
        time.sleep(0.05)


def test_what_was_forked_into_another_process_group_ends_too(start: Start, processes: Processes) -> None:
    process = start(WITH_A_CHILD_IN_ANOTHER_GROUP)
    assert len({os.getpgid(pid) for pid in session_members(process.session_id)}) == 2
    processes.stop(process, grace=1)
    assert session_members(process.session_id) == []


def test_who_ignores_sigterm_is_killed_after_the_grace(start: Start, processes: Processes) -> None:
    process = start(STUBBORN)
    processes.stop(process, grace=0.2)
    assert process.exit_code == -signal.SIGKILL


def test_children_of_a_leader_that_crashed_are_ended(start: Start, processes: Processes) -> None:
    process = start(WITH_A_CHILD_IN_ANOTHER_GROUP)
    os.kill(process.session_id, signal.SIGKILL)
    eventually(lambda: process.exit_code is not None)
    assert len(session_members(process.session_id)) == 1
    processes.stop(process, grace=1)
    assert session_members(process.session_id) == []


def test_kill_leaves_no_chance_to_clean_up(start: Start, processes: Processes) -> None:
    process = start("trap 'echo cleaned' TERM; echo ready; while :; do sleep 0.1; done")
    processes.kill(process)
    assert process.exit_code == -signal.SIGKILL
    assert "cleaned" not in process.log_tail()


def test_ending_what_is_already_gone_is_not_an_error(start: Start) -> None:
    process = start("echo ready")
    eventually(lambda: process.exit_code == 0)
    assert end_sessions([process.session_id]) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_children_end_with_their_parent_however_it_is_ended(number: signal.Signals, tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "log"), os.environ["PATH"]],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[3],
        text=True,
    )
    assert parent.stdout
    session_id = int(parent.stdout.readline())
    assert session_members(session_id)
    parent.send_signal(number)
    parent.communicate(timeout=60)
    eventually(lambda: not session_members(session_id))


def test_a_signal_waits_until_the_new_process_is_on_the_list() -> None:
    seen: list[str] = []
    before = signal.signal(signal.SIGTERM, lambda *_: seen.append("handled"))
    try:
        with _ending_signals_held():
            signal.raise_signal(signal.SIGTERM)
            assert seen == []
        assert seen == ["handled"]
    finally:
        signal.signal(signal.SIGTERM, before)
