"""The step after a loss or a pending timeout: again within this try, on which terms, or not."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.dlc.bids import Bid
from airflow_provider_pai_spot.dlc.job_request import build_job_request
from airflow_provider_pai_spot.dlc.refusal import InvalidJobRequest
from airflow_provider_pai_spot.dlc.terms import AS_REQUESTED, JobTerms
from airflow_provider_pai_spot.market import Offer
from airflow_provider_pai_spot.recovery import SpotRecovery
from airflow_provider_pai_spot.recovery.policy import (
    Ended,
    GiveUp,
    History,
    Resubmit,
    StopSpending,
    first_terms,
    next_step,
)

OWN = JobTerms(bid=Bid("discount", "0.4"), ecs_spec="ecs.a")
ON_DEMAND = JobTerms(on_demand=True)


def policy(**arguments: Any) -> SpotRecovery:
    return SpotRecovery.coerce(arguments)


def after_losses(recovery: SpotRecovery, count: int, own: JobTerms = OWN) -> list[Any]:
    """Return the steps of one try that loses so many jobs, one after another."""
    steps: list[Any] = []
    ecs_spec = own.ecs_spec or ""
    for losses in range(1, count + 1):
        step = next_step(recovery, History(losses=losses, losses_in_all=losses, ecs_spec=ecs_spec), own)
        steps.append(step)
        if not isinstance(step, Resubmit):
            break
        ecs_spec = step.terms.ecs_spec or own.ecs_spec or ""
    return steps


def waited(count: int, **history: Any) -> History:
    """Return what a try has come to whose last jobs all waited in vain, as its types stand in line."""
    types = ("ecs.a", "ecs.b", "ecs.c")[:count]
    return History(
        **{"ended": Ended.WAITED, "losses": 0, "losses_in_all": 0, "waits": count, "waited_for": types} | history
    )


# --- losses ---


def test_by_default_five_losses_are_answered_with_the_task_s_own_terms() -> None:
    steps = after_losses(policy(), 6)
    assert steps[:5] == [Resubmit(AS_REQUESTED, f"revocation {count} of 5") for count in range(1, 6)]
    assert steps[5] == GiveUp("all 5 revocations that recovery.max_revocations allows in one try are used up")


def test_zero_leaves_every_loss_to_airflow() -> None:
    [step] = after_losses(policy(max_revocations=0), 1)
    assert step == GiveUp("recovery.max_revocations is 0: every loss is left to Airflow's retries")


def test_a_ladder_is_climbed_in_its_own_order_and_its_last_bid_repeats() -> None:
    steps = after_losses(policy(spot_discount_ladder=[0.6, 0.9, 0.5]), 5)
    assert [step.terms.bid.value for step in steps] == ["0.6", "0.9", "0.5", "0.5", "0.5"]
    assert [step.changes for step in steps[:2]] == ["bids 0.6 of list price", "bids 0.9 of list price"]


def test_a_price_is_followed_by_prices_and_never_by_a_discount() -> None:
    own = JobTerms(bid=Bid("price", "0.011"), ecs_spec="ecs.a")
    prices = after_losses(policy(spot_price_ladder=[0.02, 0.03]), 3, own)
    assert [str(step.terms.bid) for step in prices] == [f"{price} CNY per minute" for price in ("0.02", "0.03", "0.03")]
    [discounts] = after_losses(policy(spot_discount_ladder=[0.6]), 1, own)
    assert discounts.terms == AS_REQUESTED


def test_types_are_taken_in_order_and_around_again() -> None:
    steps = after_losses(policy(ecs_specs=["ecs.b", "ecs.c"], max_revocations=6), 6)
    assert [step.terms.ecs_spec for step in steps] == ["ecs.b", "ecs.c", None, "ecs.b", "ecs.c", None]
    assert [step.changes for step in steps[:3]] == ["on ecs.b", "on ecs.c", "on ecs.a"]


def test_the_task_s_own_type_among_the_alternatives_counts_once() -> None:
    steps = after_losses(policy(ecs_specs=["ecs.a", "ecs.b"]), 3)
    assert [step.terms.ecs_spec for step in steps] == ["ecs.b", None, "ecs.b"]


def test_on_demand_comes_after_exactly_so_many_losses_and_stays() -> None:
    steps = after_losses(policy(on_demand_after=3, spot_discount_ladder=[0.6], ecs_specs=["ecs.b"]), 5)
    assert [step.terms.on_demand for step in steps] == [False, False, True, True, True]
    assert steps[2].terms == ON_DEMAND
    assert steps[2].changes == "on demand, at list price (3 losses in all, recovery.on_demand_after is 3)"


def test_losses_of_earlier_tries_count_for_on_demand_and_so_does_the_first_job_of_a_try() -> None:
    recovery = policy(on_demand_after=3, max_revocations=1)
    step = next_step(recovery, History(losses=1, losses_in_all=3), OWN)
    assert isinstance(step, Resubmit)
    assert step.terms == ON_DEMAND
    assert [first_terms(recovery, losses) for losses in (0, 2, 3)] == [AS_REQUESTED, AS_REQUESTED, ON_DEMAND]


# --- losses without progress ---


def test_two_losses_without_progress_stop_the_spending() -> None:
    step = next_step(policy(), History(losses=2, losses_in_all=2, losses_without_progress=2), OWN)
    assert isinstance(step, StopSpending)
    assert "2 losses without any progress" in step.reason


@pytest.mark.parametrize(("most", "without"), [(2, 1), (3, 2), (None, 50)])
def test_fewer_do_not_and_none_is_never(most: int | None, without: int) -> None:
    recovery = policy(max_losses_without_progress=most)
    assert isinstance(next_step(recovery, History(losses_without_progress=without), OWN), Resubmit)


def test_the_breaker_comes_before_the_budget_and_on_demand_before_the_breaker() -> None:
    stuck = History(losses=3, losses_in_all=3, losses_without_progress=2)
    assert isinstance(next_step(policy(max_revocations=2), stuck, OWN), StopSpending)
    step = next_step(policy(on_demand_after=3), stuck, OWN)
    assert isinstance(step, Resubmit)
    assert step.terms == ON_DEMAND


# --- the market chooses ---

OFFERS = {
    "ecs.a": Offer(instance_type="ecs.a", has_spot_stock=False, spot_discount=Decimal("0.1")),
    "ecs.b": Offer(instance_type="ecs.b", has_spot_stock=True, spot_discount=Decimal("0.35")),
    "ecs.c": Offer(instance_type="ecs.c", has_spot_stock=True, spot_discount=Decimal("0.2")),
    "ecs.d": Offer(instance_type="ecs.d", has_spot_stock=True, spot_discount=Decimal("0.7")),
    "ecs.e": Offer(instance_type="ecs.e", has_spot_stock=None, spot_discount=Decimal("0.1")),
    "ecs.f": Offer(instance_type="ecs.f", has_spot_stock=True, spot_discount=None),
}
BY_MARKET: dict[str, tuple[list[str], str, str]] = {
    "the cheapest in stock": (["ecs.b", "ecs.c"], "ecs.c", "in stock, 0.2 of list price now"),
    "one whose stock is shown before one whose is not": (["ecs.b", "ecs.e"], "ecs.b", "in stock, 0.35"),
    "one whose stock is not shown, for want of another": (["ecs.d", "ecs.e"], "ecs.e", "stock not shown, 0.1"),
    "none above the bid, so the next in order": (["ecs.d"], "ecs.d", "no offer at the bid"),
    "none without a spot price, so the next in order": (["ecs.f"], "ecs.f", "no offer at the bid"),
    "none that DLC does not list, so the next in order": (["ecs.x"], "ecs.x", "no offer at the bid"),
}


@pytest.mark.parametrize(("specs", "chosen", "why"), BY_MARKET.values(), ids=BY_MARKET)
def test_stock_and_price_choose_the_type(specs: list[str], chosen: str, why: str) -> None:
    recovery = policy(ecs_specs=specs, choose_ecs_spec="by_market")
    step = next_step(recovery, History(ecs_spec="ecs.a"), OWN, OFFERS.values())
    assert isinstance(step, Resubmit)
    assert step.terms.ecs_spec == chosen
    assert why in step.changes


def test_the_market_may_choose_the_type_that_was_just_lost() -> None:
    recovery = policy(ecs_specs=["ecs.b"], choose_ecs_spec="by_market", spot_discount_ladder=[0.9])
    offers = [OFFERS["ecs.b"], Offer(instance_type="ecs.a", has_spot_stock=True, spot_discount=Decimal("0.3"))]
    step = next_step(recovery, History(ecs_spec="ecs.a"), OWN, offers)
    assert isinstance(step, Resubmit)
    assert (step.terms.ecs_spec, step.changes) == (
        None,
        "bids 0.9 of list price on ecs.a (in stock, 0.3 of list price now)",
    )


def test_a_bid_in_money_cannot_be_compared_so_stock_alone_counts() -> None:
    own = JobTerms(bid=Bid("price", "0.011"), ecs_spec="ecs.a")
    recovery = policy(ecs_specs=["ecs.d", "ecs.c"], choose_ecs_spec="by_market")
    step = next_step(recovery, History(ecs_spec="ecs.a"), own, OFFERS.values())
    assert isinstance(step, Resubmit)
    assert step.terms.ecs_spec == "ecs.d"


# --- waiting in vain ---


def test_by_default_a_pending_timeout_is_airflow_s() -> None:
    assert next_step(policy(), waited(1), OWN) == GiveUp("")


def test_a_bid_is_raised_until_no_higher_one_is_left() -> None:
    recovery = policy(on_pending_timeout="raise_bid", spot_discount_ladder=[0.6, 0.9])
    steps = [next_step(recovery, waited(count, ecs_spec="ecs.a"), OWN) for count in (1, 2, 3)]
    assert [step.terms.bid.value for step in steps if isinstance(step, Resubmit) and step.terms.bid] == ["0.6", "0.9"]
    assert isinstance(steps[0], Resubmit)
    assert str(steps[0]) == "resubmission 1 of 5: bids 0.6 of list price"
    assert steps[2] == GiveUp("the ladder has no higher bid than the one that waited")


def test_a_rung_below_the_own_bid_is_passed_over_and_each_higher_one_waits_once() -> None:
    own = JobTerms(bid=Bid("discount", "0.7"), ecs_spec="ecs.a")
    recovery = policy(on_pending_timeout="raise_bid", spot_discount_ladder=[0.6, 0.9])
    first = next_step(recovery, waited(1, ecs_spec="ecs.a"), own)
    assert isinstance(first, Resubmit)
    assert first.terms.bid == Bid("discount", "0.9")
    assert isinstance(next_step(recovery, waited(2, bid=first.terms.bid), own), GiveUp)


NEXT_HIGHER: dict[str, tuple[tuple[float, ...], str, str | None]] = {
    "the own bid again after a loss": ((0.4, 0.6, 0.9), "lost waited", "0.6"),
    "the own bid again after a loss, and one rung left": ((0.4, 0.9), "lost waited", "0.9"),
    "the same rung twice": ((0.6, 0.6, 0.9), "lost lost waited", "0.9"),
    "a rung that is no higher, passed over": ((0.4, 0.6), "waited", "0.6"),
    "a loss after a raise goes on up": ((0.5, 0.6, 0.9), "waited lost waited", "0.9"),
    "the highest rung, then a fall": ((0.6, 0.9, 0.5), "lost lost waited", None),
    "a ladder that falls at last": ((0.6, 0.9, 0.5), "lost waited", "0.9"),
    "a fall between": ((0.6, 0.5, 0.9), "lost waited", "0.9"),
    "the last rung": ((0.6, 0.9), "lost lost waited", None),
    "the last rung, repeated": ((0.6,), "lost lost waited", None),
}


def bids_after(recovery: SpotRecovery, ends: Sequence[Ended]) -> list[Bid | None]:
    """Return the bids of one try whose jobs end like this, the task's own first; None where it gave up."""
    bids, history = [OWN.bid], History(losses=0, losses_in_all=0, ecs_spec="ecs.a")
    for ended in ends:
        history = _went_on(history, ended, None, JobTerms(bid=bids[-1]))
        step = next_step(recovery, history, OWN)
        if not isinstance(step, Resubmit):
            return [*bids, None]
        bids.append(step.terms.bid or OWN.bid)
    return bids


