"""Sweep what no task instance owns any more, as a scheduled DAG or a cron job would."""

from __future__ import annotations

import time
from pathlib import Path

from deployment import Deployment

_PROGRAM = Path(__file__).with_name("sweep_later.py")
_LIMIT_SECONDS = 300.0
_POLL_SECONDS = 0.5


def sweep(deployment: Deployment) -> None:
    """
    Run `pai-spot sweep --apply` as if its grace had passed.

    :raises RuntimeError: it failed or did not end.
    """
    process = deployment.run_program("sweep", str(_PROGRAM), "--apply")
    deadline = time.monotonic() + _LIMIT_SECONDS
    while process.exit_code is None and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    if process.exit_code != 0:
        raise RuntimeError(f"pai-spot sweep ended with {process.exit_code}:\n{process.log_tail()}")
