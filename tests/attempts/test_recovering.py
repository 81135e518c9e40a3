"""What the policy is told: the ledger's counts, the market's offers, and what is known of a job that did not bid."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.ledger import Attempt, AttemptLedger, MemoryStore, Tally
from airflow_provider_pai_spot.attempts.moment import TryMoment
from airflow_provider_pai_spot.attempts.recovering import Recoverer, as_submitted
from airflow_provider_pai_spot.dlc.bids import Bid
from airflow_provider_pai_spot.dlc.job_request import build_job_request
from airflow_provider_pai_spot.dlc.outcome import JobOutcome, StopReason, Verdict
from airflow_provider_pai_spot.dlc.terms import JobTerms
from airflow_provider_pai_spot.exceptions import PaiDlcError, PaiDlcUnavailable
from airflow_provider_pai_spot.recovery import SpotRecovery
from airflow_provider_pai_spot.recovery.policy import GiveUp, Resubmit, StopSpending

OWN, OTHER, THIRD = "ecs.g7.xlarge", "ecs.g7.2xlarge", "ecs.c7.large"
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
LOST = JobOutcome(job_id="dlc0", verdict=Verdict.REVOKED, status="Failed")
WAITED = JobOutcome(job_id="dlc0", verdict=Verdict.STOPPED, status="Stopped", stop_reason=StopReason.PENDING_TIMEOUT)


class Market:
    """ListEcsSpecs with this answer."""

    def __init__(self, answer: list[dict[str, Any]] | PaiDlcError) -> None:
        self.answer = answer
        self.asked: list[Sequence[str]] = []

    def list_ecs_specs(self, instance_types: Sequence[str]) -> list[dict[str, Any]]:
        self.asked.append(instance_types)
        if isinstance(self.answer, PaiDlcError):
            raise self.answer
        return self.answer


def in_stock(*instance_types: str) -> list[dict[str, Any]]:
    return [
        {"InstanceType": one, "SpotStockStatus": "WithStock", "NonProtectSpotDiscount": 0.2} for one in instance_types
    ]


def recoverer(log: Any, *attempts: Attempt, market: Market | None = None, **recovery: Any) -> Recoverer:
    ledger = AttemptLedger(MemoryStore())
    for attempt in attempts or (past(0),):
        ledger.put(attempt)
    request = {"image": "i", "user_command": "c", "ecs_spec": OWN, "spot_discount_limit": 0.4}
    return Recoverer(
        hook=market or Market([]),
        ledger=ledger,
        moment=TryMoment(try_number=1, max_tries=2, started_at=NOON, run_started_at=NOON),
        request=build_job_request(request | {"display_name": "n", "workspace_id": "1"}),
        recovery=SpotRecovery.coerce(recovery),
        log=log,
    )


def past(number: int, **changes: Any) -> Attempt:
    known: dict[str, Any] = {"generation": 2, "request_hash": "h", "job_id": f"dlc{number}", "ecs_spec": OWN}
    return Attempt(number=number, **(known | changes))


def lost(number: int, *, progressed: bool | None, **changes: Any) -> Attempt:
    return past(number, consumed=True, verdict="revoked", progressed=progressed, **changes)


def waited(number: int, ecs_spec: str = OWN) -> Attempt:
    return past(number, consumed=True, verdict="stopped", stop_reason="pending_timeout", ecs_spec=ecs_spec)


def after_waits(in_this_try: int, asking: Recoverer) -> Any:
    for _ in range(in_this_try):
        asking.ledger.count_wait(asking.moment.try_number, asking.moment.generation)
    return asking.step(WAITED)


def test_the_market_is_asked_about_the_types_that_may_be_taken(kept_log: Any) -> None:
    market = Market(in_stock(THIRD))
    asking = recoverer(kept_log, market=market, ecs_specs=[OTHER, THIRD], choose_ecs_spec="by_market")
    asking.count(LOST)
    step = asking.step(LOST)
    assert market.asked == [[OWN, OTHER, THIRD]]
    assert isinstance(step, Resubmit)
    assert step.terms.ecs_spec == THIRD


def test_a_market_that_does_not_answer_is_said_and_types_are_taken_in_order(kept_log: Any) -> None:
    silent = Market(PaiDlcUnavailable("ListEcsSpecs: 503"))
    asking = recoverer(kept_log, market=silent, ecs_specs=[OTHER, THIRD], choose_ecs_spec="by_market")
    asking.count(LOST)
    step = asking.step(LOST)
    assert isinstance(step, Resubmit)
    assert step.terms.ecs_spec == OTHER
    assert ["ecs_specs are taken in order: ListEcsSpecs: 503" in line for line in kept_log.lines] == [True]


def test_in_order_the_market_is_not_asked(kept_log: Any) -> None:
    market = Market(in_stock(THIRD))
    asking = recoverer(kept_log, market=market, ecs_specs=[OTHER])
    asking.count(LOST)
    asking.step(LOST)
    assert market.asked == []


def test_an_attempt_of_an_older_release_ran_on_the_task_s_own_type(kept_log: Any) -> None:
    asking = recoverer(kept_log, past(0, ecs_spec=""), ecs_specs=[OTHER])
    asking.count(LOST)
    step = asking.step(LOST)
    assert isinstance(step, Resubmit)
    assert step.terms.ecs_spec == OTHER


def test_an_end_that_was_acted_upon_is_not_counted_again(kept_log: Any) -> None:
    asking = recoverer(kept_log, lost(0, progressed=None))
    asking.count(LOST)
    assert asking.ledger.tally(1, 2) == Tally(2, 1)


@pytest.mark.parametrize(("answer", "waits"), [("fail", 0), ("on_demand", 1)])
def test_a_job_that_waited_counts_only_if_it_is_answered(kept_log: Any, answer: str, waits: int) -> None:
    asking = recoverer(kept_log, on_pending_timeout=answer)
    asking.count(WAITED)
    assert asking.ledger.tally(1, 2).waits == waits


BREAKER: dict[str, tuple[list[Attempt], bool]] = {
    "two in a row": ([lost(0, progressed=False), lost(1, progressed=False)], True),
    "one that cannot be seen between them": (
        [lost(0, progressed=False), lost(1, progressed=None), lost(2, progressed=False)],
        True,
    ),
    "one that came further between them": (
        [lost(0, progressed=False), lost(1, progressed=True), lost(2, progressed=False)],
        False,
    ),
    "one before a person cleared the task": (
        [lost(0, progressed=False, generation=1), lost(1, progressed=False)],
        False,
    ),
    "a failure is no loss": ([past(0, verdict="failed", progressed=False), lost(1, progressed=False)], False),
    "none of which anything can be seen": ([lost(0, progressed=None), lost(1, progressed=None)], False),
}


@pytest.mark.parametrize(("attempts", "stops"), BREAKER.values(), ids=BREAKER)
def test_losses_without_progress_are_those_since_the_last_sign_of_it(
    kept_log: Any, attempts: list[Attempt], stops: bool
) -> None:
    asking = recoverer(kept_log, *attempts)
    assert isinstance(asking.step(LOST), StopSpending) == stops


def test_types_that_waited_are_counted_since_the_last_job_that_ran(kept_log: Any) -> None:
    policy: dict[str, Any] = {"ecs_specs": [OTHER], "on_pending_timeout": "next_ecs_spec"}
    assert isinstance(after_waits(2, recoverer(kept_log, waited(0), waited(1, OTHER), **policy)), GiveUp)
    after_a_loss = recoverer(kept_log, waited(0), lost(1, progressed=None), waited(2, OTHER), **policy)
    assert isinstance(after_waits(2, after_a_loss), Resubmit)


@pytest.mark.parametrize(
    ("waited_at", "bid"), [("0.4 of list price", "0.6"), ("0.6 of list price", "0.9"), ("", "0.6"), ("edited", "0.6")]
)
def test_a_wait_is_answered_from_the_bid_that_waited(kept_log: Any, waited_at: str, bid: str) -> None:
    policy: dict[str, Any] = {"spot_discount_ladder": [0.6, 0.9], "on_pending_timeout": "raise_bid"}
    step = after_waits(1, recoverer(kept_log, past(0, bid=waited_at), **policy))
    assert isinstance(step, Resubmit)
    assert step.terms.bid == Bid("discount", bid)


def test_a_new_try_lets_each_type_wait_again(kept_log: Any) -> None:
    policy: dict[str, Any] = {"ecs_specs": [OTHER], "on_pending_timeout": "next_ecs_spec"}
    assert isinstance(after_waits(1, recoverer(kept_log, waited(0), waited(1, OTHER), waited(2), **policy)), Resubmit)


def test_the_first_job_of_a_try_is_on_demand_once_enough_were_lost(kept_log: Any) -> None:
    asking = recoverer(kept_log, on_demand_after=2)
    assert asking.first_terms() == JobTerms()
    for _ in range(2):
        asking.ledger.count_loss(1, 2)
    assert asking.first_terms() == JobTerms(on_demand=True)


def test_a_job_that_did_not_bid_cannot_have_lost_spot_capacity() -> None:
    told = as_submitted(LOST, past(0, on_demand=True, bid=""))
    assert (told.verdict, told.rule, told.on_demand) == (Verdict.UNKNOWN, "evicted_without_spot_terms", True)
    assert as_submitted(LOST, past(0)) == LOST
    assert as_submitted(LOST, None) == LOST
