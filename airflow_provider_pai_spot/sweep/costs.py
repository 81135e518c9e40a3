"""What a job can cost an hour: as a share of list price, since DLC's API tells no prices (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from airflow_provider_pai_spot.dlc.bids import Bid, read_bid
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.wire import integer_of, mapping_of, text_of
from airflow_provider_pai_spot.market import read_offers

_MINUTES_AN_HOUR = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleCost:
    """
    What the nodes of one role can cost while they run.

    :param bid: the most each node may cost; None where DLC shows no bid.
    :param market_discount: what a spot node of the type costs now, as a fraction of list price.
    """

    role: str
    ecs_spec: str
    pod_count: int
    bid: Bid | None
    market_discount: Decimal | None

    @property
    def cny_an_hour_at_most(self) -> Decimal | None:
        """The limit of one node in CNY an hour; None unless the bid is a price."""
        return self.bid.amount * _MINUTES_AN_HOUR if self.bid and self.bid.kind == "price" else None

    def __str__(self) -> str:
        nodes = f"{self.pod_count} x {self.ecs_spec or 'a node'}"
        now = f", now at {_plain(self.market_discount)}" if self.bid and self.market_discount is not None else ""
        return f"{nodes} at {self._limit}{now}"

    @property
    def _limit(self) -> str:
        if self.bid is None:
            return "a price that DLC does not show"
        if self.cny_an_hour_at_most is not None:
            return f"{_plain(self.cny_an_hour_at_most)} CNY an hour at most"
        return f"{self.bid.value} of list price at most"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; fractions of list price, and CNY an hour, of one node."""
        by_discount = self.bid is not None and self.bid.kind == "discount"
        return {
            "role": self.role,
            "ecs_spec": self.ecs_spec,
            "pod_count": self.pod_count,
            "list_price_share_at_most": float(self.bid.amount) if self.bid and by_discount else None,
            "cny_an_hour_at_most": _number(self.cny_an_hour_at_most),
            "list_price_share_now": _number(self.market_discount) if self.bid else None,
        }


def job_costs(job: Job, market: Mapping[str, Decimal]) -> tuple[RoleCost, ...]:
    """Return what each role of a job can cost an hour; () where DLC shows no roles."""
    return tuple(_role_cost(role, market) for role in job.roles)


def describe(costs: Iterable[RoleCost]) -> str:
    """Return the costs in one line."""
    return "; ".join(map(str, costs)) or "DLC does not show what it runs on"


def ecs_specs_of(jobs: Iterable[Job]) -> list[str]:
    """Return the instance types of the jobs' roles, each once."""
    return sorted({text_of(role.get("EcsSpec")) for job in jobs for role in job.roles} - {""})


def market_discounts(ecs_specs: Iterable[Mapping[str, Any]]) -> dict[str, Decimal]:
    """Read ListEcsSpecs: instance type -> NonProtectSpotDiscount, where there is a spot market for it."""
    offers = read_offers(ecs_specs)
    return {offer.instance_type: offer.spot_discount for offer in offers if offer.spot_discount is not None}


def _role_cost(role: Mapping[str, Any], market: Mapping[str, Decimal]) -> RoleCost:
    ecs_spec = text_of(role.get("EcsSpec"))
    return RoleCost(
        role=text_of(role.get("Type")),
        ecs_spec=ecs_spec,
        pod_count=integer_of(role.get("PodCount")) or 1,
        bid=read_bid(mapping_of(role.get("SpotSpec"))),
        market_discount=market.get(ecs_spec),
    )


def _plain(amount: Decimal) -> str:
    return format(amount.normalize(), "f")


def _number(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)
