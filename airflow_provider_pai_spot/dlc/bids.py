"""
Bids for spot capacity: a discount limit (fraction of list price) or a price limit (CNY per minute).

Compared as Decimal, sent as JSON numbers: 0.1 * 3 is the bid 0.3, and 0.4 stays 0.4 on the wire.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from typing import Any, Final, Literal

from airflow_provider_pai_spot.dlc.refusal import InvalidJobRequest

BidGrid = Literal["refuse", "warn"]
BidKind = Literal["discount", "price"]

SPOT_STRATEGY: Final = "SpotWithPriceLimit"
"""The only strategy DLC's SpotSpec accepts (CreateJob reference)."""

LIMIT_KEYS: Final[dict[BidKind, str]] = {"discount": "SpotDiscountLimit", "price": "SpotPriceLimit"}
HIGHEST_DISCOUNT_BID: Final = Decimal("0.9")
"""The console offers 10 % to 90 % of list price, in steps of 10 %."""

_UNITS: Final[dict[BidKind, str]] = {"discount": "of list price", "price": "CNY per minute"}
_GRID = frozenset(Decimal(tenth) / 10 for tenth in range(1, 10))
# What a binary float keeps of any decimal number: beyond it is noise (0.30000000000000004). A text has no noise.
_FLOAT_DIGITS = Context(prec=15)


@dataclass(frozen=True, slots=True)
class Bid:
    """
    What we are willing to pay.

    :param kind: `discount` (fraction of list price) or `price` (CNY per minute).
    :param value: the limit as plain decimal text, so that 0.4 and 0.40 are one bid.
    """

    kind: BidKind
    value: str

    @property
    def amount(self) -> Decimal:
        """The limit as a number to compare with."""
        return Decimal(self.value)

    def spot_spec(self) -> dict[str, Any]:
        """Return the bid as DLC's SpotSpec."""
        return {"SpotStrategy": SPOT_STRATEGY, LIMIT_KEYS[self.kind]: float(self.amount)}

    def __str__(self) -> str:
        return f"{self.value} {_UNITS[self.kind]}"


def discount_bid(argument: str, value: object, bid_grid: BidGrid = "refuse") -> tuple[Bid, str | None]:
    """
    Return the bid, and a warning if it is off the documented grid and `bid_grid` is `warn`.

    :raises InvalidJobRequest: not a number, not between 0 and 1, or off a grid that is not to be left.
    """
    amount = _number(argument, value, "a fraction of list price, such as 0.4 for 40 %")
    if not 0 < float(amount) < 1:
        raise InvalidJobRequest(
            argument,
            value,
            "a discount limit is a fraction of list price, above 0 and below 1; "
            "write 0.4 to pay up to 40 % of list price.",
        )
    bid = Bid("discount", _plain(amount))
    if amount in _GRID:
        return bid, None
    return bid, _off_grid(argument, value, bid_grid)


def price_bid(argument: str, value: object) -> Bid:
    """
    Return the bid in CNY per minute.

    :raises InvalidJobRequest: not a number above 0.
    """
    amount = _number(argument, value, "a price in CNY per minute, such as 0.011")
    if not 0 < float(amount) < math.inf:
        raise InvalidJobRequest(argument, value, "a price limit is an amount above 0, in CNY per minute.")
    return Bid("price", _plain(amount))


def read_bid(spot_spec: Mapping[str, Any]) -> Bid | None:
    """Return the bid a SpotSpec from DLC shows, None if it shows none; never raises (0 stands for unset)."""
    for kind, key in LIMIT_KEYS.items():
        try:
            amount = _number(key, spot_spec.get(key), "")
        except InvalidJobRequest:
            continue
        if 0 < float(amount) < math.inf:
            return Bid(kind, _plain(amount))
    return None


def bid_in(text: str) -> Bid | None:
    """Return the bid that was written as text, None for any other text; never raises."""
    value, _, unit = text.partition(" ")
    kind = next((kind for kind, known in _UNITS.items() if known == unit), None)
    return None if kind is None else read_bid({LIMIT_KEYS[kind]: value})


def _off_grid(argument: str, value: object, bid_grid: BidGrid) -> str:
    complaint = "bids are on a grid of 0.1, 0.2 … 0.9 of list price"
    if bid_grid == "refuse":
        raise InvalidJobRequest(
            argument,
            value,
            f"{complaint}. Choose one of these, or set `[pai_spot] bid_grid = warn` to send it all the same.",
        )
    return f"{argument} is {value!r}: {complaint}; DLC may refuse it or round it."


def _number(argument: str, value: object, allowed: str) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
        raise InvalidJobRequest(argument, value, f"expected {allowed}.")
    try:
        exact = Decimal(str(value).strip())
        amount = exact if isinstance(value, str) else _FLOAT_DIGITS.create_decimal(exact)
    except (InvalidOperation, ValueError):
        amount = Decimal("NaN")
    if not amount.is_finite():
        raise InvalidJobRequest(argument, value, f"expected {allowed}.")
    return amount


def _plain(amount: Decimal) -> str:
    return format(amount.normalize(), "f")
