"""`pai-spot sweep --apply`, as a scheduled DAG or a cron job would run it."""

from __future__ import annotations

import time
from importlib.util import find_spec

from deployment import Deployment

_COMMAND = "import sys; from airflow_provider_pai_spot.cli.main import main; sys.exit(main(sys.argv[1:]))"
_LIMIT_SECONDS = 300.0


def sweep(deployment: Deployment) -> bool:
    """
    Sweep what no task instance owns any more; False if this version has no sweep.

    :raises RuntimeError: it failed or did not end.
    """
    if find_spec("airflow_provider_pai_spot.cli.sweep") is None:
        return False
    process = deployment.run_program("sweep", "-c", _COMMAND, "sweep", "--apply")
    deadline = time.monotonic() + _LIMIT_SECONDS
    while process.exit_code is None and time.monotonic() < deadline:
        time.sleep(0.5)
    if process.exit_code != 0:
        raise RuntimeError(f"pai-spot sweep ended with {process.exit_code}:\n{process.log_tail()}")
    return True
