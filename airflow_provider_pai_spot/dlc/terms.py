"""What one attempt is submitted with instead of what its request asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_pai_spot.dlc.bids import Bid


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTerms:
    """
    What changes from the request; whatever is unset stays as the request has it.

    :param bid: replaces the bid of every role that bids.
    :param ecs_spec: replaces the instance type of every role that bids.
    :param on_demand: roles that bid run at list price instead, out of reach of the spot market.
    """

    bid: Bid | None = None
    ecs_spec: str | None = None
    on_demand: bool = False

    def change(self, roles: list[dict[str, Any]]) -> None:
        """Change a request's `JobSpecs` in place; a role that does not bid stays as it is."""
        for role in roles:
            if "SpotSpec" not in role:
                continue
            if self.ecs_spec is not None:
                role["EcsSpec"] = self.ecs_spec
            if self.on_demand:
                del role["SpotSpec"]
            elif self.bid is not None:
                role["SpotSpec"] = self.bid.spot_spec()


AS_REQUESTED = JobTerms()
"""The request as it is."""


def ecs_specs_of_bidders(roles: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the instance types of the roles that bid, each once, in their order."""
    return list(dict.fromkeys(_text(role.get("EcsSpec")) for role in roles if "SpotSpec" in role))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def uses_elastic_spot_specs(roles: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a role names spot types of its own (ElasticSpotSpecs), which DLC chooses among by itself."""
    return any(role.get("ElasticSpotSpecs") for role in roles)
