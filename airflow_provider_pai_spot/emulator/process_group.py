"""
One pod's processes on this machine: started together, signalled together, and never left behind.

How they are kept from outliving an emulator that is itself killed with SIGKILL: beside each pod a tiny
`/bin/sh` in a session of its own reads from a pipe whose other end only the emulator holds. A line means "all
is well, go home"; the end of the pipe means that the emulator is gone, and the shell kills the pod.
PR_SET_PDEATHSIG would need `preexec_fn`, which can deadlock a threaded process, reaches only the direct child
and fires when the *thread* that started it ends; a guard in Python would cost far more time and memory a pod.
The pod itself waits at a gate until its guard stands, so there is no moment in which it runs unguarded.

A process that leaves the group (`setsid`) is still found by a mark in its environment. That needs Linux's
/proc: on macOS only the group is signalled, and a process that left it gets away.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

log = logging.getLogger(__name__)

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
POD_MARK = "PAI_SPOT_EMULATOR_POD"
EXIT_CODE_LOST = 255

_SH = "/bin/sh"
_GATE = 'read -r _ || exit 1; exec "$1" -c -- "$2" </dev/null'
_GUARD = """
read -r _ && exit 0
kill -s KILL -- "-$1" 2>/dev/null
for environment in /proc/[0-9]*/environ; do
    process=${environment#/proc/}
    grep -qs -e "$2" "$environment" && kill -s KILL "${process%/environ}" 2>/dev/null
done
"""
_PROC = Path("/proc")
_KILL_PASSES = 200
_KILL_PAUSE_SECONDS = 0.01


def user_shell() -> str:
    """Return the shell that runs commands: bash as on DLC, or sh where there is none."""
    return next((path for path in ("/bin/bash", "/usr/bin/bash") if os.access(path, os.X_OK)), _SH)


def container_exit_code(returncode: int) -> int:
    """Return a return code of `subprocess` as a container reports it: 128 + signal, so 143 for SIGTERM."""
    return returncode if returncode >= 0 else 128 - returncode


class ProcessGroup:
    """
    A running command with all its descendants. Whoever waited for the leader must call `finish`.

    :param command: a shell command.
    :param environment: the whole environment of the command; nothing is inherited.
    :param folder: its working folder.
    :param output: descriptor that receives stdout and stderr.
    :raises OSError: no process can be started.
    :raises ValueError: command or environment hold what no process can be given (NUL, lone surrogates).
    """

    def __init__(self, command: str, environment: Mapping[str, str], folder: Path, output: int) -> None:
        self._mark = f"{POD_MARK}={secrets.token_hex(16)}"
        self._lock = threading.Lock()
        self._finished = False
        self._leader = subprocess.Popen(  # noqa: S603 - running what it is given is its job
            [_SH, "-c", _GATE, "sh", user_shell(), command],
            env={**environment, POD_MARK: self._mark.partition("=")[2]},
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        self.group_id = self._leader.pid
        try:
            self._guard = self._start_guard()
        except OSError:
            _tell(self._leader, b"")
            self._leader.wait()
            raise
        _tell(self._leader, b"go\n")

    def signal(self, number: int) -> None:
        """Send a signal to the whole group; SIGKILL also to who left it. Nothing once it is finished."""
        with self._lock:
            if self._finished:
                return
            self._signal_group(number)
            if number == signal.SIGKILL:
                _kill(self._members())

    def wait_for_leader(self) -> int:
        """
        Block until the command itself has ended and return its exit code in container convention.

        It is not reaped here: until `finish` the group's id stays taken and cannot come to mean a stranger.
        """
        if not hasattr(os, "waitid"):  # macOS before Python 3.13
            return container_exit_code(self._leader.wait())
        try:
            info = os.waitid(os.P_PID, self.group_id, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            log.warning("Something else in this process reaped process %s: exit code lost", self.group_id)
            return EXIT_CODE_LOST
        if info is None or info.si_code == os.CLD_EXITED:
            return info.si_status if info else EXIT_CODE_LOST
        return container_exit_code(-info.si_status)

    def is_alive(self) -> bool:
        """Return whether any process of the pod still runs."""
        return bool(self._members())

    def finish(self) -> None:
        """Kill what is left, send the guard home and reap; a second call does nothing."""
        if self._finished:
            return
        self._kill_rest()
        with self._lock:
            self._finished = True
            _tell(self._guard, b"done\n")
            self._guard.wait()
            self._leader.wait()

    def _start_guard(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - a constant script
            [_SH, "-c", _GUARD, "sh", str(self.group_id), self._mark],
            env={"PATH": SYSTEM_PATH},
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C meant for the emulator must not end its guards first
        )

    def _kill_rest(self) -> None:
        for _ in range(_KILL_PASSES):  # again, because a process may start another while we look
            if not (members := self._members()):
                return
            self._signal_group(signal.SIGKILL)
            _kill(members)
            time.sleep(_KILL_PAUSE_SECONDS)
        log.warning("Processes %s of group %s do not die", sorted(self._members()), self.group_id)

    def _signal_group(self, number: int) -> None:
        # macOS says "not permitted" of a group in which only zombies are left.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.group_id, number)

    def _members(self) -> set[int]:
        if (_PROC / "self/stat").exists():
            return set(members_by_proc(self.group_id, self._mark))
        return set(members_by_ps(self.group_id))


def members_by_proc(group_id: int, mark: str) -> Iterator[int]:
    """Yield the living processes that are in the group or carry the mark in their environment (Linux)."""
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        # It ended while we looked, or is another user's: then it is none of ours.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            # pid (name, which may hold anything) state parent group ...
            state, _parent, group = (folder / "stat").read_bytes().rpartition(b")")[2].split()[:3]
            if state in {b"Z", b"X"}:
                continue
            if int(group) == group_id or mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)


def members_by_ps(group_id: int) -> Iterator[int]:
    """Yield the living processes of the group (macOS)."""
    listing = subprocess.run(
        ["/bin/ps", "-A", "-o", "pid=,pgid=,state="], capture_output=True, text=True, check=True
    ).stdout
    for line in listing.splitlines():
        pid, group, state = line.split()[:3]
        if int(group) == group_id and not state.startswith("Z"):
            yield int(pid)


def _kill(members: set[int]) -> None:
    for pid in members:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _tell(process: subprocess.Popen[bytes], line: bytes) -> None:
    """Write to the process and hang up; one that is already dead needs no telling."""
    pipe = cast("IO[bytes]", process.stdin)
    with contextlib.suppress(BrokenPipeError):
        pipe.write(line)
    with contextlib.suppress(BrokenPipeError):
        pipe.close()
