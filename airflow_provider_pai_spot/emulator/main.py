"""The emulator as a program: says how to reach it, serves until it is told to stop, leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from airflow_provider_pai_spot.emulator.emulator import DlcEmulator

CONNECTION_VARIABLE = "AIRFLOW_CONN_PAI_DLC_DEFAULT"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve(
    *,
    state_file: Path | None = None,
    say: Callable[[str], None] = print,
    ready: Callable[[DlcEmulator], None] | None = None,
    **arguments: Any,
) -> int:
    """
    Run an emulator until SIGINT or SIGTERM arrives, end it with all its processes, and return 0.

    Call it in the main thread: it handles signals.

    :param state_file: where to write endpoint, keys and control token as JSON, readable by its owner only,
        while the emulator runs.
    :param say: takes each line that tells how to reach it; these hold the access key's secret.
    :param ready: called once it can be reached.
    :param arguments: those of `DlcEmulator`.
    """
    stopped = threading.Event()
    with _stopping(stopped), DlcEmulator(**arguments) as emulator, _state_file(state_file, emulator):
        for line in introduction(emulator):
            say(line)
        if ready is not None:
            ready(emulator)
        stopped.wait()
        say("Stopping.")
    return 0


def introduction(emulator: DlcEmulator) -> Iterator[str]:
    """Yield what somebody needs to know to use a running emulator."""
    runs = "commands really run on this machine" if emulator.execute else "commands are not run"
    yield f"DLC emulator on {emulator.base_url} ({runs})"
    yield f"  AccessKey ID      {emulator.access_key_id}"
    yield f"  AccessKey Secret  {emulator.access_key_secret}"
    yield f"  control token     {emulator.control_token}"
    yield "Point Airflow at it:"
    yield f"  export {CONNECTION_VARIABLE}='{emulator.connection_uri()}'"
    if emulator.ca_file is not None:
        yield f"  export SSL_CERT_FILE='{emulator.ca_file}'"
    yield "  unset HTTP_PROXY HTTPS_PROXY http_proxy https_proxy    # the SDK does not obey NO_PROXY"
    yield "Stop it with Ctrl-C."


def state(emulator: DlcEmulator) -> dict[str, Any]:
    """Return what the state file says of a running emulator."""
    return {
        "pid": os.getpid(),
        "endpoint": emulator.endpoint,
        "base_url": emulator.base_url,
        "access_key_id": emulator.access_key_id,
        "access_key_secret": emulator.access_key_secret,
        "control_token": emulator.control_token,
        "connection_uri": emulator.connection_uri(),
        "ca_file": None if emulator.ca_file is None else str(emulator.ca_file),
    }


@contextmanager
def _stopping(stopped: threading.Event) -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    former = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


@contextmanager
def _state_file(path: Path | None, emulator: DlcEmulator) -> Iterator[None]:
    """Keep the file while the emulator runs; it appears whole, never half-written."""
    if path is None:
        yield
        return
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # mode 0600
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(state(emulator), file, indent=2)
    Path(name).replace(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
