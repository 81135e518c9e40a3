"""From what the ledger knows to what the recovery policy is asked, for one try of Airflow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from airflow_provider_pai_spot.attempts.ledger import Attempt, AttemptLedger, Tally
from airflow_provider_pai_spot.attempts.moment import TryMoment
from airflow_provider_pai_spot.dlc.bids import bid_in
from airflow_provider_pai_spot.dlc.duration import duration
from airflow_provider_pai_spot.dlc.job_request import JobRequest
from airflow_provider_pai_spot.dlc.outcome import Cause, JobOutcome, StopReason, Verdict
from airflow_provider_pai_spot.dlc.terms import JobTerms
from airflow_provider_pai_spot.exceptions import PaiDlcError
from airflow_provider_pai_spot.market import Offer, read_offers
from airflow_provider_pai_spot.recovery import SpotRecovery
from airflow_provider_pai_spot.recovery.policy import Ended, History, Step, first_terms, next_step, terms_after_loss

_NOT_OF_THE_MARKET = "evicted_without_spot_terms"
"""The classifier's own rule for an eviction that neither spot terms nor idle quota explain."""


class MarketCalls(Protocol):
    """The call of the hook that is needed here."""

    def list_ecs_specs(self, instance_types: Sequence[str]) -> list[dict[str, Any]]:
        """Return instance types with their stock and present discount."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoverer:
    """
    Asks the policy.

    :param request: the job as the task asks for it.
    """

    hook: MarketCalls
    ledger: AttemptLedger
    moment: TryMoment
    request: JobRequest
    recovery: SpotRecovery
    log: Any

    def first_terms(self) -> JobTerms:
        """Return what the first job of this try is submitted with."""
        return first_terms(self.recovery, self._tally.losses_in_all)

    def count(self, outcome: JobOutcome) -> None:
        """Count an end that is acted upon now; a job is paid from the budget of the try that acts, whoever made it."""
        attempt = self.ledger.find(outcome.job_id)
        if attempt is not None and attempt.consumed:
            return
        if outcome.verdict is Verdict.REVOKED:
            self.ledger.count_loss(self.moment.try_number, self.moment.generation)
        elif waited_in_vain(outcome) and self.recovery.on_pending_timeout != "fail":
            self.ledger.count_wait(self.moment.try_number, self.moment.generation)

    def step(self, outcome: JobOutcome) -> Step:
        """Return what to do about a job that lost its capacity or waited in vain; it is counted and noted already."""
        tally, last = self._tally, self.ledger.find(outcome.job_id)
        history = History(
            ended=Ended.WAITED if waited_in_vain(outcome) else Ended.LOST,
            losses=tally.losses,
            waits=tally.waits,
            losses_in_all=tally.losses_in_all,
            losses_without_progress=self._losses_without_progress(),
            waited_for=self._waited_for()[: tally.waits],
            ecs_spec=(last.ecs_spec if last else "") or self._own.ecs_spec or "",
            bid=bid_in(last.bid) if last else None,
            on_demand=outcome.on_demand,
        )
        return next_step(self.recovery, history, self._own, self._offers())

    def warn_if_blind(self, outcome: JobOutcome, unreachable: str = "") -> None:
        """
        Say, once, that losses without progress cannot be told from losses with some.

        :param unreachable: why the checkpoints could not be looked at, '' if there are none.
        """
        if self.recovery.max_losses_without_progress is None or not outcome.has_run:
            return
        lost = [one for one in self._latest_first() if one.verdict == Verdict.REVOKED and one.progressed is None]
        blind = [one.job_id for one in lost if one.seconds_running or one.job_id == outcome.job_id]
        if blind != [outcome.job_id]:
            return
        self.log.warning(
            "%s: no progress can be seen, so recovery.max_losses_without_progress stops nothing; let the command print "
            'PAI_SPOT_PROGRESS {"step": 60} now and then%s',
            outcome.job_id,
            f". Its checkpoints cannot be looked at: {unreachable}" if unreachable else "",
        )

    def terms_after(self, lost: Attempt, losses: int) -> tuple[JobTerms, str]:
        """Return what follows a lost job, and what changes, where somebody else keeps the budget (a sensor)."""
        history = History(losses=losses, losses_in_all=losses, ecs_spec=lost.ecs_spec or self._own.ecs_spec or "")
        return terms_after_loss(self.recovery, history, self._own, self._offers())

    @property
    def _own(self) -> JobTerms:
        bid = next(iter(self.request.bids_by_role.values()), None)  # None: of arguments that cannot be used
        return JobTerms(bid=bid, ecs_spec=self.request.ecs_spec or None)

    @property
    def _tally(self) -> Tally:
        return self.ledger.tally(self.moment.try_number, self.moment.generation)

    def _losses_without_progress(self) -> int:
        count = 0
        for attempt in self._latest_first():
            if attempt.progressed:
                break
            count += attempt.verdict == Verdict.REVOKED and attempt.progressed is False
        return count

    def _waited_for(self) -> tuple[str, ...]:
        """Return the types of the newest jobs that waited in vain, newest first."""
        types = []
        for attempt in self._latest_first():
            if attempt.stop_reason != StopReason.PENDING_TIMEOUT or attempt.verdict != Verdict.STOPPED:
                break
            types.append(attempt.ecs_spec or self._own.ecs_spec or "")
        return tuple(types)

    def _latest_first(self) -> Iterator[Attempt]:
        return (one for one in reversed(self.ledger.attempts) if one.generation == self.moment.generation)

    def _offers(self) -> tuple[Offer, ...]:
        """Return what the market offers, if the policy wants to know; no answer is no reason to lose the work."""
        if self.recovery.choose_ecs_spec != "by_market":
            return ()
        types = list(dict.fromkeys(filter(None, (self.request.ecs_spec, *self.recovery.ecs_specs))))
        try:
            return read_offers(self.hook.list_ecs_specs(types))
        except PaiDlcError as error:
            self.log.warning("ListEcsSpecs does not say what is in stock, so ecs_specs are taken in order: %s", error)
            return ()


def waited_in_vain(outcome: JobOutcome) -> bool:
    """Whether `pending_timeout` ended a job that found no capacity, and it is really over."""
    over = outcome.stop_reason is StopReason.PENDING_TIMEOUT and outcome.verdict is Verdict.STOPPED
    return over and not outcome.had_machines


def lost_capacity(outcome: JobOutcome) -> bool:
    """Whether the market took the job's machines."""
    return outcome.verdict is Verdict.REVOKED and outcome.stop_reason is None


def as_submitted(outcome: JobOutcome, attempt: Attempt | None) -> JobOutcome:
    """Return the outcome of a job that we know not to have bid: the spot market cannot have taken its machines."""
    if attempt is None or not attempt.on_demand:
        return outcome
    outcome = replace(outcome, on_demand=True)
    if outcome.verdict is Verdict.REVOKED:
        return replace(
            outcome, verdict=Verdict.UNKNOWN, cause=Cause.UNKNOWN, rule=_NOT_OF_THE_MARKET, confidence="assumed"
        )
    return outcome


def how_it_ended(outcome: JobOutcome) -> str:
    """Return one phrase for the log; never the word "failed" for a loss."""
    if waited_in_vain(outcome):
        return f"no capacity for {outcome.job_id} in {duration(outcome.seconds_pending)} (pending_timeout)"
    return f"revoked after {duration(outcome.seconds_running)} ({'; '.join(outcome.evidence[:3])})"
