"""
The roles of a job (`JobSpecs`): what each runs on and what each bids.

Each role carries its own SpotSpec. A role without one runs on demand, at full price and out of reach of
revocation, which can be what one wants (a parameter server) and is therefore said, not refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from airflow_provider_pai_spot.dlc import arguments, vocabulary
from airflow_provider_pai_spot.dlc.bids import (
    LIMIT_KEYS,
    SPOT_STRATEGY,
    Bid,
    BidGrid,
    BidKind,
    discount_bid,
    price_bid,
)
from airflow_provider_pai_spot.dlc.refusal import InvalidJobRequest, path

ResourceType = Literal["ECS", "Lingjun"]

FLAT_ARGUMENTS: Final = ("image", "ecs_spec", "pod_count", "spot_discount_limit", "spot_price_limit")
"""Operator arguments that describe a job of one role."""

_FLAT_ROLE = "Worker"
_LINGJUN_PREFIX = "ml."
_ONE_BID = "give exactly one: a discount (fraction of list price, such as 0.4) or a price (CNY per minute)"


@dataclass(frozen=True, slots=True)
class Roles:
    """
    Checked roles.

    :param specs: `JobSpecs` as they are sent.
    :param bids: each bidding role's bid, by role name, first role first.
    :param resource_type: where they run.
    :param warnings: what is allowed but worth a line in the log.
    """

    specs: list[dict[str, Any]]
    bids: dict[str, Bid]
    resource_type: ResourceType
    warnings: tuple[str, ...]


def flat_role(given: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the role that the flat arguments describe: one `Worker` role, as in DLC's own spot samples.

    :raises InvalidJobRequest: the image or the instance type is missing.
    """
    for argument, example in (
        ("image", "the image to run"),
        ("ecs_spec", "an instance type: 'ecs.g7.xlarge'"),
    ):
        if argument not in given:
            raise InvalidJobRequest(argument, None, f"expected {example}.")
    return {
        "Type": _FLAT_ROLE,
        "Image": given["image"],
        "PodCount": given.get("pod_count", 1),
        "EcsSpec": given["ecs_spec"],
        "SpotSpec": {key: given.get(_flat_name(kind)) for kind, key in LIMIT_KEYS.items()},
    }


def checked_roles(
    argument: str | None, roles: object, *, resource_type: ResourceType | None, bid_grid: BidGrid
) -> Roles:
    """
    Return the roles ready to be sent; `resource_type` None is inferred from the instance types.

    :param argument: where the roles come from; None for the flat arguments.
    :raises InvalidJobRequest: a role is misspelled or contradicts itself, or none bids.
    """
    specs = arguments.list_of_mappings(argument or "job_specs", roles)
    market = resource_type or inferred_resource_type(specs)
    bids: dict[str, Bid] = {}
    warnings: list[str] = []
    for index, spec in enumerate(specs):
        where = path(argument or "job_specs", index)
        warnings += _check_role(where, spec)
        bid_name = None if argument is None else path(where, "SpotSpec")
        bid = _check_bid(bid_name, spec, bid_grid, warnings)
        if bid is None:
            warnings += _on_demand(spec)
            continue
        refuse_price_on_lingjun(_limit_name(bid_name, bid.kind), bid, market)
        bids[_free_name(str(spec["Type"]), bids)] = bid
    if not bids:
        raise InvalidJobRequest(
            argument or "job_specs",
            specs,
            f"no role bids for spot capacity; {_ONE_BID} in a role's SpotSpec.",
        )
    return Roles(specs, bids, market, tuple(warnings))


def inferred_resource_type(specs: list[dict[str, Any]]) -> ResourceType:
    """Return `Lingjun` if an instance type starts with `ml.`, in any case, else `ECS`: assumed, no page says so."""
    lingjun = any(str(spec.get("EcsSpec") or "").lower().startswith(_LINGJUN_PREFIX) for spec in specs)
    return "Lingjun" if lingjun else "ECS"


