"""
Prices and stock of spot machines, per instance type. Prices are discounts: fractions of the list price, 0.1 to 1.

Knows no jobs and no clock: times come in as numbers, so that every rule can be tested as arithmetic.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any

from airflow_provider_pai_spot.emulator.specs import is_lingjun, list_price

CHEAPEST, DEAREST = 0.1, 1.0
_EPSILON = 1e-9


class BidKind(StrEnum):
    """How a bid was put."""

    DISCOUNT = "discount"
    PRICE = "price"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Bid:
    """
    The most somebody pays for a machine.

    :param kind: `discount` (fraction of list price), `price` (CNY per minute) or `open` (any price).
    :param limit: the number that goes with it.
    """

    kind: BidKind
    limit: float = 0.0

    def as_discount(self, instance_type: str) -> float:
        """Return the bid as a fraction of the type's list price."""
        if self.kind is BidKind.OPEN:
            return float("inf")
        if self.kind is BidKind.PRICE:
            return self.limit / list_price(instance_type)
        return self.limit


def bid_of(spec: Mapping[str, Any]) -> Bid | None:
    """Return the bid of one entry of JobSpecs; None if it is on-demand."""
    spot = spec.get("SpotSpec") or {}
    if spot.get("SpotDiscountLimit") is not None:
        return Bid(BidKind.DISCOUNT, float(spot["SpotDiscountLimit"]))
    if spot.get("SpotPriceLimit") is not None:
        return Bid(BidKind.PRICE, float(spot["SpotPriceLimit"]))
    return Bid(BidKind.OPEN) if spec.get("ElasticSpotSpecs") else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketModel:
    """
    How prices behave when nobody scripts them.

    :param discount: first price of every type, as a fraction of list price.
    :param volatility: largest change per step; 0: prices stand still.
    :param step_seconds: emulated seconds between two changes.
    """

    discount: float = 0.2
    volatility: float = 0.0
    step_seconds: float = 300.0

    def step(self, discount: float, rng: random.Random) -> float:
        """Return the next price of a random walk within 0.1 and 1.0."""
        return clamp(round(discount + rng.uniform(-self.volatility, self.volatility), 3))


def clamp(discount: float) -> float:
    """Return the nearest price a market can have."""
    return min(DEAREST, max(CHEAPEST, discount))


@dataclass(slots=True)
class _Quote:
    times: list[float] = field(default_factory=list)
    discounts: list[float] = field(default_factory=list)
    stock: int | None = None

    def set(self, at: float, discount: float) -> None:
        self.times.append(at)
        self.discounts.append(discount)

    def at(self, when: float) -> float:
        return self.discounts[max(0, bisect_right(self.times, when) - 1)]

    def average(self, start: float, end: float) -> float:
        if end <= start:
            return self.at(end)
        cuts = [start, *(time for time in self.times if start < time < end), end]
        total = sum(self.at(left) * (right - left) for left, right in pairwise(cuts))
        return total / (end - start)


class Market:
    """
    What a machine costs and whether there is one.

    :param model: how prices behave by themselves.
    :param opened_at: first moment, emulated seconds since the epoch.
    :param average_seconds: window of the average that Lingjun bids are compared with.
    """

    def __init__(self, model: MarketModel, opened_at: float, average_seconds: float) -> None:
        self.model = model
        self._opened_at = opened_at
        self._average_seconds = average_seconds
        self._quotes: dict[str, _Quote] = {}

    def discount(self, instance_type: str, at: float) -> float:
        """Return the current price as a fraction of list price."""
        return self._quote(instance_type).at(at)

    def deciding_discount(self, instance_type: str, at: float) -> float:
        """Return the price a bid is compared with: the average for Lingjun, else the current one."""
        quote = self._quote(instance_type)
        if is_lingjun(instance_type):
            return quote.average(max(self._opened_at, at - self._average_seconds), at)
        return quote.at(at)

    def set_discount(self, instance_type: str, at: float, discount: float) -> float:
        """Let a type cost `discount` from `at` on; returns it within 0.1 and 1.0."""
        discount = clamp(discount)
        self._quote(instance_type).set(at, discount)
        return discount

    def stock(self, instance_type: str) -> int | None:
        """Return how many machines of a type exist for spot, rented ones included; None: without end."""
        return self._quote(instance_type).stock

    def set_stock(self, instance_type: str, machines: int | None) -> None:
        """Let that many machines of a type exist."""
        self._quote(instance_type).stock = machines

    def accepts(self, bid: Bid, instance_type: str, at: float) -> bool:
        """Whether the bid is at or above the price it is compared with."""
        return bid.as_discount(instance_type) + _EPSILON >= self.deciding_discount(instance_type, at)

    def settles_at(self, instance_type: str, at: float) -> float:
        """Return when the deciding price stops changing if nothing else happens."""
        quote = self._quote(instance_type)
        return quote.times[-1] + self._average_seconds if is_lingjun(instance_type) else at

    def types(self) -> list[str]:
        """Return the types that were ever asked for."""
        return list(self._quotes)

    def _quote(self, instance_type: str) -> _Quote:
        quote = self._quotes.get(instance_type)
        if quote is None:
            quote = self._quotes[instance_type] = _Quote()
            quote.set(self._opened_at, self.model.discount)
        return quote
