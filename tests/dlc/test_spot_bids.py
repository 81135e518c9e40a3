"""Bids: fractions of list price on a grid, or CNY per minute."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.dlc.bids import Bid, bid_in, discount_bid, price_bid, read_bid
from airflow_provider_pai_spot.dlc.refusal import InvalidJobRequest


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.4, "0.4"),
        ("0.4", "0.4"),
        (" 0.40 ", "0.4"),
        ("0.40000000000000000000", "0.4"),
        (Decimal("0.9"), "0.9"),
        (Decimal("0.40000000000000002220"), "0.4"),
        (0.1 * 3, "0.3"),
        (sum([0.1] * 8), "0.8"),
        (0.1, "0.1"),
    ],
    ids=repr,
)
def test_a_discount_on_the_grid_is_a_bid(value: object, expected: str) -> None:
    assert discount_bid("spot_discount_limit", value) == (Bid("discount", expected), None)


NEARLY_ON_THE_GRID: list[Any] = ["0.4000000000001", "0.39999999999999999", 0.4000000000001, Decimal("0.4000000000001")]


@pytest.mark.parametrize("value", [0.45, 0.05, 0.95, "0.999", 0.01, *NEARLY_ON_THE_GRID], ids=repr)
def test_a_discount_off_the_grid_is_refused_with_the_way_out(value: object) -> None:
    with pytest.raises(InvalidJobRequest, match=r"grid of 0\.1.*\[pai_spot\] bid_grid = warn"):
        discount_bid("spot_discount_limit", value)


@pytest.mark.parametrize("value", [0.45, 0.05, 0.95], ids=repr)
def test_a_discount_off_the_grid_is_sent_with_a_warning_when_the_grid_only_warns(value: float) -> None:
    bid, warning = discount_bid("spot_discount_limit", value, "warn")
    assert bid.spot_spec()["SpotDiscountLimit"] == value
    assert repr(value) in str(warning)


def test_a_bid_that_only_warns_is_sent_as_it_was_written() -> None:
    bid, warning = discount_bid("spot_discount_limit", "0.4000000000001", "warn")
    assert (bid.value, bool(warning)) == ("0.4000000000001", True)


NO_DISCOUNT: list[Any] = [
    "1e-400",
    "1e-99999999",
    "1e99999999",
    "0." + "9" * 30,
    0,
    1,
    1.0,
    "1",
    40,
    -0.1,
    "abc",
    "",
    True,
    False,
    float("nan"),
    float("inf"),
    "NaN",
    None,
    [],
]


@pytest.mark.parametrize("value", NO_DISCOUNT, ids=repr)
def test_what_is_no_fraction_of_list_price_is_refused_also_where_the_grid_only_warns(value: object) -> None:
    with pytest.raises(InvalidJobRequest, match=r"^spot_discount_limit is "):
        discount_bid("spot_discount_limit", value, "warn")


NO_PRICE: list[Any] = [0, -1, "x", True, float("nan"), "1e400", "1e-400", "Infinity", None, {}]


@pytest.mark.parametrize("value", NO_PRICE, ids=repr)
def test_what_is_no_amount_of_money_is_refused(value: object) -> None:
    with pytest.raises(InvalidJobRequest, match=r"^spot_price_limit is .*CNY per minute"):
        price_bid("spot_price_limit", value)


@given(st.decimals("0.0001", "1000", places=4))
def test_a_price_goes_over_the_wire_as_the_number_that_was_written(price: Decimal) -> None:
    bid = price_bid("spot_price_limit", str(price))
    assert Decimal(str(bid.spot_spec()["SpotPriceLimit"])) == price == bid.amount


@given(st.one_of(st.floats(), st.text(), st.integers(), st.decimals()))
def test_no_accepted_discount_is_outside_the_grid(value: object) -> None:
    try:
        bid, _ = discount_bid("d", value)
    except InvalidJobRequest:
        return
    assert bid.value in {f"0.{tenth}" for tenth in range(1, 10)}


@pytest.mark.parametrize(
    ("spot_spec", "expected"),
    [
        ({"SpotDiscountLimit": 0.4, "SpotPriceLimit": 0}, Bid("discount", "0.4")),
        ({"SpotDiscountLimit": 0.0, "SpotPriceLimit": "0.0110"}, Bid("price", "0.011")),
        ({"SpotStrategy": "SpotWithPriceLimit"}, None),
        ({"SpotDiscountLimit": []}, None),
    ],
    ids=["unset price shown as 0", "price as text", "no limit shown", "wrong shape"],
)
def test_a_bid_is_read_from_what_dlc_echoes(spot_spec: dict[str, Any], expected: Bid | None) -> None:
    assert read_bid(spot_spec) == expected


def test_a_bid_reads_as_people_say_it() -> None:
    assert str(Bid("discount", "0.4")) == "0.4 of list price"
    assert str(Bid("price", "0.011")) == "0.011 CNY per minute"


@pytest.mark.parametrize("bid", [Bid("discount", "0.4"), Bid("price", "0.011")])
def test_a_bid_is_read_from_its_own_text_and_from_no_other(bid: Bid) -> None:
    assert bid_in(str(bid)) == bid
    assert [bid_in(text) for text in ("", "0.4", "0 of list price", "x of list price", "0.4 of it")] == [None] * 5
