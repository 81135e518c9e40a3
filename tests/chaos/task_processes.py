"""Which operating system process runs a task instance. Airflow's task runner carries the instance's id as its title."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psutil

_TITLE = b"airflow worker -- "


def task_process(uuid: str) -> int | None:
    """Return the process id of the runner of one task instance; None if it does not run."""
    wanted = _TITLE + uuid.encode()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if (folder / "cmdline").read_bytes().startswith(wanted):
                    return int(folder.name)
    return None


def supervisor_of(pid: int) -> int | None:
    """Return the Celery process that watches over a task runner; None if either is gone."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return int(psutil.Process(pid).ppid())
    return None
