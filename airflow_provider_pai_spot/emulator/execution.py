"""
Really run a pod's command, as a local process group, and really end it: SIGTERM, grace, SIGKILL.

No container: the command has the rights of the user who started the emulator. What it gets is an environment
without anything of the emulator's own, a new working folder, and its mounts (see `paths`).
"""

from __future__ import annotations

import logging
import os
import selectors
import shlex
import signal
import sys
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Self

from airflow_provider_pai_spot.emulator.paths import Mount, MountMap, checked_root, new_pod_folder
from airflow_provider_pai_spot.emulator.process_group import SYSTEM_PATH, ProcessGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

log = logging.getLogger(__name__)

MAX_LINE_BYTES = 64 * 1024
EXIT_CODE_CANNOT_START = 128  # what Kubernetes reports for a container that could not be started

_READ_BYTES = 64 * 1024
_CONTINUATION = 0x80  # the top bits of each byte of a UTF-8 character but the first
_LEFTOVER_BYTES = 1024 * 1024  # more than a pipe holds
_REST_POLL_SECONDS = 0.05
_CLOSE_MARGIN_SECONDS = 10.0


class LocalExecutor:
    """
    Runs pods as process groups below one folder.

    :param root: everything lies below it: `jobs/<job>/<pod>` and `mounts/<uri>`. Created if absent.
    :param grace_seconds: between SIGTERM and SIGKILL, where the caller does not say.
    :raises ValueError: the folder's name holds spaces or characters that a shell interprets.
    """

    def __init__(self, root: Path, *, grace_seconds: float = 5.0) -> None:
        self.root = checked_root(root)
        self.grace_seconds = grace_seconds
        self._lock = threading.Lock()
        self._closed = False
        self._pods: list[PodProcess] = []

    def start_pod(  # noqa: PLR0917 - a pod: who, what, with what, and whom to tell
        self,
        job_id: str,
        pod_id: str,
        command: str,
        envs: Mapping[str, str],
        mounts: Sequence[Mount],
        on_line: Callable[[str], None],
        on_exit: Callable[[int], None],
    ) -> PodProcess:
        """
        Start `command` and return; callbacks come from the pod's own threads, `on_exit` last and once.

        A command or environment that no process can be given ends like a container that cannot start: a line
        that says why, and exit code 128.

        :param mounts: (mount path, Uri, access) each.
        :raises RuntimeError: the executor is closed.
        :raises OSError: this machine can start no process or create no folder.
        :raises PathEscapeError: a symbolic link leads out of the root folder.
        """
        with self._lock:
            if self._closed:
                raise RuntimeError(f"Pod {pod_id!r} cannot start: this executor was closed.")
            mapped = MountMap.create(self.root, mounts)
            folder = new_pod_folder(self.root, job_id, pod_id)
            environment = clean_environment(folder) | {name: mapped.rewrite(envs[name]) for name in envs}
            pod = self._launch(mapped.rewrite(command), environment, folder, on_line, on_exit)
            self._pods = [*(other for other in self._pods if not other.finished), pod]
            return pod

    def close(self) -> None:
        """
        End all pods this executor started, and only those, and wait until they have ended.

        Callbacks still arrive meanwhile: hold no lock that they take.
        """
        with self._lock:
            self._closed = True
            pods = list(self._pods)
        for pod in pods:
            pod.terminate()
        for pod in pods:
            if pod.wait(self.grace_seconds + _CLOSE_MARGIN_SECONDS) is None:
                log.warning("The processes in %s did not end", pod.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _launch(
        self,
        command: str,
        environment: Mapping[str, str],
        folder: Path,
        on_line: Callable[[str], None],
        on_exit: Callable[[int], None],
    ) -> PodProcess:
        launch = partial(PodProcess, folder=folder, on_line=on_line, on_exit=on_exit, grace_seconds=self.grace_seconds)
        try:
            return launch(command, environment)
        except ValueError as error:
            excuse = f"cannot start the command: {error}"
        last_words = f"printf '%s\\n' {shlex.quote(excuse)}; exit {EXIT_CODE_CANNOT_START}"
        return launch(last_words, clean_environment(folder))


class PodProcess:
    """A pod's command that was started; made by `LocalExecutor.start_pod`."""

    def __init__(
        self,
        command: str,
        environment: Mapping[str, str],
        *,
        folder: Path,
        on_line: Callable[[str], None],
        on_exit: Callable[[int], None],
        grace_seconds: float,
    ) -> None:
        self.folder = folder
        self.exit_code: int | None = None
        self._grace_seconds = grace_seconds
        self._on_exit = on_exit
        self._kill_at: float | None = None
        self._changed = threading.Condition()
        self._done = threading.Event()
        read_end, write_end = os.pipe()
        try:
            self._group = ProcessGroup(command, environment, folder, write_end)
        except BaseException:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        self._output = _OutputReader(read_end, on_line)
        threading.Thread(target=self._see_it_through, name=f"pod {folder.name}", daemon=True).start()

    @property
    def finished(self) -> bool:
        """Whether the pod has ended and `on_exit` has returned."""
        return self._done.is_set()

    def terminate(self, grace_seconds: float | None = None) -> None:
        """
        Send SIGTERM to all processes of the pod, and SIGKILL to those left after the grace; returns at once.

        A second call sends no second SIGTERM; it can only shorten the grace.

        :param grace_seconds: the executor's, if None.
        """
        kill_at = time.monotonic() + (self._grace_seconds if grace_seconds is None else grace_seconds)
        with self._changed:
            first_call = self._kill_at is None
            self._kill_at = kill_at if self._kill_at is None else min(self._kill_at, kill_at)
            self._changed.notify_all()
        if first_call and self.exit_code is None:
            self._group.signal(signal.SIGTERM)
            threading.Thread(target=self._kill_when_due, name=f"grace {self.folder.name}", daemon=True).start()

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait until the pod has ended and return its exit code, or None after `timeout` seconds."""
        return self.exit_code if self._done.wait(timeout) else None

    def _see_it_through(self) -> None:
        exit_code = self._group.wait_for_leader()
        # A shell dies of SIGTERM at once while its child may still be writing a checkpoint: the grace is the
        # child's too. After an end of its own accord nothing lives on, as in a container without its first
        # process.
        while self._within_grace() and self._group.is_alive():
            time.sleep(_REST_POLL_SECONDS)
        self._group.finish()
        self._output.finish()
        with self._changed:
            self.exit_code = exit_code
            self._changed.notify_all()
        try:
            self._on_exit(exit_code)
        finally:
            self._done.set()

    def _within_grace(self) -> bool:
        with self._changed:
            return self._kill_at is not None and time.monotonic() < self._kill_at

    def _kill_when_due(self) -> None:
        with self._changed:
            while self.exit_code is None and (left := self._seconds_left()) > 0:
                self._changed.wait(left)
        self._group.signal(signal.SIGKILL)

    def _seconds_left(self) -> float:
        return 0.0 if self._kill_at is None else self._kill_at - time.monotonic()


class _OutputReader:
    """Hands on a pipe's lines from a thread of its own, until told that all its writers are dead."""

    def __init__(self, descriptor: int, on_line: Callable[[str], None]) -> None:
        self._descriptor = descriptor
        self._on_line = on_line
        self._lines = LineSplitter()
        self._stop_read, self._stop_write = os.pipe()
        os.set_blocking(descriptor, False)
        self._thread = threading.Thread(target=self._run, name="pod output", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """
        Hand on what is still in the pipe and end.

        Does not wait for the pipe's end: a process that got away would hold it open for ever.
        """
        os.write(self._stop_write, b".")
        self._thread.join()
        for descriptor in (self._descriptor, self._stop_read, self._stop_write):
            os.close(descriptor)

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._descriptor, selectors.EVENT_READ)
            selector.register(self._stop_read, selectors.EVENT_READ)
            while self._stop_read not in {key.fd for key, _ in selector.select()}:
                if self._hand_on() == 0:
                    selector.unregister(self._descriptor)
        left = _LEFTOVER_BYTES
        while left > 0 and (count := self._hand_on()):
            left -= count
        self._tell(self._lines.rest())

    def _hand_on(self) -> int | None:
        """Read once and return how many bytes came: 0 at the pipe's end, None while it is empty."""
        try:
            data = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return None
        self._tell(self._lines.feed(data))
        return len(data)

    def _tell(self, lines: Iterator[str]) -> None:
        for line in lines:
            try:
                self._on_line(line)
            except Exception:  # the reader must go on, or the command would block on a full pipe
                log.exception("A line of output was lost: its receiver raised")


class LineSplitter:
    """
    Cuts a stream of bytes into lines of text; invalid UTF-8 becomes U+FFFD.

    :param limit: bytes after which a line is handed on in pieces, as container runtimes do, so that output
        without any line end cannot fill the memory.
    """

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self._limit = limit
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[str]:
        """Yield the lines that `data` completes."""
        *lines, rest = (self._rest + data).split(b"\n")
        for line in lines:
            *pieces, last = self._pieces(line)
            yield from map(_text, pieces)
            yield _text(last.removesuffix(b"\r"))
        *pieces, self._rest = self._pieces(rest)
        yield from map(_text, pieces)

    def rest(self) -> Iterator[str]:
        """Yield the last line if it had no end."""
        if self._rest:
            yield _text(self._rest)
        self._rest = b""

    def _pieces(self, line: bytes) -> Iterator[bytes]:
        while len(line) > self._limit:
            cut = _character_start(line, self._limit)
            yield line[:cut]
            line = line[cut:]
        yield line


def clean_environment(folder: Path) -> dict[str, str]:
    """Return what a command gets besides its job's Envs; `python` is the emulator's own interpreter."""
    own_interpreter = os.path.dirname(sys.executable)  # noqa: PTH120 - '' stays '', not '.'
    return {
        "PATH": os.pathsep.join(filter(None, (own_interpreter, SYSTEM_PATH))),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
    }


def _character_start(line: bytes, index: int) -> int:
    """Return `index`, or up to three bytes before it where a UTF-8 character begins."""
    starts = (i for i in range(index, max(index - 4, 0), -1) if line[i] & 0xC0 != _CONTINUATION)
    return next(starts, index)


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")
