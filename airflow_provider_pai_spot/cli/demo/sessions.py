"""
Processes that leave nothing behind.

Each one is started as the leader of a session of its own. Airflow puts its task runners into process groups
of their own, so a group is too small a net; a session keeps everything that was forked inside it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Self

import psutil  # type: ignore[import-untyped]  # it ships no annotations

GRACE_SECONDS = 10.0
_POLL_SECONDS = 0.1
_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def session_members(session_id: int) -> list[int]:
    """Return the ids of the session's processes that still run; a zombie runs no more."""
    return [pid for pid in psutil.pids() if _session_of(pid) == session_id and _runs(pid)]


def end_sessions(session_ids: Iterable[int], grace: float = GRACE_SECONDS) -> list[int]:
    """
    End whole sessions: SIGTERM first, and after `grace` seconds SIGKILL for whatever is left.

    :return: the processes that could not be ended, normally none.
    """
    wanted = list(session_ids)
    for session_id in wanted:
        _terminate(session_id)
    left = _wait_until_gone(wanted, grace)
    for pid in left:
        _signal_process(pid, signal.SIGKILL)
    return _wait_until_gone(wanted, grace) if left else []


class ProcessSession:
    """
    A process, and everything it forks, that ends together.

    :param name: what people call it.
    :param command: argument list.
    :param env: its whole environment.
    :param log_path: where standard output and error go, appended.
    :param cwd: its working directory.
    """

    def __init__(self, name: str, command: Sequence[str], *, env: Mapping[str, str], log_path: Path, cwd: Path) -> None:
        self.name = name
        self.log_path = log_path
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - argument lists built in this package, no shell
                list(command),
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def session_id(self) -> int:
        """The leader's process id, which is the session's id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Exit code of the leader, None while it runs."""
        return self._process.poll()

    def log_tail(self, lines: int = 30) -> str:
        """Return the last lines of its log."""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])


class Processes:
    """
    A set of process sessions that ends with the `with` block, or with this process, however that ends.

    A keeper process reads a pipe that only we hold open: the operating system closes it after SIGKILL too,
    and the keeper then ends what is still running.
    """

    def __init__(self) -> None:
        self._running: list[ProcessSession] = []
        self._keeper: subprocess.Popen[str] | None = None

    def start(
        self, name: str, command: Sequence[str], *, env: Mapping[str, str], log_path: Path, cwd: Path
    ) -> ProcessSession:
        """Start a process as the leader of a session of its own; arguments as for `ProcessSession`."""
        with _ending_signals_held():
            process = ProcessSession(name, command, env=env, log_path=log_path, cwd=cwd)
            self._running.append(process)
            self._tell_keeper(f"+{process.session_id}")
        return process

    def stop(self, *processes: ProcessSession, grace: float = GRACE_SECONDS) -> None:
        """
        End these processes, all at the same time, and everything they forked.

        :raises RuntimeError: something could not be ended.
        """
        left = end_sessions([process.session_id for process in processes], grace)
        for process in processes:
            self._forget(process)
        if left:
            names = ", ".join(process.name for process in processes)
            raise RuntimeError(f"Processes {left} of {names} are still there after SIGKILL: end them by hand.")

    def kill(self, process: ProcessSession) -> None:
        """End it without a chance to clean up: what a crash or a lost machine looks like."""
        for pid in session_members(process.session_id):
            _signal_process(pid, signal.SIGKILL)
        _wait_until_gone([process.session_id], GRACE_SECONDS)
        self._forget(process)

    def close(self) -> None:
        """End all that still run."""
        try:
            self.stop(*self._running)
        finally:
            self._dismiss_keeper()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _forget(self, process: ProcessSession) -> None:
        _ = process.exit_code  # reaps the leader
        self._running.remove(process)
        self._tell_keeper(f"-{process.session_id}")

    def _tell_keeper(self, line: str) -> None:
        if self._keeper is None:
            self._keeper = _start_keeper()
        _pipe_of(self._keeper).write(line + "\n")
        _pipe_of(self._keeper).flush()

    def _dismiss_keeper(self) -> None:
        if self._keeper is not None:
            _pipe_of(self._keeper).close()
            self._keeper.wait()
            self._keeper = None


def keep(lines: Iterable[str]) -> list[int]:
    """Follow `+id` and `-id` lines until they end, then end the sessions that are still on the list."""
    watched: set[int] = set()
    for line in lines:
        change = watched.add if line.startswith("+") else watched.discard
        change(int(line[1:]))
    return end_sessions(watched)


def _start_keeper() -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - this very file, no shell
        [sys.executable, "-P", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )


def _pipe_of(process: subprocess.Popen[str]) -> IO[str]:
    if process.stdin is None:
        raise RuntimeError("The keeper was started without a pipe.")
    return process.stdin


@contextlib.contextmanager
def _ending_signals_held() -> Iterator[None]:
    """Put off Ctrl-C and SIGTERM until a process that was just started is on the list of those to end."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread handles signals, so nothing can interrupt here
        return
    held: list[int] = []

    def hold(number: int, _frame: FrameType | None) -> None:
        held.append(number)

    before = {number: signal.signal(number, hold) for number in _ENDING_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for late in held:
            signal.raise_signal(late)


def _wait_until_gone(session_ids: Sequence[int], seconds: float) -> list[int]:
    deadline = time.monotonic() + seconds
    while left := [pid for session_id in session_ids for pid in session_members(session_id)]:
        if time.monotonic() > deadline:
            return left
        time.sleep(_POLL_SECONDS)
    return []


def _terminate(session_id: int) -> None:
    """Ask the leader's group, which forwards to its task runners; without a leader ask each one."""
    if _runs(session_id):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(session_id, signal.SIGTERM)
        return
    for pid in session_members(session_id):
        _signal_process(pid, signal.SIGTERM)


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return None


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _signal_process(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


if __name__ == "__main__":
    keep(sys.stdin)
