from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.sweep.costs import describe, ecs_specs_of, job_costs, market_discounts

TYPE = "ecs.g7.xlarge"


def job(spot_spec: dict[str, Any] | None, **role: Any) -> Job:
    spec = {} if spot_spec is None else {"SpotSpec": spot_spec}
    return Job({"JobId": "dlc1", "JobSpecs": [{"Type": "Worker", "EcsSpec": TYPE, "PodCount": 2, **spec, **role}]})


@pytest.mark.parametrize(
    ("shown", "market", "words"),
    [
        (job({"SpotDiscountLimit": 0.4}), {}, "2 x ecs.g7.xlarge at 0.4 of list price at most"),
        (job({"SpotDiscountLimit": 0.4}), {TYPE: Decimal("0.25")}, "… at 0.4 of list price at most, now at 0.25"),
        (job({"SpotPriceLimit": 0.011}), {}, "2 x ecs.g7.xlarge at 0.66 CNY an hour at most"),
        (job(None), {TYPE: Decimal("0.25")}, "2 x ecs.g7.xlarge at a price that DLC does not show"),
        (job({"SpotDiscountLimit": 0.4}, EcsSpec="", PodCount=None), {}, "1 x a node at 0.4 of list price at most"),
        (Job({"JobId": "dlc1"}), {}, "DLC does not show what it runs on"),
    ],
    ids=["a discount bid", "with a market", "a price bid", "no bid shown", "no type shown", "no role shown"],
)
def test_what_a_job_can_cost_an_hour(shown: Job, market: dict[str, Decimal], words: str) -> None:
    assert describe(job_costs(shown, market)) == words.replace("…", "2 x ecs.g7.xlarge")


def test_numbers_for_programs_name_their_units() -> None:
    (by_price,) = job_costs(job({"SpotPriceLimit": 0.011}), {TYPE: Decimal("0.25")})
    assert by_price.to_dict() == {
        "role": "Worker",
        "ecs_spec": TYPE,
        "pod_count": 2,
        "list_price_share_at_most": None,
        "cny_an_hour_at_most": 0.66,
        "list_price_share_now": 0.25,
    }


@pytest.mark.parametrize(
    ("shown", "expected"),
    [(0.2, "0.2"), ("0.2", "0.2"), (None, None), ("", None), (0, None), ("NaN", None), (True, None)],
    ids=repr,
)
def test_a_market_discount_is_read_in_any_shape(shown: object, expected: str | None) -> None:
    read = market_discounts([{"InstanceType": TYPE, "NonProtectSpotDiscount": shown}])
    assert read == ({TYPE: Decimal(expected)} if expected else {})


def test_each_instance_type_is_asked_for_once() -> None:
    assert ecs_specs_of([job(None), job(None, EcsSpec="ecs.c7.large"), job(None), job(None, EcsSpec="")]) == [
        "ecs.c7.large",
        TYPE,
    ]
