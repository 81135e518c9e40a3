"""The `recovery` argument: what can be meant by it, and what must fit the request."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from airflow_provider_pai_spot.dlc.job_request import JobRequest, build_job_request
from airflow_provider_pai_spot.dlc.refusal import InvalidJobRequest
from airflow_provider_pai_spot.recovery import SpotRecovery
from airflow_provider_pai_spot.recovery.checks import check_against


def test_the_argument_may_be_a_policy_a_mapping_or_nothing() -> None:
    written = {"max_revocations": 2, "spot_discount_ladder": ["0.60", 0.9]}
    policy = SpotRecovery(max_revocations=2, spot_discount_ladder=(Decimal("0.6"), Decimal("0.9")))
    assert SpotRecovery.coerce(written) == policy
    assert SpotRecovery.coerce(policy) is policy
    assert SpotRecovery.coerce(None) == SpotRecovery()


def test_nothing_that_costs_more_happens_unless_it_is_asked_for() -> None:
    recovery = SpotRecovery()
    assert (recovery.ladder, recovery.ecs_specs, recovery.may_go_on_demand) == ((), (), False)


REFUSED: dict[str, tuple[Any, str]] = {
    "a number": (5, r"recovery is 5: expected a SpotRecovery or a mapping with max_revocations, "),
    "a slip of the pen": ({"max_revocation": 2}, r"no key 'max_revocation'.*did you mean 'max_revocations'"),
    "an unknown key": ({"zone": "b"}, r"no key 'zone'; it has max_revocations, .* and max_losses_without_progress"),
    "a negative count": ({"max_revocations": -1}, r"max_revocations is -1: expected a whole number from 0"),
    "a count in words": ({"max_revocations": "many"}, r"max_revocations is 'many'"),
    "a count that is a flag": ({"max_revocations": True}, r"max_revocations is True"),
    "a count without end": ({"max_revocations": 10**9}, r"from 0 to 1000"),
    "a ladder that is one number": ({"spot_discount_ladder": 0.6}, r"spot_discount_ladder is 0\.6: expected a seq"),
    "a ladder that is a text": ({"spot_discount_ladder": "0.6"}, r"spot_discount_ladder is '0\.6'"),
    "a step that is no discount": ({"spot_discount_ladder": [0.6, 1.0]}, r"spot_discount_ladder\[1\] is 1\.0"),
    "a step of nothing": ({"spot_discount_ladder": [0]}, r"spot_discount_ladder\[0\] is 0"),
    "a step above 0.9": ({"spot_discount_ladder": [0.95]}, r"a ladder ends at 0\.9 of list price"),
    "a price of nothing": ({"spot_price_ladder": [0]}, r"spot_price_ladder\[0\] is 0.*CNY per minute"),
    "two ladders": ({"spot_price_ladder": [1], "spot_discount_ladder": [0.6]}, "a discount or a price, never both"),
    "one type as text": ({"ecs_specs": "ecs.g7.xlarge"}, r"ecs_specs is 'ecs\.g7\.xlarge': expected a sequence"),
    "a type that is none": ({"ecs_specs": ["ecs.g7 xlarge"]}, r"ecs_specs\[0\] is 'ecs\.g7 xlarge'"),
    "an unheard-of choice": (
        {"ecs_specs": ["e"], "choose_ecs_spec": "best"},
        "expected one of 'in_order', 'by_market'",
    ),
    "a choice of nothing": ({"choose_ecs_spec": "by_market"}, "choose_ecs_spec is 'by_market': it needs ecs_specs"),
    "on demand at once": ({"on_demand_after": 0}, r"on_demand_after is 0: expected a whole number from 1"),
    "an unheard-of answer": ({"on_pending_timeout": "wait"}, "on_pending_timeout is 'wait': expected one of 'fail'"),
    "a bid to raise to": (
        {"on_pending_timeout": "raise_bid"},
        "it needs a spot_discount_ladder or a spot_price_ladder",
    ),
    "a type to go to": ({"on_pending_timeout": "next_ecs_spec"}, "it needs ecs_specs"),
    "a breaker that never lets through": ({"max_losses_without_progress": 0}, "max_losses_without_progress is 0"),
}


@pytest.mark.parametrize(("value", "message"), REFUSED.values(), ids=REFUSED)
def test_a_policy_that_cannot_be_meant_is_refused(value: Any, message: str) -> None:
    with pytest.raises(InvalidJobRequest, match=message):
        SpotRecovery.coerce(value)


def request(**arguments: Any) -> JobRequest:
    given: dict[str, Any] = {"image": "i", "ecs_spec": "ecs.g7.xlarge", "spot_discount_limit": 0.4}
    always = {"user_command": "c", "display_name": "n", "workspace_id": "1"}
    return build_job_request(always | (arguments if "job_specs" in arguments else given | arguments))


def role(kind: str, **keys: Any) -> dict[str, Any]:
    return {"Type": kind, "Image": "i", "EcsSpec": "ecs.g7.xlarge", "SpotSpec": {"SpotDiscountLimit": 0.4}, **keys}


TWO_TYPES = [role("Master"), role("Worker", EcsSpec="ecs.g7.2xlarge")]
ELASTIC = [role("Worker", ElasticSpotSpecs=[{"InstanceType": "ecs.g7.2xlarge"}])]
DO_NOT_FIT: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "discounts after a price": (
        {"spot_discount_ladder": [0.6]},
        {"spot_discount_limit": None, "spot_price_limit": 0.011},
        r"spot_discount_ladder .*bids a price \(0\.011 CNY per minute\)",
    ),
    "prices after a discount": (
        {"spot_price_ladder": [0.02]},
        {},
        r"spot_price_ladder .*bids a discount \(0\.4 of list price\).*spot_price_limit",
    ),
    "a ladder off the grid": (
        {"spot_discount_ladder": [0.6, 0.75]},
        {},
        r"spot_discount_ladder\[1\] is '0\.75': bids are on a grid",
    ),
    "another type for roles of two": (
        {"ecs_specs": ["ecs.c7.large"]},
        {"job_specs": TWO_TYPES},
        "one EcsSpec in common",
    ),
    "another type beside elastic ones": (
        {"ecs_specs": ["ecs.c7.large"]},
        {"job_specs": ELASTIC},
        r"recovery\.ecs_specs is .*ElasticSpotSpecs",
    ),
    "on demand for want of capacity, too": (
        {"on_pending_timeout": "on_demand"},
        {"job_specs": ELASTIC},
        r"recovery\.on_pending_timeout is 'on_demand'.*ElasticSpotSpecs",
    ),
    "on demand beside elastic types": ({"on_demand_after": 1}, {"job_specs": ELASTIC}, "ElasticSpotSpecs"),
    "Lingjun after general computing": (
        {"ecs_specs": ["ecs.c7.large", "ml.gu7ef.8xlarge-gu100"]},
        {},
        r"ecs_specs\[1\] is 'ml\.gu7ef.*of another kind",
    ),
}


@pytest.mark.parametrize(("recovery", "arguments", "message"), DO_NOT_FIT.values(), ids=DO_NOT_FIT)
def test_a_step_that_cannot_follow_the_request_is_refused(
    recovery: dict[str, Any], arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidJobRequest, match=message):
        check_against(SpotRecovery.coerce(recovery), request(**arguments))


def bidding(**bids: float | None) -> list[dict[str, Any]]:
    """Roles in this order; None: on demand."""
    return [
        {
            key: value
            for key, value in role(kind, SpotSpec={"SpotDiscountLimit": bid}).items()
            if bid or key != "SpotSpec"
        }
        for kind, bid in bids.items()
    ]


ONE_BID_FOR_ALL: dict[str, dict[str, Any]] = {
    "a ladder": {"spot_discount_ladder": [0.6]},
    "a ladder that only a wait climbs": {"spot_discount_ladder": [0.6], "on_pending_timeout": "raise_bid"},
    "a type by its price": {"ecs_specs": ["ecs.c7.large"], "choose_ecs_spec": "by_market"},
}
EACH_ITS_OWN: dict[str, dict[str, Any]] = {
    "nothing": {},
    "types in order": {"ecs_specs": ["ecs.c7.large"]},
    "on demand": {"on_demand_after": 2, "on_pending_timeout": "on_demand"},
}
DIFFERENT = [bidding(Worker=0.3, Master=0.9), bidding(Master=0.9, Worker=0.3)]
ALIKE = [bidding(Worker=0.3, Master=0.3), bidding(Master=None, Worker=0.3), bidding(Worker=0.3)]


@pytest.mark.parametrize("roles", DIFFERENT, ids=["low first", "high first"])
@pytest.mark.parametrize("recovery", ONE_BID_FOR_ALL.values(), ids=ONE_BID_FOR_ALL)
def test_one_bid_cannot_stand_for_roles_that_bid_differently(
    recovery: dict[str, Any], roles: list[dict[str, Any]]
) -> None:
    told = r"the roles bid \w+ 0\.[39] of list price and \w+ 0\.[39] of list price; bid the same in every SpotSpec"
    with pytest.raises(InvalidJobRequest, match=told) as refused:
        check_against(SpotRecovery.coerce(recovery), request(job_specs=roles))
    assert str(refused.value).startswith(("recovery.spot_discount_ladder is", "recovery.choose_ecs_spec is"))


@pytest.mark.parametrize("roles", DIFFERENT, ids=["low first", "high first"])
@pytest.mark.parametrize("recovery", EACH_ITS_OWN.values(), ids=EACH_ITS_OWN)
def test_roles_may_bid_differently_where_each_keeps_its_own_bid(
    recovery: dict[str, Any], roles: list[dict[str, Any]]
) -> None:
    check_against(SpotRecovery.coerce(recovery), request(job_specs=roles))


@pytest.mark.parametrize("roles", ALIKE, ids=["all alike", "one on demand", "a single one"])
@pytest.mark.parametrize("recovery", ONE_BID_FOR_ALL.values(), ids=ONE_BID_FOR_ALL)
def test_one_bid_stands_for_roles_that_bid_alike(recovery: dict[str, Any], roles: list[dict[str, Any]]) -> None:
    check_against(SpotRecovery.coerce(recovery), request(job_specs=roles))


def test_prices_that_differ_are_told_apart_too() -> None:
    roles = [role(kind, SpotSpec={"SpotPriceLimit": bid}) for kind, bid in {"Worker": 0.01, "Master": 0.02}.items()]
    with pytest.raises(
        InvalidJobRequest, match=r"recovery\.spot_price_ladder .*Worker 0\.01 CNY per minute and Master 0"
    ):
        check_against(SpotRecovery.coerce({"spot_price_ladder": [0.03]}), request(job_specs=roles))


def test_a_grid_that_does_not_bind_is_warned_about() -> None:
    (warning,) = check_against(SpotRecovery.coerce({"spot_discount_ladder": [0.75]}), request(), "warn")
    assert "0.75" in warning


def test_a_price_is_followed_by_prices() -> None:
    recovery = SpotRecovery.coerce({"spot_price_ladder": [0.02, "0.03"]})
    assert check_against(recovery, request(spot_discount_limit=None, spot_price_limit=0.011)) == ()
    assert [str(bid) for bid in recovery.ladder] == ["0.02 CNY per minute", "0.03 CNY per minute"]


AIMASTER = {"EnableErrorMonitoringInAIMaster": True, "ErrorMonitoringArgs": "--enable-job-restart=True"}
LAYERS: dict[str, tuple[dict[str, Any], int, str]] = {
    "AIMaster's own default": (AIMASTER, 5, "up to 3 times a job.*up to 5 times a try: up to 24 runs"),
    "AIMaster's limit, with a blank": (
        AIMASTER | {"ErrorMonitoringArgs": "--enable-job-restart True --max-num-of-job-restart 200"},
        5,
        "up to 200 times a job.*up to 1206 runs",
    ),
    "elastic restarts": ({"ElasticSpotJobMaxRestartTimes": 2}, 1, "up to 2 times a job.*up to 6 runs"),
    "resubmissions switched off": (AIMASTER, 0, ""),
    "restarts not asked for": ({**AIMASTER, "ErrorMonitoringArgs": "--job-hang-interval=1200"}, 5, ""),
    "AIMaster switched off": ({**AIMASTER, "EnableErrorMonitoringInAIMaster": False}, 5, ""),
}


@pytest.mark.parametrize(("settings", "revocations", "message"), LAYERS.values(), ids=LAYERS)
def test_two_layers_of_restarts_are_warned_of_when_they_multiply(
    settings: dict[str, Any], revocations: int, message: str
) -> None:
    import re

    warnings = check_against(SpotRecovery(max_revocations=revocations), request(settings=settings))
    assert bool(warnings) == bool(message)
    assert all(re.search(message, warning) for warning in warnings)
