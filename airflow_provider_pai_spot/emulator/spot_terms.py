"""What a service makes of the spot terms a job is created with. That DLC keeps them is assumed; no page promises it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TREATMENTS = ("kept", "dropped", "changed")
_LIST_PRICE = 1.0
_SPOT_KEYS = ("SpotSpec", "ElasticSpotSpecs")


def treated(body: dict[str, Any], treatment: str) -> dict[str, Any]:
    """
    Return the CreateJob body as the service remembers it.

    :param treatment: `dropped`: as if it asked for pay-as-you-go; `changed`: the bids are others.
    """
    if treatment == "kept":
        return body
    change = _without_terms if treatment == "dropped" else _with_other_bid
    return {**body, "JobSpecs": [change(role) for role in body["JobSpecs"]]}


def _without_terms(role: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in role.items() if key not in _SPOT_KEYS}


def _with_other_bid(role: Mapping[str, Any]) -> dict[str, Any]:
    spec = role.get("SpotSpec")
    if not spec:
        return dict(role)
    other = {key: value * 2 for key, value in spec.items() if key == "SpotPriceLimit"}
    other |= {key: _LIST_PRICE for key in spec if key == "SpotDiscountLimit"}
    return {**role, "SpotSpec": {**spec, **other}}
