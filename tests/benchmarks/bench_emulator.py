"""
The emulator as a process of its own, over TLS, with jobs that have waited for capacity for an hour, and go on waiting.

As a program: `bench_emulator.py JOBS [wait]`; prints where it is as one JSON line and serves until its input ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

SPOT = {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.6}
ROLE = {"Type": "Worker", "Image": "i", "PodCount": 2, "EcsSpec": "ecs.gn7i-c8g1.2xlarge", "SpotSpec": SPOT}
BODY = {"DisplayName": "t", "JobType": "PyTorchJob", "JobSpecs": [ROLE], "UserCommand": "x", "WorkspaceId": "1"}
HOUR = 3600.0


@dataclass(frozen=True)
class Place:
    """A running emulator."""

    base_url: str
    token: str
    ca_file: str
    connection_uri: str
    jobs: list[str]

    def environment(self) -> dict[str, str]:
        """Return the environment of a process that waits for its jobs."""
        proxies = {"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"}
        kept = {key: value for key, value in os.environ.items() if key not in proxies}
        return kept | {
            "AIRFLOW_CONN_PAI_DLC_DEFAULT": self.connection_uri,
            "AIRFLOW__PAI_SPOT__TRIGGER_MIN_DWELL": "0",
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
            "SSL_CERT_FILE": self.ca_file,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")])),
        }

    def control(self) -> Any:
        """Return the emulator's control panel."""
        from airflow_provider_pai_spot.emulator.client import EmulatorClient

        return EmulatorClient(self.base_url, self.token, self.ca_file)


@contextmanager
def serving(jobs: int) -> Iterator[Place]:
    """Run an emulator that knows that many running jobs."""
    command = [sys.executable, __file__, str(jobs)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        told = next((line for line in process.stdout if line.startswith('{"base_url"')), None)
        assert told is not None, "the emulator did not come up"
        try:
            yield Place(**json.loads(told))
        finally:
            process.stdin.close()


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the median, least and most of each number."""
    return {name: [round(pick(run[name] for run in runs), 3) for pick in (median, min, max)] for name in runs[0]}


def public_roots_and(certificate: Path | None) -> Path:
    """Return what a client of the real DLC trusts, and the emulator: loading it is what a TLS context costs."""
    import certifi

    assert certificate is not None
    bundle = certificate.with_name("bundle.pem")
    bundle.write_text(certifi.contents() + certificate.read_text())
    return bundle


def main(count: int) -> None:
    """Serve."""
    from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
    from airflow_provider_pai_spot.emulator.clock import ManualClock

    clock = ManualClock(time.time() - HOUR)
    with DlcEmulator(tls=True, clock=clock, default_plan=JobPlan(pending_seconds=1e9)) as emulator:
        service = emulator.control._service
        jobs = [service.create_job(BODY, emulator.access_key_id)["JobId"] for _ in range(count)]
        emulator.control.advance(HOUR)
        bundle = public_roots_and(emulator.ca_file)
        place = Place(emulator.base_url, emulator.control_token, str(bundle), emulator.connection_uri(), jobs)
        print(json.dumps(place.__dict__), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]))