@pytest.mark.parametrize(("ladder", "ends", "bid"), NEXT_HIGHER.values(), ids=NEXT_HIGHER)
def test_a_wait_is_answered_by_the_next_higher_bid_of_the_ladder(
    ladder: tuple[float, ...], ends: str, bid: str | None
) -> None:
    recovery = policy(on_pending_timeout="raise_bid", spot_discount_ladder=ladder)
    assert bids_after(recovery, [Ended(end) for end in ends.split()])[-1] == (bid and Bid("discount", bid))


def test_a_raised_bid_stays_on_the_type_that_waited() -> None:
    recovery = policy(on_pending_timeout="raise_bid", spot_discount_ladder=[0.6, 0.9], ecs_specs=["ecs.b"])
    history = waited(1, losses=1, losses_in_all=1, ecs_spec="ecs.b")
    step = next_step(recovery, history, OWN)
    assert isinstance(step, Resubmit)
    assert step.terms == JobTerms(bid=Bid("discount", "0.9"), ecs_spec="ecs.b")


def test_a_ladder_that_falls_raises_nothing() -> None:
    recovery = policy(on_pending_timeout="raise_bid", spot_discount_ladder=[0.3])
    assert isinstance(next_step(recovery, waited(1), OWN), GiveUp)


def test_each_type_waits_once_at_the_same_bid() -> None:
    recovery = policy(on_pending_timeout="next_ecs_spec", spot_discount_ladder=[0.6], ecs_specs=["ecs.b", "ecs.c"])
    steps = [
        next_step(recovery, waited(1, ecs_spec="ecs.a"), OWN),
        next_step(recovery, waited(2, ecs_spec="ecs.b"), OWN),
    ]
    assert [step.terms for step in steps if isinstance(step, Resubmit)] == [
        JobTerms(ecs_spec="ecs.b"),
        JobTerms(ecs_spec="ecs.c"),
    ]
    last = next_step(recovery, waited(3, ecs_spec="ecs.c"), OWN)
    assert last == GiveUp("none of ecs.a, ecs.b, ecs.c had capacity within pending_timeout")


