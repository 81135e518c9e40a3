"""Five hundred triggers never block their loop: slow connections, credentials that expire, TLS, delayed answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

pytestmark = pytest.mark.long  # what it watches for are milliseconds, which other tests of the machine would take

TRIGGERS = 500
ATTEMPTS = 4
"""A thread that holds the interpreter may be kept waiting for a core; a call that blocks does so in every attempt."""
PROGRAM = Path(__file__).with_name("many_triggers.py")


class CredentialsService:
    """A credentials URI whose answers take long, and must be renewed 3 s later: the SDK does so 15 minutes ahead."""

    def __init__(self) -> None:
        self.asked = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(service) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler below
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                service.asked += 1
                time.sleep(0.2)
                expiry = datetime.now(UTC) + timedelta(minutes=15, seconds=3)
                keys = {"AccessKeyId": "STS.id", "AccessKeySecret": "secret", "SecurityToken": "token"}
                body = json.dumps({"Code": "Success", **keys, "Expiration": f"{expiry:%Y-%m-%dT%H:%M:%SZ}"}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Stay quiet."""

        return Handler


@pytest.fixture
def credentials() -> Iterator[CredentialsService]:
    service = CredentialsService()
    yield service
    service.close()


@pytest.fixture
def emulator() -> Iterator[DlcEmulator]:
    with DlcEmulator(tls=True, default_plan=JobPlan(run_seconds=None)) as running:
        yield running


def jobs_of(emulator: DlcEmulator, monkeypatch: pytest.MonkeyPatch, count: int) -> list[str]:
    monkeypatch.setenv("AIRFLOW_CONN_PAI_DLC_DEFAULT", emulator.connection_uri())
    monkeypatch.setenv("SSL_CERT_FILE", str(emulator.ca_file))
    spot = {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.6}
    role = {"Type": "Worker", "Image": "i", "PodCount": 1, "EcsSpec": "ecs.g7.xlarge", "SpotSpec": spot}
    body = {"DisplayName": "t", "JobType": "PyTorchJob", "JobSpecs": [role], "UserCommand": "x", "WorkspaceId": "1"}
    hook = PaiDlcHook()
    return [hook.create_job(body) for _ in range(count)]


def run_triggers(
    emulator: DlcEmulator, credentials: CredentialsService, jobs: list[str], folder: Path, *arguments: str
) -> dict[str, Any]:
    """Let a process of its own wait for the jobs, which end after a while, and return what it saw."""
    file, result = folder / "jobs", folder / "result"
    file.write_text("\n".join(jobs))
    connection = emulator.connection_uri(credential_source="uri").replace(
        f"{emulator.access_key_id}:{emulator.access_key_secret}@", ""
    )
    environment = os.environ | {
        "AIRFLOW_CONN_PAI_DLC_DEFAULT": connection,
        "ALIBABA_CLOUD_CREDENTIALS_URI": credentials.url,
        "AIRFLOW__PAI_SPOT__TRIGGER_MIN_DWELL": "0",
        "SSL_CERT_FILE": str(emulator.ca_file),
    }
    command = [sys.executable, str(PROGRAM), str(file), str(result), *arguments]
    # A triggerer's log goes to its supervisor; here it would go to a terminal or disk, which may be slow.
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        emulator.control.set_status(jobs[0], "Succeeded")
        wait_until_watched(emulator)
        emulator.control.fault("ListJobs", "delay", times=10, seconds=0.4)
        for job in jobs[1:]:
            emulator.control.set_status(job, "Succeeded")
        assert process.wait(timeout=180) == 0
    seen: dict[str, Any] = json.loads(result.read_text())
    return seen


def wait_until_watched(emulator: DlcEmulator) -> None:
    before, give_up_at = emulator.control.requests().get("ListJobs", 0), time.monotonic() + 120
    while emulator.control.requests().get("ListJobs", 0) < before + 12:
        assert time.monotonic() < give_up_at
        time.sleep(0.1)


def test_no_callback_of_five_hundred_triggers_takes_a_tenth_of_a_second(
    emulator: DlcEmulator, credentials: CredentialsService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[list[str]] = []
    for _ in range(ATTEMPTS):
        jobs = jobs_of(emulator, monkeypatch, TRIGGERS)
        result = run_triggers(emulator, credentials, jobs, tmp_path)
        assert (result["ended"], result["verdicts"]) == (TRIGGERS, ["succeeded"])
        seen.append(result["slow"])
        if not result["slow"]:
            break
    assert credentials.asked >= 3
    assert [] in seen, seen


def test_a_blocking_call_would_be_seen(
    emulator: DlcEmulator, credentials: CredentialsService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    jobs = jobs_of(emulator, monkeypatch, 3)
    result = run_triggers(emulator, credentials, jobs, tmp_path, "blocking")
    assert any("many_triggers.py" in line for line in result["slow"])
