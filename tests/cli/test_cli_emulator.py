from __future__ import annotations

import argparse
import json
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_pai_spot.cli.emulator import behaviour_switch
from airflow_provider_pai_spot.dlc.job_request import build_job_request
from airflow_provider_pai_spot.emulator import BEHAVIOURS, EmulatorClient
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

Call = Callable[..., Any]
PROGRAM = "import sys; from airflow_provider_pai_spot.cli.main import main; sys.exit(main())"


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return a function that starts `pai-spot emulator` as a process and returns it once it serves."""
    running: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROGRAM, "emulator", "--state-file", str(tmp_path / "state.json"), *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout is not None
        for line in process.stdout:
            if "Stop it with Ctrl-C" in line:
                break
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture
def state(tmp_path: Path) -> Callable[[], dict[str, Any]]:
    return lambda: json.loads((tmp_path / "state.json").read_text())


def _client(state: dict[str, Any]) -> EmulatorClient:
    return EmulatorClient(state["base_url"], state["control_token"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_it_serves_until_it_is_told_to_stop_and_leaves_nothing(
    started: Call, tmp_path: Path, number: signal.Signals
) -> None:
    process = started()
    state_file = tmp_path / "state.json"
    assert stat.S_IMODE(state_file.stat().st_mode) == 0o600
    process.send_signal(number)
    assert process.wait(timeout=20) == 0
    assert not state_file.exists()


def test_its_options_reach_the_emulator(
    pai_spot: Call, started: Call, state: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job of ten hours is over at once, and ListJobs does not show it yet."""
    started("--behaviour", "list_lag_seconds=1e9", "--speed", "36000", "--run-seconds", "36000")
    told = state()
    monkeypatch.setenv("AIRFLOW_CONN_STARTED", told["connection_uri"])
    arguments = {"image": "i", "user_command": "c", "ecs_spec": "ecs.g7.xlarge", "spot_discount_limit": 0.9}
    body = build_job_request({**arguments, "display_name": "long", "workspace_id": "1"}).body
    job_id = PaiDlcHook("started").create_job(body)
    assert _client(told).wait_for(job_id, "Succeeded") == "Succeeded"
    assert pai_spot("jobs", "--conn-id", "started", "--all-namespaces", "--json").out == "[]\n"


def test_tls_is_served_with_a_certificate_that_is_named(started: Call, state: Call) -> None:
    started("--tls")
    told = state()
    assert told["base_url"].startswith("https://127.0.0.1:")
    assert Path(told["ca_file"]).is_file()


def test_the_list_of_behaviours_says_how_sure_each_is(pai_spot: Call) -> None:
    said = pai_spot("emulator", "--behaviours")
    lines = said.out.splitlines()
    assert said.code == 0
    assert len(lines) == len(BEHAVIOURS) + 1
    assert any("echo_spot_spec" in line and "assumed" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--execute", "--host", "0.0.0.0"), "commands are taken from this machine only"),
        (("--execute", "--speed", "60"), "--speed does not go with --execute"),
        (("--speed", "0"), "expected a number above 0"),
        (("--behaviour", "no_such=1"), "There is no behaviour 'no_such'"),
        (("--behaviour", "list_page_size=5"), "is documented"),
    ],
    ids=["execute for others", "execute in a hurry", "time stands still", "unknown behaviour", "documented behaviour"],
)
def test_settings_that_cannot_work_are_told_in_one_line(
    pai_spot: Call, arguments: tuple[str, ...], expected: str
) -> None:
    said = pai_spot("emulator", *arguments)
    assert (said.code, said.out) == (1, "")
    assert expected in said.err
    assert said.err.count("\n") == 1


def test_a_port_that_is_taken_is_told_in_one_line(pai_spot: Call, started: Call, state: Call) -> None:
    started()
    said = pai_spot("emulator", "--port", state()["endpoint"].rpartition(":")[2])
    assert said.code == 1
    assert "did not start" in said.err


@pytest.mark.parametrize("port", ["65536", "-1", "http"])
def test_a_port_that_is_none_is_a_wrong_argument(pai_spot: Call, port: str) -> None:
    assert pai_spot("emulator", f"--port={port}").code == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("echo_spot_spec=false", ("echo_spot_spec", False)),
        ("list_lag_seconds=20", ("list_lag_seconds", 20)),
        ("timeout_status=Stopped", ("timeout_status", "Stopped")),
        ("failure_reason_code=", ("failure_reason_code", "")),
    ],
    ids=["boolean", "number", "text", "empty"],
)
def test_a_behaviour_s_value_is_json_or_text(text: str, expected: tuple[str, Any]) -> None:
    assert behaviour_switch(text) == expected


@pytest.mark.parametrize("text", ["echo_spot_spec", "=false"])
def test_a_behaviour_without_name_or_value_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="NAME=VALUE"):
        behaviour_switch(text)
