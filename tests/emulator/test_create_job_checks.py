"""What CreateJob refuses, and what it must not."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_pai_spot.emulator.behaviours import Behaviours
from airflow_provider_pai_spot.emulator.errors import DlcError
from airflow_provider_pai_spot.emulator.validation import check_create_job

SPOT = "SpotWithPriceLimit"


def role(**changes: Any) -> dict[str, Any]:
    return {"Type": "Worker", "PodCount": 1, "EcsSpec": "ecs.g7.xlarge", **changes}


def bidding(**spot: Any) -> dict[str, Any]:
    return {"JobSpecs": [role(SpotSpec={"SpotStrategy": SPOT, **spot})]}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"DisplayName": None}, "DisplayName"),
        ({"DisplayName": "a/b"}, "DisplayName"),
        ({"DisplayName": "a" * 257}, "DisplayName"),
        ({"JobType": "pytorchjob"}, "JobType"),
        ({"UserCommand": None}, "UserCommand"),
        ({"JobSpecs": []}, "JobSpecs"),
        ({"JobSpecs": [role(Type=None)]}, r"JobSpecs\[0\].Type"),
        ({"JobSpecs": [role(PodCount=0)]}, "PodCount"),
        ({"JobSpecs": [role(PodCount=True)]}, "PodCount"),
        ({"JobSpecs": [role(ResourceConfig={"CPU": "1"})]}, "mutually exclusive"),
        ({"JobSpecs": [role(EcsSpec=None)]}, "EcsSpec or ResourceConfig"),
        ({"JobSpecs": [role(EcsSpec=None, ResourceConfig={"CPU": 1})]}, "must be a string"),
        ({"JobSpecs": [role(SpotSpec={"SpotDiscountLimit": 0.4})]}, "SpotStrategy"),
        ({"JobSpecs": [role(SpotSpec={"SpotStrategy": "SpotAsPriceGo", "SpotDiscountLimit": 0.4})]}, "SpotStrategy"),
        (bidding(), "exactly one"),
        (bidding(SpotDiscountLimit=0.4, SpotPriceLimit=0.1), "exactly one"),
        (bidding(SpotDiscountLimit=0), "SpotDiscountLimit"),
        (bidding(SpotDiscountLimit=1.1), "SpotDiscountLimit"),
        (bidding(SpotDiscountLimit="0.4"), "SpotDiscountLimit"),
        (bidding(SpotPriceLimit=-1), "SpotPriceLimit"),
        (
            {
                "JobSpecs": [
                    role(
                        EcsSpec="ml.gu7xf.8xlarge-gu108",
                        SpotSpec={"SpotStrategy": SPOT, "SpotPriceLimit": 1.0},
                    )
                ]
            },
            "Lingjun",
        ),
        ({"JobMaxRunningTimeMinutes": -1}, "JobMaxRunningTimeMinutes"),
        ({"Priority": 10}, "Priority"),
        ({"Envs": {"A": 1}}, "Envs"),
        ({"Settings": {"Tags": {"a": 1}}}, "Tags"),
        ({"Settings": {"JobReservedPolicy": "Sometimes"}}, "JobReservedPolicy"),
        ({"DataSources": [{"Uri": "oss://a", "DataSourceId": "d-1"}]}, "exactly one"),
        ({"DataSources": [{"Uri": "oss://a", "MountAccess": "ro"}]}, "MountAccess"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_work_is_refused_by_name(body: Any, changes: Any, named: Any) -> None:
    with pytest.raises(DlcError, match=named) as refused:
        check_create_job({**body(), **changes}, Behaviours())
    assert (refused.value.status, refused.value.code) == (400, "InvalidParameter")


@pytest.mark.parametrize(
    "changes",
    [
        {"UserCommand": ""},
        {"JobMaxRunningTimeMinutes": 0},
        {"NobodyKnows": 1},
        {"JobSpecs": [role(EcsSpec="ecs.new.type")]},
        {"JobSpecs": [role(ElasticSpotSpecs=[], LocalMountSpecs=[], StartupDependencies=[])]},
        {"JobSpecs": [role(EcsSpec=None, ResourceConfig={"CPU": "1", "Memory": "10Gi"})]},
        bidding(SpotDiscountLimit=0.85),
        bidding(SpotDiscountLimit=1.0),
        bidding(SpotPriceLimit=0.4744),
    ],
    ids=["empty command", "0 minutes", "unknown key", "new type", "empty lists", "cpu", "0.85", "1.0", "price"],
)
def test_what_dlc_is_known_or_not_known_to_refuse_passes(body: Any, changes: Any) -> None:
    check_create_job({**body(), **changes}, Behaviours())


@pytest.mark.parametrize("discount", [0.85, 0.95, 1.0])
def test_off_grid_bids_can_be_refused(body: Any, discount: Any) -> None:
    request = {**body(), **bidding(SpotDiscountLimit=discount)}
    with pytest.raises(DlcError, match=r"0\.1, 0\.2"):
        check_create_job(request, Behaviours({"off_grid_bid": "reject"}))


@pytest.mark.parametrize("step", range(1, 10))
def test_every_bid_on_the_grid_passes_even_the_strict_check(body: Any, step: Any) -> None:
    request = {**body(), **bidding(SpotDiscountLimit=step / 10)}
    check_create_job(request, Behaviours({"off_grid_bid": "reject"}))