def refuse_price_on_lingjun(argument: str, bid: Bid, resource_type: ResourceType) -> None:
    """
    Refuse a price bid on Lingjun resources.

    :raises InvalidJobRequest: Lingjun bids by discount only.
    """
    if bid.kind == "price" and resource_type == "Lingjun":
        raise InvalidJobRequest(
            argument,
            str(bid),
            "Lingjun resources (instance types 'ml.…') take a discount limit only; use spot_discount_limit.",
        )


def _check_role(where: str, spec: dict[str, Any]) -> tuple[str, ...]:
    warnings = vocabulary.check_keys(where, spec, vocabulary.JOB_SPEC_KEYS)
    for key in ("Type", "Image"):
        arguments.text(path(where, key), spec.get(key))
    if spec.get("PodCount") is not None:
        spec["PodCount"] = arguments.pod_count(path(where, "PodCount"), spec["PodCount"])
    if spec.get("UseSpotInstance"):
        raise InvalidJobRequest(
            path(where, "UseSpotInstance"),
            spec["UseSpotInstance"],
            "DLC has retired it; bid with a SpotSpec.",
        )
    _check_resources(where, spec)
    return warnings


def _check_resources(where: str, spec: dict[str, Any]) -> None:
    if spec.get("EcsSpec") and spec.get("ResourceConfig"):
        raise InvalidJobRequest(where, spec, "EcsSpec and ResourceConfig exclude each other; keep EcsSpec.")
    if spec.get("EcsSpec"):
        spec["EcsSpec"] = arguments.ecs_spec(path(where, "EcsSpec"), spec["EcsSpec"])
    elif not spec.get("ResourceConfig") and not spec.get("ElasticSpotSpecs"):
        raise InvalidJobRequest(
            path(where, "EcsSpec"), spec.get("EcsSpec"), "expected an instance type: 'ecs.g7.xlarge'."
        )


def _check_bid(where: str | None, role: dict[str, Any], bid_grid: BidGrid, warnings: list[str]) -> Bid | None:
    if role.get("SpotSpec") is None:
        role.pop("SpotSpec", None)
        return None
    spot_spec = arguments.mapping(where or "SpotSpec", role["SpotSpec"])
    _check_spot_spec(where, spot_spec)
    if spot_spec.get(LIMIT_KEYS["discount"]) is None:
        bid = price_bid(_limit_name(where, "price"), spot_spec[LIMIT_KEYS["price"]])
    else:
        discount = spot_spec[LIMIT_KEYS["discount"]]
        bid, warning = discount_bid(_limit_name(where, "discount"), discount, bid_grid)
        warnings += [warning] if warning else []
    role["SpotSpec"] = bid.spot_spec()
    return bid


def _check_spot_spec(where: str | None, spot_spec: Mapping[str, Any]) -> None:
    vocabulary.check_keys(where or "SpotSpec", spot_spec, vocabulary.SPOT_SPEC_KEYS, only_known=True)
    strategy = spot_spec.get("SpotStrategy")
    if strategy not in (None, SPOT_STRATEGY):
        raise InvalidJobRequest(
            path(where or "SpotSpec", "SpotStrategy"), strategy, f"DLC knows only {SPOT_STRATEGY!r} here."
        )
    given = {_limit_name(where, kind): spot_spec.get(key) for kind, key in LIMIT_KEYS.items()}
    (discount_name, discount), (price_name, price) = given.items()
    if discount is not None and price is not None:
        raise InvalidJobRequest(discount_name, discount, f"{price_name} is given at the same time; {_ONE_BID}.")
    if discount is None and price is None:
        raise InvalidJobRequest(discount_name, None, f"nor is {price_name}; {_ONE_BID}.")


def _limit_name(where: str | None, kind: BidKind) -> str:
    return path(where, LIMIT_KEYS[kind]) if where is not None else _flat_name(kind)


def _flat_name(kind: BidKind) -> str:
    return f"spot_{kind}_limit"


def _on_demand(spec: dict[str, Any]) -> list[str]:
    if spec.get("ElasticSpotSpecs"):
        return []
    return [f"role {spec['Type']} runs on demand: it has no SpotSpec."]


def _free_name(role: str, taken: Mapping[str, Bid]) -> str:
    name, number = role, 2
    while name in taken:
        name, number = f"{role} {number}", number + 1
    return name
