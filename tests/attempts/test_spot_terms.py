"""Whether a created job really bids."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.spot_terms import SpotTerms, compare, second_witness

BID = {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.4}
FLOAT32 = struct.unpack("f", struct.pack("f", 0.4))[0]
"""0.4 as a service shows it that keeps limits in 32 bits: 0.4000000059604645."""


def body(*roles: dict[str, Any]) -> dict[str, Any]:
    return {"JobSpecs": list(roles)}


def role(spot: Any = None, name: str = "Worker") -> dict[str, Any]:
    return {"Type": name, **({"SpotSpec": spot} if spot is not None else {})}


@pytest.mark.parametrize(
    ("seen", "terms"),
    [
        (body(role(BID)), SpotTerms.CONFIRMED),
        (body(role({**BID, "SpotDiscountLimit": "0.40"})), SpotTerms.CONFIRMED),
        (body(role({"SpotDiscountLimit": 0.4})), SpotTerms.CONFIRMED),
        (body(role({**BID, "SpotDiscountLimit": FLOAT32})), SpotTerms.CONFIRMED),
        (body(role({**BID, "SpotDiscountLimit": str(FLOAT32)})), SpotTerms.CONFIRMED),
        (body(role({**BID, "SpotDiscountLimit": 0.4, "SpotPriceLimit": 0})), SpotTerms.CONFIRMED),
        (body(role({"SpotDiscountLimit": 0, "SpotPriceLimit": 0})), SpotTerms.ABSENT),
        (body(role({"SpotStrategy": "", "SpotDiscountLimit": "0"})), SpotTerms.ABSENT),
        (body(role({"SpotDiscountLimit": "0.00"})), SpotTerms.ABSENT),
        (body(role({"SpotDiscountLimit": None})), SpotTerms.ABSENT),
        (body(role({"SpotStrategy": "NoSpot", "SpotDiscountLimit": 0})), SpotTerms.CONTRADICTED),
        (body(role({**BID, "SpotDiscountLimit": 0.5})), SpotTerms.CONTRADICTED),
        (body(role({**BID, "SpotDiscountLimit": 0.40001})), SpotTerms.CONTRADICTED),
        (body(role({**BID, "SpotDiscountLimit": "nan"})), SpotTerms.CONTRADICTED),
        (body(role({**BID, "SpotDiscountLimit": [0.4]})), SpotTerms.CONTRADICTED),
        (body(role({**BID, "SpotStrategy": "NoSpot"})), SpotTerms.CONTRADICTED),
        (body(role()), SpotTerms.ABSENT),
        (body(role({})), SpotTerms.ABSENT),
        (body(role("odd")), SpotTerms.ABSENT),
        ({}, SpotTerms.ABSENT),
        ({"JobSpecs": "odd"}, SpotTerms.ABSENT),
    ],
)
def test_what_the_created_job_shows(seen: dict[str, Any], terms: SpotTerms) -> None:
    assert compare(body(role(BID)), seen).terms is terms


def test_a_price_that_went_through_32_bits_is_the_price_that_was_sent() -> None:
    sent = body(role({"SpotStrategy": "SpotWithPriceLimit", "SpotPriceLimit": 57.0123}))
    seen = body(role({"SpotPriceLimit": struct.unpack("f", struct.pack("f", 57.0123))[0]}))
    assert compare(sent, seen).terms is SpotTerms.CONFIRMED


def test_a_role_that_did_not_bid_needs_no_terms() -> None:
    sent = body(role(BID), role(name="Master"))
    assert compare(sent, body(role(BID), role(name="Master"))).terms is SpotTerms.CONFIRMED


@pytest.mark.parametrize(
    ("spot", "post_paid", "terms"),
    [
        (["dlc1"], [], SpotTerms.ABSENT),
        ([], ["dlc1"], SpotTerms.CONTRADICTED),
        ([], [], SpotTerms.ABSENT),
        (["dlc1"], ["dlc1"], SpotTerms.ABSENT),
    ],
)
def test_the_list_is_the_second_witness(spot: list[str], post_paid: list[str], terms: SpotTerms) -> None:
    shown = {"Spot": spot, "PostPaid": post_paid}
    check = second_witness("dlc1", lambda kind: [{"JobId": one} for one in shown[kind]])
    assert check.terms is terms
