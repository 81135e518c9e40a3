"""The step after a revocation."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_pai_spot.dlc.bids import Bid
from airflow_provider_pai_spot.recovery.spot_recovery import SpotRecovery


@dataclass(frozen=True, slots=True)
class Resubmit:
    """
    Submit a successor within this try.

    :param bid: what it bids; None for the task's own bid.
    :param reason: for the log: `revocation 2 of 5`.
    """

    bid: Bid | None
    reason: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """
    Leave it to Airflow's own retries.

    :param reason: for the log and the exception.
    """

    reason: str


def next_step(recovery: SpotRecovery, *, revocations_this_try: int, own_bid: Bid | None = None) -> Resubmit | GiveUp:
    """
    Return what to do after a revocation. Failures do not come here: they never touch this budget.

    :param revocations_this_try: revocations of the present Airflow try, the one just seen included.
    :param own_bid: the task's own bid; a price is never followed by a ladder of discounts.
    """
    allowed = recovery.max_revocations
    if revocations_this_try > allowed:
        return GiveUp(_used_up(allowed))
    bid = bid_after(recovery, losses=revocations_this_try, own_bid=own_bid)
    return Resubmit(bid, f"revocation {revocations_this_try} of {allowed}")


def bid_after(recovery: SpotRecovery, *, losses: int, own_bid: Bid | None = None) -> Bid | None:
    """Return the bid of the resubmission that follows this many losses; None for the task's own bid."""
    ladder = recovery.spot_discount_ladder
    if not ladder or (own_bid is not None and own_bid.kind == "price"):
        return None
    step = ladder[min(max(losses, 1), len(ladder)) - 1]
    return Bid("discount", format(step.normalize(), "f"))


def _used_up(allowed: int) -> str:
    if allowed == 0:
        return "recovery.max_revocations is 0: every loss is left to Airflow's retries"
    return f"all {allowed} revocations that recovery.max_revocations allows in one try are used up"