def test_the_market_never_sends_a_job_back_to_the_type_that_waited() -> None:
    recovery = policy(on_pending_timeout="next_ecs_spec", ecs_specs=["ecs.b", "ecs.c"], choose_ecs_spec="by_market")
    step = next_step(recovery, waited(1, ecs_spec="ecs.c", waited_for=("ecs.c",)), OWN, OFFERS.values())
    assert isinstance(step, Resubmit)
    assert step.terms.ecs_spec == "ecs.b"


@pytest.mark.parametrize("offers", [OFFERS.values(), ()], ids=["a market", "no offers"])
def test_by_market_too_each_type_waits_once(offers: Any) -> None:
    recovery = policy(on_pending_timeout="next_ecs_spec", ecs_specs=["ecs.b", "ecs.c"], choose_ecs_spec="by_market")
    seen = ["ecs.a"]
    for count in (1, 2):
        step = next_step(recovery, waited(count, ecs_spec=seen[-1], waited_for=tuple(seen)), OWN, offers)
        assert isinstance(step, Resubmit)
        seen.append(step.terms.ecs_spec or "ecs.a")
    assert sorted(seen) == ["ecs.a", "ecs.b", "ecs.c"]
    assert isinstance(next_step(recovery, waited(3, ecs_spec=seen[-1]), OWN, offers), GiveUp)


