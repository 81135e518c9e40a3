"""A PostgreSQL and a Redis of our own, on free loopback ports, in a folder of their own."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from airflow_provider_pai_spot.cli.demo.airflow_environment import clean_environment
from airflow_provider_pai_spot.cli.demo.airflow_processes import free_port
from airflow_provider_pai_spot.cli.demo.sessions import Processes, ProcessSession

_UNPRIVILEGED = ("postgres", "nobody")
_USER = "airflow"
_START_SECONDS = 60.0
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.1


class ProgramMissing(RuntimeError):
    """A program that the suite needs is not installed."""


class ServerDidNotStart(RuntimeError):
    """A server ended or did not answer in time; carries the tail of its log."""


def required_programs() -> dict[str, str]:
    """
    Return the programs that are needed, by name.

    :raises ProgramMissing: names what is missing.
    """
    found = {name: _find(name) for name in ("initdb", "postgres", "psql", "redis-server", "redis-cli")}
    missing = [name for name, path in found.items() if path is None]
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        missing.append("setpriv")
    if missing:
        raise ProgramMissing(
            f"chaos needs {', '.join(missing)}, which this machine does not have: install PostgreSQL and Redis "
            "(Debian: apt-get install postgresql redis-server)."
        )
    return {name: str(path) for name, path in found.items()}


def _find(name: str) -> str | None:
    """Debian keeps PostgreSQL's server programs out of PATH."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True)
    return next(filter(None, (shutil.which(name, path=str(folder)) for folder in folders)), shutil.which(name))


class PostgresServer:
    """
    A PostgreSQL that forgets everything: no fsync, a folder of its own, one password.

    :param home: a new folder; handed to an unprivileged user, because PostgreSQL refuses to run as root.
    """

    def __init__(self, home: Path, processes: Processes, programs: dict[str, str]) -> None:
        self.home = home
        self.port = free_port()
        self._processes = processes
        self._programs = programs
        self._password = secrets.token_hex(16)
        self._process: ProcessSession | None = None

    @property
    def address(self) -> str:
        """`user:password@host:port/database`."""
        return f"{_USER}:{self._password}@127.0.0.1:{self.port}/airflow"

    def start(self) -> None:
        """
        Create the cluster and the database `airflow`, and serve.

        :raises ServerDidNotStart: it ended or did not answer in time.
        """
        self._create_cluster()
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "fsync": "off",
            "synchronous_commit": "off",
            "full_page_writes": "off",
            "max_connections": "250",
            "dynamic_shared_memory_type": "mmap",  # a SIGKILL leaves nothing in /dev/shm
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self._process = self._processes.start(
            "postgres",
            [*_as_user(), self._programs["postgres"], "-D", str(self.home / "data"), *options],
            env=clean_environment(),
            log_path=self.home.parent / "postgres.log",
            cwd=self.home,
        )
        _wait_for(self._process, lambda: self._psql("postgres", "select 1"))
        self._psql("postgres", "create database airflow")

    def stop(self) -> None:
        """End it: SIGINT is PostgreSQL's fast shutdown, SIGTERM would wait for its clients."""
        if self._process is not None:
            _end(self._process, signal.SIGINT)

    def _create_cluster(self) -> None:
        self.home.mkdir()
        password_file = self.home / "password"
        password_file.write_text(self._password)
        user = _unprivileged_user()
        if user is not None:
            for path in (self.home, password_file):
                shutil.chown(path, user)
        subprocess.run(
            [
                *(*_as_user(), self._programs["initdb"], "-D", str(self.home / "data"), "--no-sync", "-E", "UTF8"),
                *("--locale=C", "-U", _USER, "--auth=scram-sha-256", f"--pwfile={password_file}"),
            ],
            check=True,
            capture_output=True,
            cwd=self.home,
        )

    def _psql(self, database: str, statement: str) -> bool:
        command = [self._programs["psql"], "-h", "127.0.0.1", "-p", str(self.port), "-U", _USER]
        done = subprocess.run(
            [*command, "-d", database, "-qtc", statement],
            env={**clean_environment(), "PGPASSWORD": self._password},
            capture_output=True,
            check=False,
        )
        return done.returncode == 0


class RedisServer:
    """A Redis that stores nothing, as Celery's broker."""

    def __init__(self, home: Path, processes: Processes, programs: dict[str, str]) -> None:
        self.home = home
        self.port = free_port()
        self._processes = processes
        self._programs = programs

    @property
    def url(self) -> str:
        """Celery's `broker_url`."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """
        Serve.

        :raises ServerDidNotStart: it ended or did not answer in time.
        """
        self.home.mkdir()
        process = self._processes.start(
            "redis",
            [
                *(self._programs["redis-server"], "--port", str(self.port), "--bind", "127.0.0.1"),
                *("--save", "", "--appendonly", "no", "--dir", str(self.home)),
            ],
            env=clean_environment(),
            log_path=self.home.parent / "redis.log",
            cwd=self.home,
        )
        _wait_for(process, self._answers)

    def _answers(self) -> bool:
        command = [self._programs["redis-cli"], "-h", "127.0.0.1", "-p", str(self.port), "ping"]
        done = subprocess.run(command, capture_output=True, check=False)
        return done.stdout.strip() == b"PONG"


def _unprivileged_user() -> str | None:
    """Return whom PostgreSQL runs as, None if that is us."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in _UNPRIVILEGED if name in known)


def _as_user() -> list[str]:
    user = _unprivileged_user()
    if user is None:
        return []
    entry = pwd.getpwnam(user)
    # setpriv replaces itself, so that our signals reach PostgreSQL; runuser would stand in between.
    return ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]


def _wait_for(process: ProcessSession, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not ready():
        if process.exit_code is not None or time.monotonic() > deadline:
            raise ServerDidNotStart(f"{process.name} did not come up:\n{process.log_tail()}")
        time.sleep(_POLL_SECONDS)


def _end(process: ProcessSession, number: signal.Signals) -> None:
    if process.exit_code is not None:
        return
    os.kill(process.session_id, number)
    deadline = time.monotonic() + _STOP_SECONDS
    while process.exit_code is None and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
