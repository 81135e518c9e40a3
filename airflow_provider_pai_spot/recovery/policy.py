"""
The step after a job that lost its capacity, or never had any.

A pure function of what a try has come to; its reason is one phrase for the log.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from airflow_provider_pai_spot.dlc.bids import Bid
from airflow_provider_pai_spot.dlc.terms import AS_REQUESTED, JobTerms
from airflow_provider_pai_spot.market import Offer
from airflow_provider_pai_spot.recovery.choice import Choice, by_market, in_order
from airflow_provider_pai_spot.recovery.spot_recovery import SpotRecovery


class Ended(StrEnum):
    """How the job ended that is to be followed."""

    LOST = "lost"
    WAITED = "waited"
    """It was stopped after `pending_timeout`, without capacity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """
    What came before the step; the job that just ended is counted.

    :param losses: jobs lost in this try of Airflow.
    :param waits: jobs of this try that `pending_timeout` ended.
    :param losses_in_all: jobs lost in all tries, until a person clears the task.
    :param losses_without_progress: the last losses, one after another, that brought no progress (tries as above).
    :param waited_for: the types of the last jobs of this try, one after another, that `pending_timeout` ended.
    :param ecs_spec: what the job ran on, or waited for; '' if that is not known.
    :param bid: what it bid; None for the task's own bid.
    :param on_demand: whether it was at list price.
    """

    ended: Ended = Ended.LOST
    losses: int = 1
    waits: int = 0
    losses_in_all: int = 1
    losses_without_progress: int = 0
    waited_for: tuple[str, ...] = ()
    ecs_spec: str = ""
    bid: Bid | None = None
    on_demand: bool = False

    @property
    def resubmissions(self) -> int:
        """The resubmissions of this try, the one that is asked for included."""
        return self.losses + self.waits


@dataclass(frozen=True, slots=True)
class Resubmit:
    """
    Submit a successor within this try.

    :param terms: what it is submitted with instead of what the task asks for.
    :param reason: for the log: `revocation 2 of 5`.
    :param changes: for the log: what differs from the job before, '' if nothing does.
    """

    terms: JobTerms
    reason: str
    changes: str = ""

    def __str__(self) -> str:
        return f"{self.reason}: {self.changes}" if self.changes else self.reason


@dataclass(frozen=True, slots=True)
class GiveUp:
    """
    Leave it to Airflow's own retries.

    :param reason: for the log and the exception; '' where nothing was to be tried.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class StopSpending:
    """
    End the task: more of the same would be paid for and gain nothing.

    :param reason: for the log and the exception.
    """

    reason: str


Step = Resubmit | GiveUp | StopSpending


def next_step(recovery: SpotRecovery, history: History, own: JobTerms, offers: Iterable[Offer] = ()) -> Step:
    """
    Return what to do after a loss or a pending timeout. Failures do not come here: they never touch this budget.

    :param own: the bid and the instance type that the task itself asks for.
    :param offers: what DLC offers now, for `choose_ecs_spec="by_market"`.
    """
    return (
        _after_loss(recovery, history, own, offers)
        if history.ended is Ended.LOST
        else _after_wait(recovery, history, own, offers)
    )


def first_terms(recovery: SpotRecovery, losses_in_all: int) -> JobTerms:
    """Return what the first job of a try is submitted with: the task's own terms, unless on demand is due."""
    return JobTerms(on_demand=True) if _on_demand_is_due(recovery, losses_in_all) else AS_REQUESTED


def terms_after_loss(
    recovery: SpotRecovery, history: History, own: JobTerms, offers: Iterable[Offer] = ()
) -> tuple[JobTerms, str]:
    """Return what the job after a loss is submitted with, and what differs in words; budgets do not count here."""
    if _on_demand_is_due(recovery, history.losses_in_all):
        why = f"{history.losses_in_all} losses in all, recovery.on_demand_after is {recovery.on_demand_after}"
        return JobTerms(on_demand=True), f"on demand, at list price ({why})"
    bid = bid_after(recovery, history, own.bid)
    choice = _choice(recovery, history, own, bid, offers)
    return _terms(own, bid, choice), _in_words(bid, choice)


def bid_after(recovery: SpotRecovery, history: History, own: Bid | None = None) -> Bid | None:
    """Return the bid of the resubmission that is asked for; None for the task's own."""
    raises = history.losses + (history.waits if recovery.on_pending_timeout == "raise_bid" else 0)
    return _bid_at(recovery, raises, own)


def _bid_at(recovery: SpotRecovery, raises: int, own: Bid | None) -> Bid | None:
    ladder = recovery.ladder
    if not ladder or raises < 1 or (own is not None and own.kind != ladder[0].kind):
        return None
    return ladder[min(raises, len(ladder)) - 1]


