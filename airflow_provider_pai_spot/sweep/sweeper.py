"""Look, wait a minute, look again, stop what both looks call an orphan, and make sure that it stops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Protocol

from airflow_provider_pai_spot.attempts.identity import is_local_namespace
from airflow_provider_pai_spot.clock import Clock
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.status import Phase
from airflow_provider_pai_spot.exceptions import PaiDlcError, PaiSpotError
from airflow_provider_pai_spot.sweep import costs
from airflow_provider_pai_spot.sweep.candidates import (
    BETWEEN_LOOKS,
    Decision,
    Reason,
    Sighting,
    decide,
    rivals,
    standing,
)
from airflow_provider_pai_spot.sweep.finding import Found, ListCalls, OwnedJob, find
from airflow_provider_pai_spot.sweep.owners import OwnerRef, OwnerState, Presence, TaskRef
from airflow_provider_pai_spot.sweep.report import Result, SweepReport, SweptJob

STOP_SEEN_WITHIN: Final = timedelta(seconds=20)
"""How long a stop may take to show; all jobs of a sweep together."""
_LOOK_EVERY_SECONDS: Final = 2.0
_STRANGE: Final = Decision(
    Reason.NOT_AS_WE_MAKE_THEM,
    "its tags and its AIRFLOW_CTX_* variables do not fit together as this provider writes them",
)


class SweepRefused(PaiSpotError):
    """Jobs would be stopped on grounds that cannot be trusted."""


class SweepCalls(ListCalls, Protocol):
    """The calls of the hook that a sweep needs."""

    def stop_job(self, job_id: str) -> bool:
        """Stop a job."""
        ...

    def list_ecs_specs(self, instance_types: Sequence[str]) -> list[dict[str, Any]]:
        """Return instance types with their present spot discount."""
        ...


@dataclass(frozen=True, slots=True)
class _Look:
    found: Found
    sightings: Mapping[str, Sighting]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweeper:
    """
    Sweeps the jobs of one Airflow installation.

    :param namespace: the installation's; jobs of any other are not even looked at.
    :param owner_states: asks Airflow about many owners at once; one that is missing in the answer is unknown.
    :param held_job: asks Airflow which job a task instance waits for; '' where it does not say.
    :param log: gets a line before something takes its time or is stopped.
    """

    hook: SweepCalls
    namespace: str
    owner_states: Callable[[Iterable[OwnerRef]], Mapping[OwnerRef, OwnerState]]
    held_job: Callable[[TaskRef], str]
    clock: Clock
    log: Any

    def sweep(self, *, apply: bool) -> SweepReport:
        """
        Find orphans and, if `apply`, stop them; takes a minute longer if there may be any.

        :raises SweepRefused: `apply` in a namespace that many installations share.
        :raises PaiDlcError: DLC could not be asked.
        """
        if apply:
            refuse_shared(self.namespace)
        first = self._look()
        last = self._second_look(first)
        decisions = {
            job_id: decide(seen) if last is first else _decide_twice(job_id, first, seen)
            for job_id, seen in last.sightings.items()
        }
        swept = self._swept(last, decisions)
        if apply:
            swept = self._stop(swept)
        return SweepReport(namespace=self.namespace, applied=apply, jobs=swept)

    # --- looking ----------------------------------------------------------------------------------------

    def _second_look(self, first: _Look) -> _Look:
        suspects = [seen for seen in first.sightings.values() if decide(seen).reason is Reason.SEEN_ONCE]
        if not suspects:
            return first
        seconds = BETWEEN_LOOKS.total_seconds()
        self.log.info(
            "%d of %d live jobs may be orphans; looking again in %d s", len(suspects), len(first.sightings), seconds
        )
        self.clock.sleep(seconds)
        return self._look()

    def _look(self) -> _Look:
        found = find(self.hook, self.namespace)
        states = self.owner_states([one.owner_ref for one in found.owned])
        at = self.clock.now()
        return _Look(found, {one.job.job_id: self._sighting(one, found, states, at) for one in found.owned})

    def _sighting(self, one: OwnedJob, found: Found, states: Mapping[OwnerRef, OwnerState], at: datetime) -> Sighting:
        state = states.get(one.owner_ref) or OwnerState(
            presence=Presence.UNKNOWN, detail="it was silent about this one"
        )
        family = found.family_of(one)
        asks = state.presence is Presence.ALIVE and bool(rivals(one.kin, family))
        held = self.held_job(one.task_ref) if asks else ""
        return Sighting(
            at=at,
            created_at=one.job.created_at,
            owner=one.owner,
            state=state,
            standing=standing(one.kin, family, held),
            held_job_id=held,
        )

    # --- stopping ---------------------------------------------------------------------------------------

    def _stop(self, swept: Sequence[SweptJob]) -> list[SweptJob]:
        """Ask for all stops before waiting for any: what the looks said gets no time to grow old."""
        asked = [self._ask_to_stop(one) if one.decision.stops else one for one in swept]
        deadline = self.clock.now() + STOP_SEEN_WITHIN
        return [self._verified(one, deadline) if one.result is Result.STOPPING else one for one in asked]

    def _ask_to_stop(self, one: SweptJob) -> SweptJob:
        self.log.info("stopping %s: %s", one.job.job_id, one.decision.words)
        try:
            accepted = self.hook.stop_job(one.job.job_id)
        except PaiDlcError as error:
            return replace(one, result=Result.NOT_STOPPED, problem=str(error))
        return replace(one, result=Result.STOPPING if accepted else Result.ENDED)

    def _verified(self, one: SweptJob, deadline: datetime) -> SweptJob:
        """Accepted is not stopped: look until the job is over, or at least on its way."""
        while True:
            try:
                job = Job(self.hook.get_job(one.job.job_id))
            except PaiDlcError as error:
                return replace(one, result=Result.NOT_STOPPED, problem=str(error))
            if job.is_decided:
                return replace(one, job=job, result=Result.STOPPED)
            if self.clock.now() >= deadline:
                return _given_up(one, job)
            self.clock.sleep(_LOOK_EVERY_SECONDS)

    # --- telling ----------------------------------------------------------------------------------------

    def _swept(self, look: _Look, decisions: Mapping[str, Decision]) -> list[SweptJob]:
        jobs = [one.job for one in look.found.owned]
        market = self._market(jobs)
        judged = [(job, decisions[job.job_id]) for job in jobs] + [(job, _STRANGE) for job in look.found.strange]
        return [
            SweptJob(
                job=job,
                decision=decision,
                result=Result.WOULD_STOP if decision.stops else Result.LEFT,
                at=self.clock.now(),
                costs=costs.job_costs(job, market),
            )
            for job, decision in judged
        ]

    def _market(self, jobs: Iterable[Job]) -> dict[str, Decimal]:
        """Prices are only told, never decided by; without them the bid is told alone."""
        ecs_specs = costs.ecs_specs_of(jobs)
        if not ecs_specs:
            return {}
        try:
            return costs.market_discounts(self.hook.list_ecs_specs(ecs_specs))
        except PaiDlcError as error:
            self.log.warning("present spot prices are not known: %s", error)
            return {}


def refuse_shared(namespace: str) -> None:
    """
    Refuse to stop jobs by a name that every developer's Airflow goes by.

    :raises SweepRefused: it is localhost.
    """
    if is_local_namespace(namespace):
        raise SweepRefused(
            f"The namespace is {namespace!r}, which other people's Airflow may call itself, too: nothing is stopped. "
            "Set [pai_spot] namespace (jobs submitted from then on carry it), or name one with --namespace."
        )


def _decide_twice(job_id: str, first: _Look, seen: Sighting) -> Decision:
    before = first.sightings.get(job_id)
    return decide(seen) if before is None else decide(before, seen)


def _given_up(one: SweptJob, job: Job) -> SweptJob:
    if job.phase is Phase.STOPPING:
        return replace(one, job=job)
    problem = f"DLC accepted the stop and the job is still {job.status}; `pai-spot stop {job.job_id}` tries again"
    return replace(one, job=job, result=Result.NOT_STOPPED, problem=problem)
