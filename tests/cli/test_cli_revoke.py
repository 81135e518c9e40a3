from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.emulator.main import state

Call = Callable[..., Any]
endless = pytest.mark.dlc_emulator(default_plan=JobPlan(run_seconds=None))


@pytest.fixture
def state_file(cloud: DlcEmulator, tmp_path: Path) -> str:
    """Return what `pai-spot emulator --state-file` writes."""
    file = tmp_path / "emulator.json"
    file.write_text(json.dumps(state(cloud)))
    return str(file)


@endless
def test_a_running_job_loses_its_machines(pai_spot: Call, cloud: DlcEmulator, submitted: Call, state_file: str) -> None:
    job_id = submitted()
    cloud.control.wait_for(job_id, "Running")
    said = pai_spot("revoke", job_id, "--state-file", state_file)
    assert (said.code, said.out) == (0, f"{job_id} has lost its machines.\n")
    cloud.control.wait_for(job_id, "Failed")
    assert "revoked" in pai_spot("explain", job_id).out


@endless
def test_one_machine_of_several(pai_spot: Call, cloud: DlcEmulator, submitted: Call, state_file: str) -> None:
    job_id = submitted(pod_count=3)
    cloud.control.wait_for(job_id, "Running")
    said = pai_spot("revoke", job_id, "--state-file", state_file, "--nodes", "1")
    assert said.out == f"{job_id} has lost 1 of its machines.\n"


@endless
def test_a_job_without_machines_keeps_what_it_has(
    pai_spot: Call, cloud: DlcEmulator, submitted: Call, state_file: str
) -> None:
    job_id = submitted()
    cloud.control.set_status(job_id, "Succeeded")
    said = pai_spot("revoke", job_id, "--state-file", state_file)
    assert said.code == 1
    assert said.err.startswith(f"pai-spot: {job_id} keeps its machines: ")
    assert "Traceback" not in said.err


@pytest.mark.parametrize("content", [None, "no JSON", "[]", "{}"])
def test_a_file_that_is_no_state_is_told(pai_spot: Call, tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "emulator.json"
    if content is not None:
        file.write_text(content)
    said = pai_spot("revoke", "dlc1", "--state-file", str(file))
    assert said.code == 1
    assert f"pai-spot emulator --state-file {file}" in said.err


def test_an_emulator_that_is_gone_is_told(pai_spot: Call, cloud: DlcEmulator, state_file: str) -> None:
    cloud.stop()
    said = pai_spot("revoke", "dlc1", "--state-file", state_file)
    assert said.code == 1
    assert "does not answer" in said.err
