"""Starting and ending: nothing heavy before, nothing left after."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from airflow_provider_pai_spot.emulator import DlcEmulator, ScaledClock

ROOT = Path(__file__).parents[2]


def python(code: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def test_the_sdk_talks_https_to_it(sdk_for: Any) -> None:
    with DlcEmulator(tls=True, clock="manual") as emulator:
        sdk = sdk_for(emulator)
        assert emulator.base_url.startswith("https://127.0.0.1:")
        assert sdk.status(sdk.create()) == "Creating"


def test_nothing_is_left_after_the_end(sdk_for: Any) -> None:
    before = set(threading.enumerate())
    with DlcEmulator(tls=True) as emulator:
        sdk_for(emulator).create()
        port, certificate = emulator.port, emulator.ca_file
        assert certificate is not None
    assert set(threading.enumerate()) <= before
    assert not certificate.exists()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_a_call_in_flight_does_not_hold_up_the_end(sdk_for: Any) -> None:
    with DlcEmulator(clock="manual") as emulator:
        sdk = sdk_for(emulator)
        emulator.control.fault("ListJobs", "delay", seconds=600)

        def call() -> None:
            with pytest.raises(Exception, match=r".*"):
                sdk.list()

        caller = threading.Thread(target=call)
        caller.start()
        while not emulator.control.requests():
            caller.join(0.01)
    caller.join(30)
    assert not caller.is_alive()


def test_it_can_be_started_again(sdk_for: Any) -> None:
    emulator = DlcEmulator(clock="manual")
    for _ in range(2):
        with emulator:
            sdk_for(emulator).create()
            assert len(emulator.control.jobs()) == 1


def test_before_the_start_it_says_how_to_start() -> None:
    with pytest.raises(RuntimeError, match="start"):
        _ = DlcEmulator().endpoint


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"execute": True, "verify_signatures": False}, "verify_signatures"),
        ({"execute": True, "host": "0.0.0.0"}, "host"),
        ({"clock": "slow"}, "clock"),
        ({"behaviours": {"no": 1}}, "behaviour"),
    ],
    ids=["unsigned commands", "commands from elsewhere", "clock", "behaviour"],
)
def test_settings_that_cannot_be_are_refused(arguments: Any, named: Any) -> None:
    with pytest.raises(ValueError, match=named):
        DlcEmulator(**arguments)


def test_real_time_passes_by_itself(sdk_for: Any) -> None:
    with DlcEmulator() as emulator:
        job_id = sdk_for(emulator).create()
        assert emulator.control.wait_for(job_id, "Succeeded", timeout=30) == "Succeeded"


def test_scaled_time_passes_faster(sdk_for: Any) -> None:
    with DlcEmulator(clock=ScaledClock(36_000)) as emulator:
        emulator.control.plan({"run_seconds": 7200})
        job_id = sdk_for(emulator).create()
        emulator.control.wait_for(job_id, "Succeeded", timeout=30)
        assert emulator.control.job(job_id)["Duration"] >= 7200


def test_a_manual_clock_alone_can_be_moved() -> None:
    with DlcEmulator() as emulator, pytest.raises(RuntimeError, match="manual"):
        emulator.control.advance(1)


def test_the_same_seed_makes_the_same_jobs(sdk_for: Any) -> None:
    def made() -> list[str]:
        with DlcEmulator(clock="manual", seed=5) as emulator:
            return [sdk_for(emulator).create() for _ in range(3)]

    assert made() == made()


def test_a_connection_uri_survives_keys_with_any_character() -> None:
    with DlcEmulator(access_key_id="A/K+1", access_key_secret="s:@/?%&") as emulator:
        parts = urlsplit(emulator.connection_uri(namespace="a b"))
        assert parts.scheme == "pai-dlc"
        assert f"{parts.hostname}:{parts.port}" == emulator.endpoint
        assert parts.netloc.startswith("A%2FK%2B1:s%3A%40%2F%3F%25%26@")
        assert parse_qs(parts.query) == {
            "region_id": ["cn-hangzhou"],
            "workspace_id": ["1"],
            "protocol": ["http"],
            "studio_endpoint": [emulator.endpoint],
            "namespace": ["a b"],
        }


def test_signatures_are_checked_when_asked(sdk_for: Any) -> None:
    with DlcEmulator(clock="manual", verify_signatures=True) as emulator:
        sdk = sdk_for(emulator)
        job_id = sdk.create()
        assert sdk.list(tags={"a b": "c/d"}, display_name="ä *") == []
        assert sdk.status(job_id) == "Creating"
        wrong = {"access_key_id": emulator.access_key_id, "access_key_secret": "wrong"}
        with pytest.raises(Exception, match=r"SignatureDoesNotMatch|signature") as refused:
            sdk_for(emulator, wrong).list()
        assert refused.value.code == "SignatureDoesNotMatch"


def test_importing_the_room_or_its_plugin_loads_no_server() -> None:
    code = (
        "import sys, airflow_provider_pai_spot.emulator, airflow_provider_pai_spot.emulator.pytest_plugin;"
        "print(sorted({'fastapi', 'uvicorn', 'starlette', 'airflow'} & set(sys.modules)))"
    )
    assert python(code).communicate(timeout=60)[0].strip() == "[]"


def test_the_fixture_of_the_pytest_plugin_runs_an_emulator(tmp_path: Path) -> None:
    test = tmp_path / "test_user.py"
    test.write_text(
        "import os, pytest\n"
        "@pytest.mark.dlc_emulator(clock='manual', seed=4)\n"
        "def test_dag(dlc_emulator):\n"
        "    assert dlc_emulator.control.jobs() == []\n"
        "    assert 'HTTP_PROXY' not in os.environ\n",
        encoding="utf-8",
    )
    options = ["-q", "-p", "airflow_provider_pai_spot.emulator.pytest_plugin", "--strict-markers", "-c", os.devnull]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(test)],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "HTTP_PROXY": "http://127.0.0.1:9",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_the_program_says_how_to_reach_it_and_ends_on_a_signal(tmp_path: Path, number: Any) -> None:
    file = tmp_path / "state.json"
    code = (
        "import pathlib; from airflow_provider_pai_spot.emulator.main import serve;"
        f"raise SystemExit(serve(state_file=pathlib.Path({str(file)!r}),"
        " say=lambda line: print(line, flush=True)))"
    )
    program = python(code)
    assert program.stdout is not None
    said = "".join(iter(program.stdout.readline, "Stop it with Ctrl-C.\n"))
    state = json.loads(file.read_text(encoding="utf-8"))
    assert file.stat().st_mode & 0o777 == 0o600
    assert state["connection_uri"] in said
    assert {"endpoint", "access_key_id", "access_key_secret", "control_token"} <= set(state)
    program.send_signal(number)
    rest, errors = program.communicate(timeout=60)
    assert (program.returncode, rest, errors) == (0, "Stopping.\n", "")
    assert not file.exists()
