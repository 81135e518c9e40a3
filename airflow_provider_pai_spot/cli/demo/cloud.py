"""
The demo's cloud: the DLC emulator as a process of its own, really running commands.

Run as a module it is that process: `python -m airflow_provider_pai_spot.cli.demo.cloud STATE_FILE ROOT`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow_provider_pai_spot.cli.demo.airflow_environment import clean_environment
from airflow_provider_pai_spot.cli.demo.sessions import Processes, ProcessSession
from airflow_provider_pai_spot.emulator.client import EmulatorClient

CALM_PRICE = 0.3
"""Market price at the start, as a fraction of list price."""
_POLL_SECONDS = 0.1
_MODULE = "airflow_provider_pai_spot.cli.demo.cloud"


class CloudDidNotStart(RuntimeError):
    """The emulator ended or could not be reached in time; carries the tail of its log."""


class LocalCloud:
    """
    A DLC emulator in another process, and the two views of it: the control panel and the vendor's own SDK.

    :param home: folder for its state file, log, mounts and working folders.
    :param processes: the set its process joins.
    """

    def __init__(self, home: Path, processes: Processes) -> None:
        self._home = home.resolve()
        self._state_file = self._home / "emulator.json"
        self._processes = processes
        self._state: dict[str, Any] = {}

    def start(self, timeout: float = 60.0) -> None:
        """
        Start it and wait until it can be reached.

        :raises CloudDidNotStart: it ended, or took longer than `timeout` seconds.
        """
        self._home.mkdir(parents=True, exist_ok=True)
        process = self._processes.start(
            "emulator",
            [sys.executable, "-m", _MODULE, str(self._state_file), str(self._home / "cloud")],
            env=clean_environment(),
            log_path=self._home / "emulator.log",
            cwd=self._home,
        )
        deadline = time.monotonic() + timeout
        while not self._state_file.exists():
            if process.exit_code is not None or time.monotonic() > deadline:
                raise CloudDidNotStart(_blame(process, timeout))
            time.sleep(_POLL_SECONDS)
        self._state = json.loads(self._state_file.read_text())
        self.control = EmulatorClient(self._state["base_url"], self._state["control_token"])

    @property
    def connection_uri(self) -> str:
        """The Airflow connection that reaches it."""
        return str(self._state["connection_uri"])

    @property
    def base_url(self) -> str:
        """Where it listens."""
        return str(self._state["base_url"])

    def pod_logs(self, job: Mapping[str, Any]) -> list[str]:
        """Return what a job's pods have printed so far, asked with the vendor's SDK like anybody else would."""
        from alibabacloud_pai_dlc20201203.models import GetPodLogsRequest

        lines: list[str] = []
        for pod in job.get("Pods") or []:
            answer = self._sdk().get_pod_logs(job["JobId"], pod["PodId"], GetPodLogsRequest())
            lines += answer.body.logs or []
        return lines

    def _sdk(self) -> Any:
        from alibabacloud_pai_dlc20201203.client import Client
        from alibabacloud_tea_openapi.models import Config

        if "sdk" not in self._state:
            self._state["sdk"] = Client(
                Config(
                    endpoint=self._state["endpoint"],
                    protocol="http",
                    region_id="cn-hangzhou",
                    access_key_id=self._state["access_key_id"],
                    access_key_secret=self._state["access_key_secret"],
                )
            )
        return self._state["sdk"]


def _blame(process: ProcessSession, timeout: float) -> str:
    what = "was not ready in time" if process.exit_code is None else f"ended with exit code {process.exit_code}"
    return f"The emulator {what} ({timeout:g} s). The end of {process.log_path}:\n{process.log_tail()}"


def _serve(state_file: Path, root: Path) -> int:
    """Run the emulator until SIGTERM, with phases long enough to be seen."""
    from airflow_provider_pai_spot.emulator import MarketModel, Phases
    from airflow_provider_pai_spot.emulator.main import serve

    return serve(
        execute=True,
        state_file=state_file,
        root=root,
        market=MarketModel(discount=CALM_PRICE),
        phases=Phases(creating=0.5, queuing=2.0, bidding=2.0, env_preparing=2.0),
    )


if __name__ == "__main__":
    sys.exit(_serve(Path(sys.argv[1]), Path(sys.argv[2])))
