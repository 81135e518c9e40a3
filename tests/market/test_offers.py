"""Reading ListEcsSpecs' items, of the shapes that are documented and of those that are not."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.market import Offer, read_offer, read_offers

AS_DOCUMENTED = {
    "InstanceType": "ecs.g7.xlarge",
    "IsAvailable": True,
    "PaymentTypes": ['["Spot","PostPaid"]'],
    "SpotStockStatus": "WithStock",
    "NonProtectSpotDiscount": 0.2,
}


def test_the_reference_s_example_is_read() -> None:
    assert read_offer(AS_DOCUMENTED) == Offer(
        instance_type="ecs.g7.xlarge",
        is_available=True,
        has_spot_stock=True,
        spot_discount=Decimal("0.2"),
        payment_types=("Spot", "PostPaid"),
    )


STOCK = [("WithStock", True), ("ClosedWithStock", True), ("NoStock", False), ("", None), (None, None), ("Plenty", None)]


@pytest.mark.parametrize(("status", "has_stock"), STOCK)
def test_a_stock_status_nobody_knows_says_nothing(status: Any, has_stock: bool | None) -> None:
    offer = read_offer(AS_DOCUMENTED | {"SpotStockStatus": status})
    assert offer is not None
    assert offer.has_spot_stock is has_stock


DISCOUNTS = [(0.2, "0.2"), ("0.35", "0.35"), (1, "1"), (0, None), (-0.1, None), ("", None), (None, None), (True, None)]


@pytest.mark.parametrize(("shown", "discount"), DISCOUNTS)
def test_no_discount_is_no_spot_market(shown: Any, discount: str | None) -> None:
    offer = read_offer(AS_DOCUMENTED | {"NonProtectSpotDiscount": shown})
    assert offer is not None
    assert offer.spot_discount == (None if discount is None else Decimal(discount))


PAYMENT_TYPES = [
    (["Spot", "PostPaid"], ("Spot", "PostPaid")),
    ("Spot", ("Spot",)),
    (['["Spot"]', "Spot"], ("Spot",)),
    (["[broken"], ()),
    ([7, None, {"a": 1}], ()),
    (None, ()),
]


@pytest.mark.parametrize(("shown", "read"), PAYMENT_TYPES)
def test_payment_types_are_read_in_every_spelling(shown: Any, read: tuple[str, ...]) -> None:
    offer = read_offer(AS_DOCUMENTED | {"PaymentTypes": shown})
    assert offer is not None
    assert offer.payment_types == read


def test_an_item_without_a_type_is_left_out() -> None:
    assert [offer.instance_type for offer in read_offers([{}, AS_DOCUMENTED, "odd", {"InstanceType": ""}])] == [
        "ecs.g7.xlarge"
    ]


def test_an_offer_says_in_one_phrase_what_it_is() -> None:
    assert str(read_offer(AS_DOCUMENTED)) == "ecs.g7.xlarge is in stock, 0.2 of list price"
    assert str(Offer(instance_type="ecs.a", has_spot_stock=False)) == "ecs.a is out of stock, no spot price"


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=5,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys([*AS_DOCUMENTED], JSON)))
def test_nothing_that_json_can_hold_breaks_the_reading(item: dict[str, Any]) -> None:
    offer = read_offer(item)
    assert offer is None or (offer.instance_type and (offer.spot_discount is None or offer.spot_discount > 0))
