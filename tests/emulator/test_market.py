"""Prices and bids as arithmetic."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.emulator.market import Bid, BidKind, Market, MarketModel, bid_of
from airflow_provider_pai_spot.emulator.specs import CNY_PER_USD, INSTANCE_TYPES, is_lingjun, list_price

LINGJUN, GENERAL = "ml.gu7ef.8xlarge-gu100", "ecs.g7.xlarge"
DISCOUNTS = st.floats(0.1, 1.0)


def market(discount: float = 0.2) -> Market:
    return Market(MarketModel(discount=discount), opened_at=0.0, average_seconds=100.0)


@pytest.mark.parametrize(
    ("name", "usd_per_hour"),
    [
        ("ml.gu7ef.8xlarge-gu100", 57.0),
        ("ml.gu7xf.8xlarge-gu108", 50.4),
        ("ml.gu8xf.8xlarge-gu108", 122.4),
        ("ml.gu8ef.8xlarge-gu100", 232.2),
    ],
)
def test_lingjun_list_prices_are_the_published_ones(name: Any, usd_per_hour: Any) -> None:
    assert list_price(name) * 60 / CNY_PER_USD == pytest.approx(usd_per_hour)
    assert not INSTANCE_TYPES[name].assumed


def test_the_two_sample_bids_of_the_vendor_are_the_same_bid() -> None:
    price = Bid(BidKind.PRICE, 0.011).as_discount(GENERAL)
    assert price == pytest.approx(Bid(BidKind.DISCOUNT, 0.4).as_discount(GENERAL))


@pytest.mark.parametrize(
    ("spec", "bid"),
    [
        ({"SpotSpec": {"SpotDiscountLimit": 0.4}}, Bid(BidKind.DISCOUNT, 0.4)),
        ({"SpotSpec": {"SpotPriceLimit": 0.011}}, Bid(BidKind.PRICE, 0.011)),
        ({"ElasticSpotSpecs": [{"InstanceType": "x"}]}, Bid(BidKind.OPEN)),
        ({"ElasticSpotSpecs": [], "SpotSpec": None}, None),
        ({}, None),
    ],
    ids=["discount", "price", "elastic", "empty", "on-demand"],
)
def test_a_role_bids_as_its_spot_terms_say(spec: Any, bid: Any) -> None:
    assert bid_of(spec) == bid


@pytest.mark.parametrize(
    ("name", "lingjun"),
    [(LINGJUN, True), (GENERAL, False), ("ml.gu9.new", True), ("ml.gn7.x", False), ("ecs.new", False)],
)
def test_lingjun_is_told_by_row_or_name(name: Any, lingjun: Any) -> None:
    assert is_lingjun(name) is lingjun


@given(DISCOUNTS, DISCOUNTS)
def test_general_computing_compares_with_the_current_price(price: Any, bid: Any) -> None:
    rows = market()
    rows.set_discount(GENERAL, 50.0, price)
    accepted = rows.accepts(Bid(BidKind.DISCOUNT, bid), GENERAL, 60.0)
    assert accepted is (bid >= price - 1e-9)


def test_lingjun_compares_with_the_average_of_its_window() -> None:
    rows = market(0.2)
    rows.set_discount(LINGJUN, 1000.0, 0.6)
    assert rows.deciding_discount(LINGJUN, 1025.0) == pytest.approx(0.75 * 0.2 + 0.25 * 0.6)
    assert rows.deciding_discount(LINGJUN, 1100.0) == pytest.approx(0.6)
    assert rows.settles_at(LINGJUN, 1025.0) == 1100.0


@given(st.lists(st.tuples(st.floats(1, 50), DISCOUNTS), max_size=20))
def test_an_average_lies_between_the_lowest_and_the_highest_price(steps: Any) -> None:
    rows, at = market(0.2), 0.0
    for gap, discount in steps:
        at += gap
        rows.set_discount(LINGJUN, at, discount)
    seen = [0.2, *(discount for _, discount in steps)]
    average = rows.deciding_discount(LINGJUN, at + 1)
    assert min(seen) - 1e-9 <= average <= max(seen) + 1e-9


@given(st.floats(-5, 5, allow_nan=False))
def test_a_price_never_leaves_a_tenth_to_the_whole_of_the_list_price(discount: Any) -> None:
    assert 0.1 <= market().set_discount(GENERAL, 1.0, discount) <= 1.0


@given(st.integers(), st.floats(0, 1))
def test_a_seed_repeats_a_walk_and_a_walk_stays_in_range(seed: Any, volatility: Any) -> None:
    model = MarketModel(volatility=volatility)

    def walk() -> list[float]:
        rng, path = random.Random(seed), [model.discount]
        for _ in range(30):
            path.append(model.step(path[-1], rng))
        return path

    assert walk() == walk()
    assert all(0.1 <= discount <= 1.0 for discount in walk())