def _after_loss(recovery: SpotRecovery, history: History, own: JobTerms, offers: Iterable[Offer]) -> Step:
    due = _on_demand_is_due(recovery, history.losses_in_all)
    most = recovery.max_losses_without_progress
    if not due and most is not None and history.losses_without_progress >= most:
        return StopSpending(
            f"{_times(history.losses_without_progress, 'loss', 'losses')} without any progress "
            "(recovery.max_losses_without_progress): another job would repeat the same work"
        )
    if history.resubmissions > recovery.max_revocations:
        return GiveUp(_used_up(recovery.max_revocations))
    terms, changes = terms_after_loss(recovery, history, own, offers)
    return Resubmit(terms, _count(recovery, history), changes)


def _after_wait(recovery: SpotRecovery, history: History, own: JobTerms, offers: Iterable[Offer]) -> Step:
    if recovery.on_pending_timeout == "fail":
        return GiveUp("")
    if history.on_demand:
        return GiveUp("the job waited on demand: neither another bid nor another type would help")
    if history.resubmissions > recovery.max_revocations:
        return GiveUp(_used_up(recovery.max_revocations))
    match recovery.on_pending_timeout:
        case "raise_bid":
            return _higher_bid(recovery, history, own)
        case "next_ecs_spec":
            return _other_type(recovery, history, own, offers)
        case _:
            changes = "on demand, at list price (recovery.on_pending_timeout)"
            return Resubmit(JobTerms(on_demand=True), _count(recovery, history), changes)


def _higher_bid(recovery: SpotRecovery, history: History, own: JobTerms) -> Step:
    bid = _raised(recovery, history.resubmissions, history.bid or own.bid)
    if bid is None:
        return GiveUp("the ladder has no higher bid than the one that waited")
    same_type = Choice(history.ecs_spec)
    return Resubmit(_terms(own, bid, same_type), _count(recovery, history), _in_words(bid, None))


def _raised(recovery: SpotRecovery, raises: int, waited_at: Bid | None) -> Bid | None:
    """Return the first rung above the bid that waited, from the rung of the n-th raise on; None if there is none."""
    if waited_at is None:
        return None
    left = recovery.ladder[raises - 1 :]
    return next((rung for rung in left if rung.kind == waited_at.kind and rung.amount > waited_at.amount), None)


def _other_type(recovery: SpotRecovery, history: History, own: JobTerms, offers: Iterable[Offer]) -> Step:
    types = _types(recovery, own)
    if set(types) <= set(history.waited_for):
        return GiveUp(f"none of {', '.join(types)} had capacity within pending_timeout")
    bid = bid_after(recovery, history, own.bid)
    choice = _choice(recovery, history, own, bid, offers, tried=history.waited_for)
    return Resubmit(_terms(own, bid, choice), _count(recovery, history), _in_words(None, choice))


def _choice(
    recovery: SpotRecovery,
    history: History,
    own: JobTerms,
    bid: Bid | None,
    offers: Iterable[Offer],
    *,
    tried: Collection[str] = (),
) -> Choice | None:
    """Return the type to go on with, none of those tried; None where there is nothing to choose."""
    if not recovery.ecs_specs:
        return None
    types = _types(recovery, own)
    if recovery.choose_ecs_spec == "by_market":
        wanted = [one for one in types if one not in tried]
        in_line = in_order(types, history.ecs_spec, "no offer at the bid", tried=tried)
        return by_market(wanted, offers, bid or own.bid) or in_line
    return in_order(types, history.ecs_spec, tried=tried)


def _types(recovery: SpotRecovery, own: JobTerms) -> list[str]:
    return list(dict.fromkeys([*([own.ecs_spec] if own.ecs_spec else []), *recovery.ecs_specs]))


def _terms(own: JobTerms, bid: Bid | None, choice: Choice | None) -> JobTerms:
    other = choice is not None and choice.ecs_spec not in ("", own.ecs_spec)
    return JobTerms(bid=bid, ecs_spec=choice.ecs_spec if choice is not None and other else None)


def _in_words(bid: Bid | None, choice: Choice | None) -> str:
    return " ".join(filter(None, (f"bids {bid}" if bid else "", f"on {choice}" if choice else "")))


def _on_demand_is_due(recovery: SpotRecovery, losses_in_all: int) -> bool:
    return recovery.on_demand_after is not None and losses_in_all >= recovery.on_demand_after


def _count(recovery: SpotRecovery, history: History) -> str:
    what = "resubmission" if history.waits else "revocation"
    return f"{what} {history.resubmissions} of {recovery.max_revocations}"


def _used_up(allowed: int) -> str:
    if allowed == 0:
        return "recovery.max_revocations is 0: every loss is left to Airflow's retries"
    return f"all {allowed} revocations that recovery.max_revocations allows in one try are used up"


def _times(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
