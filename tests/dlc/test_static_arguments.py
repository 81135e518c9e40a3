"""While a DAG file is parsed, what is written out is checked and what is templated is waited for."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_pai_spot.dlc.job_request import (
    InvalidJobRequest,
    check_static_arguments,
    contains_template,
)

FLAT: dict[str, Any] = {
    "image": "registry/pytorch:2.3",
    "user_command": "python train.py",
    "ecs_spec": "ecs.g7.xlarge",
    "spot_discount_limit": 0.4,
}
LATER = "{{ params.x }}"
VPC = {"VpcId": "vpc-1", "SwitchId": "vsw-1", "SecurityGroupId": "sg-1"}
WORKER = {"Type": "Worker", "Image": "i", "EcsSpec": "ecs.a", "SpotSpec": {"SpotDiscountLimit": 0.4}}


class Reference:
    """Looks like Airflow's XComArg."""

    def iter_references(self) -> list[object]:
        return []


def test_name_and_workspace_may_still_come_from_elsewhere() -> None:
    check_static_arguments({**FLAT, "display_name": None})


PASSES: dict[str, dict[str, Any]] = {
    "image": {"image": LATER},
    "instance type": {"ecs_spec": LATER},
    "command": {"user_command": "echo {{ ds }}"},
    "bid": {"spot_discount_limit": LATER},
    "either bid": {"spot_discount_limit": LATER, "spot_price_limit": LATER},
    "price": {"spot_discount_limit": None, "spot_price_limit": Reference()},
    "price that may render to nothing": {"spot_price_limit": LATER},
    "kind of resources": {"ecs_spec": "ml.gu7xf", "resource_type": LATER},
    "network on Lingjun": {"ecs_spec": "ml.gu7xf", "user_vpc": LATER},
    "network inside overrides": {"ecs_spec": "ml.gu7xf", "job_overrides": LATER},
    "anything, by overrides": {"user_command": None, "job_overrides": {"UserCommand": LATER}},
    "roles": {"image": None, "ecs_spec": None, "spot_discount_limit": None, "job_specs": LATER},
    "roles beside flat arguments that may render to nothing": {"job_specs": LATER},
    "a value inside a dict": {"envs": {"A": LATER}},
    "every argument": dict.fromkeys([*FLAT, "pod_count", "priority", "settings", "checkpoint_uri"], LATER),
}


@pytest.mark.parametrize("arguments", PASSES.values(), ids=PASSES)
def test_what_is_known_only_at_run_time_is_not_refused(arguments: dict[str, Any]) -> None:
    check_static_arguments({**FLAT, **arguments})


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a bid off the grid": ({"image": LATER, "spot_discount_limit": 0.45}, "grid"),
    "two bids": ({"user_command": LATER, "spot_price_limit": 0.1}, "exactly one"),
    "no bid": ({"image": LATER, "spot_discount_limit": None}, "exactly one"),
    "a bid, beside one that may render to nothing": ({"spot_price_limit": LATER, "spot_discount_limit": 2}, "below 1"),
    "no command": ({"image": LATER, "user_command": None}, "user_command is not given"),
    "a price on Lingjun": (
        {"ecs_spec": "ml.gu7xf", "image": LATER, "spot_discount_limit": None, "spot_price_limit": 1, "user_vpc": VPC},
        "Lingjun",
    ),
    "no network on Lingjun": ({"ecs_spec": "ml.gu7xf", "image": LATER}, "VpcId"),
    "a wrong literal beside templated overrides": ({"priority": 10, "job_overrides": LATER}, "from 1 to 9"),
    "flat arguments beside roles": ({"image": LATER, "job_specs": [WORKER]}, "describes every role"),
    "a wrong flat argument beside templated roles": ({"pod_count": 0, "job_specs": LATER}, "pod_count"),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_written_out_and_wrong_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidJobRequest, match=message):
        check_static_arguments({**FLAT, **arguments})


def test_who_calls_may_say_what_is_known_only_at_run_time() -> None:
    check_static_arguments({**FLAT, "pod_count": "n"}, lambda name: name == "pod_count")
    with pytest.raises(InvalidJobRequest, match="pod_count"):
        check_static_arguments({**FLAT, "pod_count": "n"}, lambda _name: False)


def test_the_grid_can_be_left_at_parse_time_too() -> None:
    check_static_arguments({**FLAT, "spot_discount_limit": 0.45}, bid_grid="warn")


@pytest.mark.parametrize(
    "value",
    [LATER, "{% if x %}", "${#array[@]}", ["a", {"b": LATER}], Reference()],
    ids=lambda value: type(value).__name__,
)
def test_jinja_and_references_are_found_at_any_depth(value: object) -> None:
    assert contains_template(value)


@pytest.mark.parametrize("value", ["a {b}", 3, None, {"a": ["b", 0.4]}, "%2B $((A + 1))"], ids=repr)
def test_plain_values_are_no_templates(value: object) -> None:
    assert not contains_template(value)