def test_a_job_that_waits_may_go_on_demand_and_one_that_waits_there_is_airflow_s() -> None:
    recovery = policy(on_pending_timeout="on_demand")
    step = next_step(recovery, waited(1), OWN)
    assert isinstance(step, Resubmit)
    assert step.terms == ON_DEMAND
    assert isinstance(next_step(recovery, waited(2, on_demand=True), OWN), GiveUp)


@pytest.mark.parametrize("answer", ["raise_bid", "next_ecs_spec", "on_demand"])
def test_jobs_that_wait_are_paid_from_the_same_budget(answer: str) -> None:
    recovery = policy(
        max_revocations=1, on_pending_timeout=answer, spot_discount_ladder=[0.6, 0.9], ecs_specs=["ecs.b", "ecs.c"]
    )
    assert isinstance(next_step(recovery, waited(1, ecs_spec="ecs.a"), OWN), Resubmit)
    assert isinstance(next_step(recovery, waited(1, losses=1, losses_in_all=1), OWN), GiveUp)


# --- whatever happens ---

TENTHS = st.integers(1, 9).map(lambda tenth: Decimal(tenth) / 10)
POLICIES = st.fixed_dictionaries(
    {
        "max_revocations": st.integers(0, 8),
        "spot_discount_ladder": st.lists(TENTHS, max_size=4),
        "ecs_specs": st.lists(st.sampled_from(["ecs.a", "ecs.b", "ecs.c", "ecs.d"]), max_size=3, unique=True),
        "choose_ecs_spec": st.sampled_from(["in_order", "by_market"]),
        "on_demand_after": st.none() | st.integers(1, 8),
        "on_pending_timeout": st.sampled_from(["fail", "raise_bid", "next_ecs_spec", "on_demand"]),
        "max_losses_without_progress": st.none() | st.integers(1, 4),
    }
)
ENDS = st.lists(st.tuples(st.sampled_from(Ended), st.sampled_from([True, False, None])), min_size=30, max_size=30)


