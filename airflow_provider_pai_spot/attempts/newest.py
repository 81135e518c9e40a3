"""The newest job of a task instance: from the state store or, where that lost it, from DLC's tags."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from airflow_provider_pai_spot.attempts.answers import answered
from airflow_provider_pai_spot.attempts.identity import (
    ENV_CHECKPOINT_DIR,
    TAG_ATTEMPT,
    TAG_GENERATION,
    TAG_LEDGER,
    TAG_REQUEST,
    bids_for_spot,
    is_local_namespace,
    tag_number,
)
from airflow_provider_pai_spot.attempts.ledger import HANDED_OVER, Attempt, AttemptLedger
from airflow_provider_pai_spot.attempts.moment import TryMoment
from airflow_provider_pai_spot.attempts.places import PlaceUnreachable
from airflow_provider_pai_spot.attempts.stopping import stop_and_wait
from airflow_provider_pai_spot.attempts.submission import FoundJobs, Submitter
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import StopReason, Verdict
from airflow_provider_pai_spot.dlc.terms import ecs_specs_of_bidders
from airflow_provider_pai_spot.dlc.wire import integer_of
from airflow_provider_pai_spot.exceptions import PaiDlcNotFound

_LOOK_EVERY = 5.0
_NOBODY_S = -1
_CANNOT_TELL = (
    "the state store knows no job, and under the namespace %r, which other installations have too, jobs cannot be told "
    "apart by their tags; set [pai_spot] namespace to have them looked for"
)

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestFinder:
    """Finds the newest attempt and its job."""

    submitter: Submitter
    ledger: AttemptLedger
    moment: TryMoment
    log: Any

    def find(self) -> tuple[Attempt, Job] | None:
        """
        Return the newest attempt with its job; None if there is none that DLC still knows.

        :raises PaiDlcError: DLC could not be asked; nothing may be submitted on a guess.
        """
        newest = self.ledger.newest
        if newest is not None and newest.job_id is None:
            newest = self._resolve_intent(newest)
        if newest is None or newest.job_id is None:
            return self._by_tags()
        if newest.verdict == HANDED_OVER and (successor := self._successor_of(newest)) is not None:
            return successor
        try:
            job = self._read(newest, newest.job_id)
        except PlaceUnreachable as error:
            if not self._is_done_with(newest):
                raise
            self.log.warning("%s has ended, and is not looked at again: %s", newest.job_id, error)
            return None
        return None if job is None else (newest, job)

    def _is_done_with(self, attempt: Attempt) -> bool:
        """Whether it ended and was acted upon, and is not the success that a retry of the same work reports."""
        ended = attempt.consumed and attempt.verdict not in ("", HANDED_OVER)
        is_answer = attempt.verdict == Verdict.SUCCEEDED and attempt.generation == self.moment.generation
        return ended and not is_answer

    def _successor_of(self, handed_over: Attempt) -> tuple[Attempt, Job] | None:
        """A sensor submits successors of a job that was handed over to it; they are known by their tags only."""
        jobs = [job for job in self._answered(self.submitter.find).of_this_run if _number(job) > handed_over.number]
        if not jobs:
            return None
        # The generation on its tags is the sensor's, which says nothing about this task.
        successor = replace(self.attempt_of(jobs[-1]), consumed=True, verdict=HANDED_OVER, generation=_NOBODY_S)
        return self.ledger.put(successor), jobs[-1]

    def _read(self, attempt: Attempt, job_id: str) -> Job | None:
        """Read the job; one submitted a moment ago may not be visible yet."""
        clock = self.submitter.clock
        visible_by = _time(attempt.submitting_at, clock.now()) + timedelta(seconds=self.submitter.patience)
        while True:
            try:
                return Job(self._answered(lambda: self.submitter.hook.get_job(job_id)))
            except PaiDlcNotFound:
                if clock.now() >= visible_by:
                    self.log.warning("%s is known to the state store but not to DLC any more", job_id)
                    return None
                clock.sleep(_LOOK_EVERY)

    def _resolve_intent(self, intent: Attempt) -> Attempt | None:
        """A submission whose outcome was never stored: the job may exist and be billed."""
        self.log.warning(
            "an earlier try was interrupted while it submitted attempt %d; looking for the job for up to %d s",
            intent.number,
            self.submitter.patience,
        )
        found = self.submitter.where_sent(intent).find_attempt(intent.number, patiently=True)
        if found is None:
            self.ledger.drop(intent.number)
            return self.ledger.newest
        return self.ledger.change(intent.number, job_id=found.job_id)

    def _by_tags(self) -> tuple[Attempt, Job] | None:
        """A first try can only meet jobs of an earlier run, at once visible; a later one looks with patience."""
        if is_local_namespace(self.submitter.identity.namespace):
            if self.moment.try_number > 1:
                self.log.warning(_CANNOT_TELL, self.submitter.identity.namespace)
            return None
        found = self._look(patiently=self.moment.try_number > 1)
        for older in found.older_live:
            self.log.warning("%s is left from an earlier run of the same id; stopping it first", older.job_id)
            hook, clock = self.submitter.hook, self.submitter.clock
            stop_and_wait(hook, older.job_id, StopReason.REPLACED, clock=clock, log=self.log)
        if not found.of_this_run:
            return None
        job = found.of_this_run[-1]
        self.log.warning("the state store knows no job, but DLC does: %s", job.job_id)
        self.ledger.adopt(job.tags.get(TAG_LEDGER, ""))
        return self.ledger.put(self.attempt_of(job)), job

    def _look(self, *, patiently: bool) -> FoundJobs:
        clock = self.submitter.clock
        give_up_at = clock.now() + timedelta(seconds=self.submitter.patience if patiently else 0)
        while not (found := self._answered(self.submitter.find)).of_this_run and clock.now() < give_up_at:
            clock.sleep(_LOOK_EVERY)
        return found

    def _answered(self, call: Callable[[], Answer]) -> Answer:
        return answered(call, clock=self.submitter.clock, log=self.log)

    def attempt_of(self, job: Job) -> Attempt:
        """Read from a job's tags and Envs what the ledger would know of it."""
        tags = job.tags
        return Attempt(
            number=_number(job),
            generation=tag_number(tags, TAG_GENERATION, self.moment.generation),
            request_hash=tags.get(TAG_REQUEST, ""),
            job_id=job.job_id,
            checkpoint_folder=_folder_number(job.envs.get(ENV_CHECKPOINT_DIR, "")),
            namespace=self.submitter.identity.namespace,
            ledger=tags.get(TAG_LEDGER, ""),
            ecs_spec=next(iter(ecs_specs_of_bidders(job.roles)), ""),
            on_demand=not bids_for_spot(tags),
            place=self.submitter.place,
        )


def _number(job: Job) -> int:
    return tag_number(job.tags, TAG_ATTEMPT, 0)


def _time(text: str, default: datetime) -> datetime:
    return datetime.fromisoformat(text) if text else default


def _folder_number(checkpoint_dir: str) -> int:
    last = checkpoint_dir.rstrip("/").rsplit("/", 1)[-1]
    return max(1, integer_of(last[1:]) or 1) if last.startswith("g") else 1
