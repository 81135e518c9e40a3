from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan

Call = Callable[..., Any]


def test_a_waiting_job_is_told_with_bid_market_stock_and_event(
    pai_spot: Call, cloud: DlcEmulator, submitted: Call
) -> None:
    cloud.control.set_price("ecs.g7.xlarge", 0.55)
    job_id = submitted()
    cloud.control.wait_for(job_id, "Queuing")
    _until_it_bids(cloud, job_id)
    said = pai_spot("why", job_id)
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(f"{job_id} has been waiting for ")
    assert "ecs.g7.xlarge costs 0.55 of list price, above the bid of 0.4, spot stock is left" in said.out
    assert f"DLC says JobEnqueued: PyTorchJob {job_id} is enqueued." in said.out
    assert "spot bid too low: ecs.g7.xlarge costs 0.55 of list price" in said.out
    assert said.out.count("\n") == 1


def test_out_of_stock(pai_spot: Call, cloud: DlcEmulator, submitted: Call) -> None:
    cloud.control.set_stock("ecs.g7.xlarge", 0)
    said = pai_spot("why", submitted())
    assert "costs 0.2 of list price, within the bid of 0.4, there is no spot stock" in said.out


def test_without_the_permission_the_prices_are_missing_and_nothing_else(
    pai_spot: Call, cloud: DlcEmulator, submitted: Call
) -> None:
    cloud.control.set_stock("ecs.g7.xlarge", 0)
    cloud.control.fault("ListEcsSpecs", "server_error", times=None, status=403, code="Forbidden")
    said = pai_spot("why", submitted())
    assert said.code == 0
    assert "without prices, since ListEcsSpecs was refused" in said.out


def test_a_job_that_queues_for_a_quota_is_diagnosed(pai_spot: Call, cloud: DlcEmulator, submitted: Call) -> None:
    cloud.control.set_stock("ecs.g7.xlarge", 0)
    cloud.control.switch("quota_check_failing", "UserLimit")
    said = pai_spot("why", submitted(job_overrides={"ResourceId": "quota1"}))
    assert "in quota quota1 the limit of one user is reached (GPU 144 of 144 used)" in said.out
    assert "0 of 1 pods find a node (OutOfGPU on 2)" in said.out


@pytest.mark.dlc_emulator(default_plan=JobPlan(never_starts=True))
def test_an_image_that_cannot_be_pulled_is_quoted(pai_spot: Call, cloud: DlcEmulator, submitted: Call) -> None:
    job_id = submitted()
    cloud.control.wait_for(job_id, "EnvPreparing")
    said = pai_spot("why", job_id)
    assert "it has its machines" in said.out
    assert "Back-off: ImagePullBackOff" in said.out
    assert "of list price" not in said.out


@pytest.mark.dlc_emulator(default_plan=JobPlan(run_seconds=None))
def test_a_job_that_runs_does_not_wait(pai_spot: Call, cloud: DlcEmulator, submitted: Call) -> None:
    job_id = submitted()
    cloud.control.wait_for(job_id, "Running")
    said = pai_spot("why", job_id)
    assert (said.code, said.out.count("\n")) == (0, 1)
    assert said.out.startswith(f"{job_id} does not wait, it is Running: `pai-spot explain {job_id}`")


def test_a_job_that_is_over_does_not_wait(pai_spot: Call, cloud: DlcEmulator, submitted: Call) -> None:
    job_id = submitted()
    cloud.control.wait_for(job_id, "Succeeded")
    assert f"it is Succeeded: `pai-spot explain {job_id}`" in pai_spot("why", job_id).out
    assert pai_spot("explain", job_id).code == 0


def test_a_job_that_dlc_has_never_seen_is_an_error(pai_spot: Call, cloud: DlcEmulator) -> None:
    said = pai_spot("why", "dlcnosuchjob00000")
    assert (said.code, said.out) == (1, "")
    assert cloud.control.jobs() == []


def test_variables_of_the_job_are_not_read_out(pai_spot: Call, cloud: DlcEmulator, submitted: Call) -> None:
    cloud.control.set_stock("ecs.g7.xlarge", 0)
    said = pai_spot("why", submitted(envs={"API_TOKEN": "planted-token-value"}))
    assert "planted-token-value" not in said.out + said.err
    assert cloud.access_key_secret not in said.out + said.err


def _until_it_bids(cloud: DlcEmulator, job_id: str) -> None:
    import time

    give_up_at = time.monotonic() + 30
    while not cloud.control.journal("waiting", job_id):
        assert time.monotonic() < give_up_at
        time.sleep(0.05)