@given(POLICIES, ENDS, st.sets(st.sampled_from(sorted(OFFERS))))
def test_a_try_always_ends_within_its_cap_and_no_bid_passes_nine_tenths(
    arguments: dict[str, Any], ends: list[tuple[Ended, bool | None]], offered: set[str]
) -> None:
    try:
        recovery = policy(**arguments)
    except InvalidJobRequest:
        return
    history = History(losses=0, losses_in_all=0, ecs_spec="ecs.a")
    terms = first_terms(recovery, 0)
    submitted = 1
    for ended, progressed in ends:
        if terms.on_demand and ended is Ended.LOST:
            break  # what does not bid cannot be outbid
        history = _went_on(history, ended, progressed, terms)
        step = next_step(recovery, history, OWN, [OFFERS[name] for name in sorted(offered)])
        if not isinstance(step, Resubmit):
            break
        terms, submitted = step.terms, submitted + 1
        assert str(history.resubmissions) in step.reason
        assert terms.bid is None or 0 < terms.bid.amount <= Decimal("0.9")
        assert terms.ecs_spec is None or terms.ecs_spec in recovery.ecs_specs
        assert not terms.on_demand or recovery.may_go_on_demand
    assert submitted <= recovery.max_revocations + 1


@given(st.lists(TENTHS, min_size=1, max_size=5), st.lists(st.sampled_from(Ended), max_size=7))
def test_a_wait_bids_the_first_rung_still_ahead_that_is_higher(ladder: list[Decimal], before: list[Ended]) -> None:
    recovery = policy(on_pending_timeout="raise_bid", spot_discount_ladder=ladder, max_revocations=9)
    *earlier, waited_at, bid = bids_after(recovery, [*before, Ended.WAITED])
    if waited_at is None or len(earlier) < len(before):
        return
    ahead = [rung for rung in recovery.ladder[len(before) :] if rung.amount > waited_at.amount]
    assert bid == (ahead[0] if ahead else None)


@given(st.sets(TENTHS.filter(lambda tenth: tenth >= Decimal("0.4")), min_size=1), st.lists(st.sampled_from(Ended)))
def test_on_a_ladder_that_rises_no_bid_is_below_the_one_before(rungs: set[Decimal], ends: list[Ended]) -> None:
    recovery = policy(on_pending_timeout="raise_bid", spot_discount_ladder=sorted(rungs), max_revocations=9)
    amounts = [bid.amount for bid in bids_after(recovery, ends) if bid is not None]
    assert amounts == sorted(amounts)


def _went_on(history: History, ended: Ended, progressed: bool | None, terms: JobTerms) -> History:
    from dataclasses import replace

    lost = ended is Ended.LOST
    without = 0 if progressed else history.losses_without_progress + (lost and progressed is False)
    return replace(
        history,
        ended=ended,
        losses=history.losses + lost,
        losses_in_all=history.losses_in_all + lost,
        waits=history.waits + (not lost),
        waited_for=() if lost else (*history.waited_for, history.ecs_spec),
        losses_without_progress=without,
        ecs_spec=terms.ecs_spec or "ecs.a",
        bid=terms.bid,
        on_demand=terms.on_demand,
    )


ROLES = st.lists(
    st.fixed_dictionaries(
        {"Type": st.sampled_from(["Master", "Worker", "PS"]), "PodCount": st.integers(1, 4), "bids": st.booleans()}
    ),
    min_size=1,
    max_size=3,
)


@given(ROLES, TENTHS)
def test_the_on_demand_body_differs_from_the_spot_body_only_in_its_spot_terms(
    roles: list[dict[str, Any]], tenth: Decimal
) -> None:
    roles[0]["bids"] = True
    bid = {"SpotSpec": {"SpotDiscountLimit": float(tenth)}}
    specs = [
        {"Type": role["Type"], "PodCount": role["PodCount"], "Image": "i", "EcsSpec": "ecs.a"}
        | (bid if role["bids"] else {})
        for role in roles
    ]
    request = build_job_request(
        {"job_specs": specs, "user_command": "c", "display_name": "n", "workspace_id": "1", "envs": {"A": "1"}}
    )
    spot = request.with_attempt({"t": "1"}, {"B": "2"})
    on_demand = request.with_attempt({"t": "1"}, {"B": "2"}, ON_DEMAND)
    assert any("SpotSpec" in role for role in spot["JobSpecs"])
    assert not any("SpotSpec" in role for role in on_demand["JobSpecs"])
    for role in spot["JobSpecs"]:
        role.pop("SpotSpec", None)
    assert spot == on_demand
