"""The emulator as a process of its own, as `pai-spot emulator` starts it."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from airflow_provider_pai_spot.cli.demo.airflow_environment import clean_environment
from airflow_provider_pai_spot.cli.demo.sessions import Processes
from airflow_provider_pai_spot.emulator.client import EmulatorClient

_START_SECONDS = 60.0
_POLL_SECONDS = 0.1
_PAI_SPOT = "import sys; from airflow_provider_pai_spot.cli.main import main; sys.exit(main(sys.argv[1:]))"


class Cloud:
    """
    An emulated DLC with a control panel.

    :param home: folder for its state file and log.
    :param seed: of its job ids and probabilities.
    """

    def __init__(self, home: Path, seed: int, processes: Processes) -> None:
        self._home = home
        self._seed = seed
        self._processes = processes
        self._state: dict[str, Any] = {}

    def start(self) -> None:
        """
        Serve.

        :raises RuntimeError: it ended or was not ready in time.
        """
        state_file = self._home / "emulator.json"
        process = self._processes.start(
            "emulator",
            [sys.executable, "-c", _PAI_SPOT, "emulator", "--state-file", str(state_file), "--seed", str(self._seed)],
            env=clean_environment(),
            log_path=self._home / "emulator.log",
            cwd=self._home,
        )
        deadline = time.monotonic() + _START_SECONDS
        while not state_file.exists():
            if process.exit_code is not None or time.monotonic() > deadline:
                raise RuntimeError(f"The emulator did not come up:\n{process.log_tail()}")
            time.sleep(_POLL_SECONDS)
        self._state = json.loads(state_file.read_text())
        self.control = EmulatorClient(self._state["base_url"], self._state["control_token"])

    @property
    def connection_uri(self) -> str:
        """The Airflow connection that reaches it."""
        return str(self._state["connection_uri"])
