"""Which instance type to go on with: the next in line, or the one that the market favours."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from airflow_provider_pai_spot.dlc.bids import Bid
from airflow_provider_pai_spot.market import Offer


@dataclass(frozen=True, slots=True)
class Choice:
    """
    An instance type.

    :param why: for the log, '' if its place in line is reason enough.
    """

    ecs_spec: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.ecs_spec} ({self.why})" if self.why else self.ecs_spec


def in_order(types: Sequence[str], after: str, why: str = "", *, tried: Collection[str] = ()) -> Choice:
    """
    Return the type that comes after another one, the first after the last, passing over those tried if any is left.

    :param types: the task's own type first; not empty.
    :param after: what the last job asked for; '' or one not in line counts as the first.
    """
    index = types.index(after) if after in types else 0
    in_line = [*types[index + 1 :], *types[: index + 1]]
    return Choice(next((one for one in in_line if one not in tried), in_line[0]), why)


def by_market(types: Sequence[str], offers: Iterable[Offer], bid: Bid | None) -> Choice | None:
    """
    Return the type in stock whose spot price leaves most room below the bid; None if none is offered at the bid.

    Prices are compared as fractions of each type's own list price, since DLC tells no other; a bid in CNY per minute
    cannot be compared with them, and then stock alone counts.

    :param types: what may be chosen; of equals the earlier one is taken.
    """
    by_type = {offer.instance_type: offer for offer in offers}
    winnable = [by_type[one] for one in types if one in by_type and _is_winnable(by_type[one], bid)]
    if not winnable:
        return None
    best = min(winnable, key=lambda offer: _rank(offer, bid))
    stock = "in stock" if best.has_spot_stock else "stock not shown"
    price = "" if best.spot_discount is None else f", {best.spot_discount:f} of list price now"
    return Choice(best.instance_type, f"{stock}{price}")


def _is_winnable(offer: Offer, bid: Bid | None) -> bool:
    if offer.has_spot_stock is False or offer.spot_discount is None:
        return False
    return bid is None or bid.kind == "price" or offer.spot_discount <= bid.amount


def _rank(offer: Offer, bid: Bid | None) -> tuple[bool, Decimal]:
    comparable = bid is None or bid.kind == "discount"
    return (not offer.has_spot_stock, offer.spot_discount or Decimal(0) if comparable else Decimal(0))
