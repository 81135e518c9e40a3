"""What the emulator's tests share: running emulators, and the vendor SDK's own client for them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_pai_spot.emulator import DlcEmulator

SAMPLE: dict[str, Any] = {
    "WorkspaceId": "268",
    "DisplayName": "sample-spot",
    "JobType": "PyTorchJob",
    "JobSpecs": [
        {
            "Type": "Worker",
            "Image": "dsw-registry-vpc.cn-hangzhou.cr.aliyuncs.com/pai/pytorch-training:2.3",
            "PodCount": 1,
            "EcsSpec": "ecs.g7.xlarge",
            "SpotSpec": {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.4},
        }
    ],
    "UserVpc": {
        "VpcId": "vpc-0jlq8l7qech3m2ta2****",
        "SwitchId": "vsw-0jlc46eg4k3pivwpz8****",
        "SecurityGroupId": "sg-0jl4bd9wwh5auei9****",
    },
    "UserCommand": "echo ok && ls -R /mnt/data",
}
AIMASTER = {
    "EnableErrorMonitoringInAIMaster": True,
    "ErrorMonitoringArgs": "--job-execution-mode=Sync --enable-job-restart=True --max-num-of-job-restart 2",
}
LINGJUN = "ml.gu7xf.8xlarge-gu108"


def make_body(
    *, ecs_spec: str = "ecs.g7.xlarge", pods: int = 1, bid: float | None = 0.4, **changes: Any
) -> dict[str, Any]:
    """A copy of the vendor's sample with another type, number of pods, bid, or top-level keys."""
    body = copy.deepcopy(SAMPLE)
    role = body["JobSpecs"][0]
    role["EcsSpec"], role["PodCount"] = ecs_spec, pods
    if bid is None:
        del role["SpotSpec"]
    else:
        role["SpotSpec"]["SpotDiscountLimit"] = bid
    return {**body, **changes}


class Sdk:
    """The vendor SDK pointed at an emulator; answers as plain dicts."""

    def __init__(self, emulator: DlcEmulator, keys: dict[str, str] | None = None) -> None:
        from alibabacloud_pai_dlc20201203 import models
        from alibabacloud_pai_dlc20201203.client import Client
        from alibabacloud_tea_openapi.models import Config

        self.models = models
        self.client = Client(
            Config(
                access_key_id=keys["access_key_id"] if keys else emulator.access_key_id,
                access_key_secret=keys["access_key_secret"] if keys else emulator.access_key_secret,
                region_id="cn-hangzhou",
                endpoint=emulator.endpoint,
                protocol=emulator.protocol,
                ca=None if emulator.ca_file is None else str(emulator.ca_file),
            )
        )

    def create(self, body: dict[str, Any] | None = None, **changes: Any) -> str:
        request = self.models.CreateJobRequest().from_map(body or make_body(**changes))
        return str(self.client.create_job(request).body.job_id)

    def get(self, job_id: str) -> dict[str, Any]:
        return self.client.get_job(job_id, self.models.GetJobRequest(need_detail=True)).body.to_map()

    def status(self, job_id: str) -> str:
        return str(self.get(job_id)["Status"])

    def list(self, **query: Any) -> list[str]:
        answer = self.client.list_jobs(self.models.ListJobsRequest(**query)).body
        return [job.job_id for job in answer.jobs]

    def stop(self, job_id: str) -> None:
        self.client.stop_job(job_id)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK obeys these and ignores NO_PROXY."""
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def emulator() -> Iterator[DlcEmulator]:
    """An emulator in which time stands still until it is moved."""
    with DlcEmulator(clock="manual") as running:
        yield running


@pytest.fixture
def sdk(emulator: DlcEmulator) -> Sdk:
    return Sdk(emulator)


@pytest.fixture
def sdk_for() -> Callable[..., Sdk]:
    """Make an SDK client for an emulator, as another identity if keys are given."""
    return Sdk


@pytest.fixture
def body() -> Callable[..., dict[str, Any]]:
    """Make CreateJob bodies: `make_body`."""
    return make_body


@pytest.fixture
def aimaster_body() -> dict[str, Any]:
    """A Lingjun job that AIMaster may restart twice."""
    return make_body(ecs_spec=LINGJUN, pods=2, Settings=dict(AIMASTER))
