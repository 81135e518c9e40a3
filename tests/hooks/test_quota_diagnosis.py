"""Asking PAI Studio, DLC's sister product, why a job waits for its quota: where that is, and what it answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from airflow.sdk import Connection

from airflow_provider_pai_spot.emulator import DlcEmulator
from airflow_provider_pai_spot.exceptions import PaiDlcError, PaiDlcRefused
from airflow_provider_pai_spot.hooks.connection import parse_connection
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.hooks.studio import studio_endpoint


def connection(host: str = "", **extra: str) -> Connection:
    return Connection(conn_id="c", conn_type="pai_dlc", host=host or None, extra=json.dumps(extra))


@pytest.mark.parametrize(
    ("host", "extra", "endpoint"),
    [
        ("", {"region_id": "cn-wulanchabu"}, "pai.cn-wulanchabu.aliyuncs.com"),
        ("", {"region_id": "ap-southeast-1"}, "pai.ap-southeast-1.aliyuncs.com"),
        ("", {"region_id": "cn-hangzhou"}, "pai.cn-hangzhou.data.aliyun.com"),
        ("", {"region_id": "cn-hangzhou", "network": "vpc"}, ""),
        ("dlc.example.com", {"region_id": "cn-hangzhou"}, ""),
        ("dlc.example.com", {"studio_endpoint": "pai.example.com:8443"}, "pai.example.com:8443"),
        (
            "",
            {"region_id": "cn-hangzhou", "network": "vpc", "studio_endpoint": "pai-vpc.example.com"},
            "pai-vpc.example.com",
        ),
    ],
)
def test_where_it_is_is_known_or_told_and_never_guessed(host: str, extra: dict[str, str], endpoint: str) -> None:
    assert studio_endpoint(parse_connection(connection(host, **extra))) == endpoint


@pytest.mark.parametrize("wrong", ["https://pai.example.com", "pai.example.com/path", "a b"])
def test_an_address_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(PaiDlcError, match="studio_endpoint is"):
        parse_connection(connection(region_id="cn-hangzhou", studio_endpoint=wrong))


@pytest.fixture
def cloud() -> Iterator[DlcEmulator]:
    with DlcEmulator(clock="manual", verify_signatures=True) as emulator:
        yield emulator


def hook_of(cloud: DlcEmulator, **extra: str) -> PaiDlcHook:
    return PaiDlcHook.from_connection(Connection.from_uri(cloud.connection_uri(**extra), conn_id="c"))


def queueing(hook: PaiDlcHook, quota: str = "quota1") -> str:
    role = {"Type": "Worker", "Image": "i", "PodCount": 2, "ResourceConfig": {"GPU": "8"}}
    body: dict[str, Any] = {"DisplayName": "t", "JobType": "PyTorchJob", "JobSpecs": [role], "UserCommand": "x"}
    return hook.create_job({**body, "ResourceId": quota, "WorkspaceId": "1"})


def test_a_job_that_waits_is_diagnosed_by_a_signed_request(cloud: DlcEmulator) -> None:
    cloud.control.switch("quota_check_failing", "SelfQuotaLimit")
    hook = hook_of(cloud)
    diagnosis = hook.get_quota_workload_diagnosis("quota1", queueing(hook))
    assert diagnosis["ResourceDiagnosis"]["SelfQuotaLimit"]["Status"] == "Failed"
    assert diagnosis["SchedulingDiagnosis"]["TaskNum"] == 2


def test_a_job_that_does_not_wait_is_a_refusal(cloud: DlcEmulator) -> None:
    hook = hook_of(cloud)
    job_id = queueing(hook)
    cloud.control.advance(60)
    with pytest.raises(PaiDlcRefused, match="does not queue in quota"):
        hook.get_quota_workload_diagnosis("quota1", job_id)


def test_a_missing_permission_names_the_action_of_that_product(cloud: DlcEmulator) -> None:
    cloud.control.fault("GetQuotaWorkloadDiagnosis", "server_error", status=403, code="Forbidden.RAM")
    hook = hook_of(cloud)
    with pytest.raises(PaiDlcRefused, match=r"RAM action paistudio:GetQuotaWorkloadDiagnosis, and"):
        hook.get_quota_workload_diagnosis("quota1", queueing(hook))


def test_without_an_address_nothing_is_sent(cloud: DlcEmulator) -> None:
    hook = hook_of(cloud, studio_endpoint="")
    with pytest.raises(PaiDlcRefused, match="was not sent: the connection has no studio_endpoint"):
        hook.get_quota_workload_diagnosis("quota1", queueing(hook))
    assert "GetQuotaWorkloadDiagnosis" not in cloud.control.requests()
