from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan

Call = Callable[..., Any]
endless = pytest.mark.dlc_emulator(default_plan=JobPlan(run_seconds=None))


@endless
def test_a_running_job_is_stopped_and_waited_for(pai_spot: Call, cloud: DlcEmulator, submitted: Call) -> None:
    job_id = submitted()
    cloud.control.wait_for(job_id, "Running")
    said = pai_spot("stop", job_id)
    assert said.code == 0
    assert said.out.startswith(f"{job_id} is over: stopped")
    assert cloud.control.job(job_id)["Status"] == "Stopped"


@endless
def test_it_says_whose_job_it_stops_and_how_that_goes(pai_spot: Call, submitted: Call) -> None:
    job_id = submitted()
    said = pai_spot("stop", job_id)
    assert f"{job_id} is 'nightly-train', of nightly / manual__1 / train" in said.err
    assert "Stopped" in said.err


@endless
def test_no_wait_returns_once_dlc_has_accepted(pai_spot: Call, submitted: Call) -> None:
    job_id = submitted()
    said = pai_spot("stop", job_id, "--no-wait")
    assert (said.code, said.out) == (0, f"{job_id}: DLC is stopping it.\n")


@pytest.mark.parametrize(
    ("options", "expected"),
    [((), "was already over: succeeded"), (("--no-wait",), "was already over.")],
    ids=["waiting", "no-wait"],
)
def test_a_job_that_is_over_is_no_error(
    pai_spot: Call, cloud: DlcEmulator, submitted: Call, options: tuple[str, ...], expected: str
) -> None:
    job_id = submitted()
    cloud.control.wait_for(job_id, "Succeeded")
    said = pai_spot("stop", job_id, *options)
    assert said.code == 0
    assert expected in said.out


def test_a_job_that_dlc_does_not_know_is_an_error(pai_spot: Call, cloud: DlcEmulator) -> None:
    said = pai_spot("stop", "dlcnosuchjob00000")
    assert (said.code, said.out) == (1, "")
    assert "NotFound" in said.err or "404" in said.err
    assert cloud.control.jobs() == []


@endless
def test_variables_and_keys_are_not_printed(pai_spot: Call, cloud: DlcEmulator, submitted: Call) -> None:
    job_id = submitted(envs={"API_TOKEN": "planted-token-value"})
    said = pai_spot("stop", job_id)
    assert "planted-token-value" not in said.out + said.err
    assert cloud.access_key_secret not in said.out + said.err
