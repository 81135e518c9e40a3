"""After a revocation: again within this try, at which bid, or not."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.dlc.bids import Bid
from airflow_provider_pai_spot.dlc.refusal import InvalidJobRequest
from airflow_provider_pai_spot.recovery import GiveUp, Resubmit, SpotRecovery, next_step

OWN = Bid("discount", "0.4")


def test_by_default_five_revocations_are_answered_with_the_tasks_own_bid() -> None:
    recovery = SpotRecovery()
    steps = [next_step(recovery, revocations_this_try=count, own_bid=OWN) for count in range(1, 7)]
    assert steps[:5] == [Resubmit(None, f"revocation {count} of 5") for count in range(1, 6)]
    assert isinstance(steps[5], GiveUp)
    assert "all 5 revocations" in steps[5].reason


def test_zero_leaves_every_loss_to_airflow() -> None:
    step = next_step(SpotRecovery(max_revocations=0), revocations_this_try=1, own_bid=OWN)
    assert step == GiveUp("recovery.max_revocations is 0: every loss is left to Airflow's retries")


def test_a_ladder_is_climbed_in_its_own_order_and_its_last_bid_repeats() -> None:
    recovery = SpotRecovery(spot_discount_ladder=(0.6, 0.9, 0.5))  # type: ignore[arg-type]
    steps = [next_step(recovery, revocations_this_try=count, own_bid=OWN) for count in range(1, 6)]
    bids = [step.bid.value for step in steps if isinstance(step, Resubmit) and step.bid]
    assert bids == ["0.6", "0.9", "0.5", "0.5", "0.5"]


def test_a_price_is_never_followed_by_a_discount() -> None:
    recovery = SpotRecovery(spot_discount_ladder=(Decimal("0.6"),))
    price = Bid("price", "0.011")
    assert next_step(recovery, revocations_this_try=1, own_bid=price) == Resubmit(None, "revocation 1 of 5")
    with pytest.raises(InvalidJobRequest, match=r"spot_discount_ladder .*bids a price \(0\.011 CNY per minute\)"):
        recovery.check_against([OWN, price])


def test_a_ladder_off_the_grid_is_refused_or_warned_about_like_any_bid() -> None:
    recovery = SpotRecovery(spot_discount_ladder=(Decimal("0.6"), Decimal("0.75")))
    with pytest.raises(InvalidJobRequest, match=r"spot_discount_ladder\[1\] is '0\.75': bids are on a grid"):
        recovery.check_against([OWN])
    (warning,) = recovery.check_against([OWN], "warn")
    assert "0.75" in warning


def test_no_ladder_needs_no_check() -> None:
    assert SpotRecovery().check_against([Bid("price", "1")]) == ()


def test_the_argument_may_be_a_policy_a_mapping_or_nothing() -> None:
    written = {"max_revocations": 2, "spot_discount_ladder": ["0.60", 0.9]}
    policy = SpotRecovery(max_revocations=2, spot_discount_ladder=(Decimal("0.6"), Decimal("0.9")))
    assert SpotRecovery.coerce(written) == policy
    assert SpotRecovery.coerce(policy) is policy
    assert SpotRecovery.coerce(None) == SpotRecovery()


REFUSED: dict[str, tuple[Any, str]] = {
    "a number": (5, r"recovery is 5: expected a SpotRecovery or a mapping with max_revocations"),
    "a slip of the pen": ({"max_revocation": 2}, r"no key 'max_revocation'.*did you mean 'max_revocations'"),
    "an unknown key": ({"zone": "b"}, r"no key 'zone'; it has max_revocations and spot_discount_ladder"),
    "a negative count": ({"max_revocations": -1}, r"max_revocations is -1: expected a whole number from 0"),
    "a count in words": ({"max_revocations": "many"}, r"max_revocations is 'many'"),
    "a count that is a flag": ({"max_revocations": True}, r"max_revocations is True"),
    "a count without end": ({"max_revocations": 10**9}, r"from 0 to 1000"),
    "a ladder that is one number": ({"spot_discount_ladder": 0.6}, r"spot_discount_ladder is 0\.6: expected a seq"),
    "a ladder that is a text": ({"spot_discount_ladder": "0.6"}, r"spot_discount_ladder is '0\.6'"),
    "a step that is no discount": ({"spot_discount_ladder": [0.6, 1.0]}, r"spot_discount_ladder\[1\] is 1\.0"),
    "a step of nothing": ({"spot_discount_ladder": [0]}, r"spot_discount_ladder\[0\] is 0"),
    "a step above 0.9": ({"spot_discount_ladder": [0.95]}, r"a ladder ends at 0\.9 of list price"),
}


@pytest.mark.parametrize(("value", "message"), REFUSED.values(), ids=REFUSED)
def test_a_policy_that_cannot_be_meant_is_refused(value: Any, message: str) -> None:
    with pytest.raises(InvalidJobRequest, match=message):
        SpotRecovery.coerce(value)


LADDERS = st.lists(st.one_of(st.floats(0, 1), st.decimals(0, 1), st.integers(1, 9).map(lambda n: n / 10)), max_size=4)


@given(LADDERS, st.integers(0, 10), st.integers(1, 30))
def test_no_step_passes_the_cap_or_bids_above_nine_tenths(ladder: list[Any], cap: int, losses: int) -> None:
    try:
        recovery = SpotRecovery(max_revocations=cap, spot_discount_ladder=tuple(ladder))
    except InvalidJobRequest:
        return
    step = next_step(recovery, revocations_this_try=losses, own_bid=OWN)
    assert isinstance(step, Resubmit) == (losses <= cap)
    if isinstance(step, Resubmit) and step.bid is not None:
        assert 0 < step.bid.amount <= Decimal("0.9")
