"""One item of ListEcsSpecs: whether a type can be had, and what its spot capacity costs now."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from airflow_provider_pai_spot.dlc.wire import text_of

_STOCK: Final = {"WithStock": True, "ClosedWithStock": True, "NoStock": False}
"""`ClosedWithStock` (little is left) is documented for EAS only; whether DLC shows it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """
    What DLC offers of one instance type at the moment.

    :param is_available: whether it can be had on demand (`IsAvailable`); None where DLC does not say.
    :param has_spot_stock: whether spot machines are left (`SpotStockStatus`); None where DLC does not say.
    :param spot_discount: present spot price as a fraction of list price (`NonProtectSpotDiscount`); None where no
        spot capacity is sold (assumed: EAS's page says so of the field of the same name).
    :param payment_types: `Spot`, `PostPaid`, as DLC spells them; empty where it shows none.
    """

    instance_type: str
    is_available: bool | None = None
    has_spot_stock: bool | None = None
    spot_discount: Decimal | None = None
    payment_types: tuple[str, ...] = ()

    def __str__(self) -> str:
        stock = {True: "in stock", False: "out of stock", None: "stock not shown"}[self.has_spot_stock]
        price = "no spot price" if self.spot_discount is None else f"{self.spot_discount:f} of list price"
        return f"{self.instance_type} is {stock}, {price}"


def read_offers(items: Iterable[Any]) -> tuple[Offer, ...]:
    """Return the offers of ListEcsSpecs' items, in their order; one that names no type is left out."""
    return tuple(offer for offer in map(read_offer, items) if offer is not None)


def read_offer(item: Any) -> Offer | None:
    """Return the offer of one item; None if it names no type. A field of an odd shape reads as absent."""
    if not isinstance(item, Mapping) or not text_of(item.get("InstanceType")):
        return None
    available = item.get("IsAvailable")
    return Offer(
        instance_type=text_of(item.get("InstanceType")),
        is_available=available if isinstance(available, bool) else None,
        has_spot_stock=_STOCK.get(text_of(item.get("SpotStockStatus"))),
        spot_discount=_discount(item.get("NonProtectSpotDiscount")),
        payment_types=_payment_types(item.get("PaymentTypes")),
    )


def _discount(value: object) -> Decimal | None:
    try:
        amount = Decimal(text_of(value))
    except InvalidOperation:
        return None
    return amount.normalize() if amount.is_finite() and amount > 0 else None


def _payment_types(value: object) -> tuple[str, ...]:
    """Read a list of texts; the reference's example has one text that holds a JSON list."""
    found: list[str] = []
    for item in value if isinstance(value, list) else [value]:
        found += _texts_in(item)
    return tuple(dict.fromkeys(found))


def _texts_in(item: object) -> list[str]:
    if not isinstance(item, str) or not item.strip():
        return []
    if not item.lstrip().startswith("["):
        return [item.strip()]
    try:
        inner = json.loads(item)
    except (ValueError, RecursionError):
        return []
    return [one for one in inner if isinstance(one, str)]
