"""
What stands in, while a DAG file is parsed, for values that are known only at run time.

One set of checks serves parse time and run time: what is not known yet is replaced by something that passes,
so that whatever is refused is refused for what is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from airflow_provider_pai_spot.dlc.roles import FLAT_ARGUMENTS

_BIDS = ("spot_discount_limit", "spot_price_limit")
_BID: Final = 0.1
_SUPPLIED_LATER = ("display_name", "workspace_id")  # by the operator and by the connection

_STAND_INS: dict[str, Any] = {
    "display_name": "stand-in",
    "workspace_id": "0",
    "image": "stand-in",
    "user_command": "true",
    "ecs_spec": "ecs.stand-in",
    "user_vpc": {"VpcId": "stand-in", "SwitchId": "stand-in", "SecurityGroupId": "stand-in"},
    # The kind of resources with fewer rules: an `ml.` instance type may turn out to be called ECS.
    "resource_type": "ECS",
    "job_specs": [
        {
            "Type": "Worker",
            "Image": "stand-in",
            "EcsSpec": "ecs.stand-in",
            "SpotSpec": {"SpotDiscountLimit": _BID},
        }
    ],
}


def contains_template(value: object) -> bool:
    """Whether a value is known only at run time: Jinja in a text, at any depth, or an XComArg."""
    if isinstance(value, str):
        return any(mark in value for mark in ("{{", "{%", "{#"))
    if isinstance(value, Mapping):
        return any(map(contains_template, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(contains_template, value))
    return hasattr(value, "iter_references")  # what makes an object a reference to another task's result


def with_stand_ins(given: Mapping[str, Any], at_run_time: set[str]) -> dict[str, Any]:
    """Return arguments that are complete wherever `given` is silent because a value comes later."""
    arguments = dict(given)
    if "job_specs" in at_run_time:
        arguments = {name: value for name, value in arguments.items() if name not in FLAT_ARGUMENTS}
    elif not any(arguments.get(bid) is not None for bid in _BIDS) and at_run_time.intersection(_BIDS):
        arguments[_BIDS[0]] = _BID
    unknown = at_run_time.union(name for name in _SUPPLIED_LATER if name not in arguments)
    stand_ins = {name: value for name, value in _STAND_INS.items() if name in unknown}
    if "job_specs" in stand_ins:
        stand_ins = {name: value for name, value in stand_ins.items() if name not in FLAT_ARGUMENTS}
    return arguments | stand_ins
