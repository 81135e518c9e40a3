"""The newest job of a task instance: from the state store or, where that lost it, from DLC's tags."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from airflow_provider_pai_spot.attempts.identity import (
    ENV_CHECKPOINT_DIR,
    TAG_ATTEMPT,
    TAG_GENERATION,
    TAG_REQUEST,
    tag_number,
)
from airflow_provider_pai_spot.attempts.ledger import Attempt, AttemptLedger
from airflow_provider_pai_spot.attempts.moment import TryMoment
from airflow_provider_pai_spot.attempts.submission import Submitter
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.exceptions import PaiDlcNotFound

_LOOK_EVERY = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestFinder:
    """Finds the newest attempt and its job."""

    submitter: Submitter
    ledger: AttemptLedger
    moment: TryMoment
    log: Any

    def find(self) -> tuple[Attempt, Job] | None:
        """Return the newest attempt with its job; None if there is none that DLC still knows."""
        newest = self.ledger.newest
        if newest is not None and newest.job_id is None:
            newest = self._resolve_intent(newest)
        if newest is None or newest.job_id is None:
            return self._by_tags()
        try:
            return newest, Job(self.submitter.hook.get_job(newest.job_id))
        except PaiDlcNotFound:
            self.log.warning("%s is known to the state store but not to DLC any more", newest.job_id)
            return None

    def _resolve_intent(self, intent: Attempt) -> Attempt | None:
        """A submission whose outcome was never stored: the job may exist and be billed."""
        self.log.warning(
            "an earlier try was interrupted while it submitted attempt %d; looking for the job for up to %d s",
            intent.number,
            self.submitter.patience,
        )
        found = self.submitter.find_attempt(intent.number, patiently=True)
        if found is None:
            self.ledger.drop(intent.number)
            return self.ledger.newest
        return self.ledger.change(intent.number, job_id=found.job_id)

    def _by_tags(self) -> tuple[Attempt, Job] | None:
        """A first try can only meet jobs of a lost store, at once visible; a later one looks with patience."""
        jobs = self._look(patiently=self.moment.try_number > 1)
        if not jobs:
            return None
        self.log.warning("the state store knows no job, but DLC does: %s", jobs[-1].job_id)
        return self.ledger.put(self._attempt_of(jobs[-1])), jobs[-1]

    def _look(self, *, patiently: bool) -> list[Job]:
        clock = self.submitter.clock
        give_up_at = clock.now() + timedelta(seconds=self.submitter.patience if patiently else 0)
        while not (jobs := self.submitter.find()) and clock.now() < give_up_at:
            clock.sleep(_LOOK_EVERY)
        return jobs

    def _attempt_of(self, job: Job) -> Attempt:
        tags = job.tags
        return Attempt(
            number=tag_number(tags, TAG_ATTEMPT, 0),
            generation=tag_number(tags, TAG_GENERATION, self.moment.generation),
            request_hash=tags.get(TAG_REQUEST, ""),
            job_id=job.job_id,
            checkpoint_folder=_folder_number(job.envs.get(ENV_CHECKPOINT_DIR, "")),
            namespace=self.submitter.identity.namespace,
        )


def _folder_number(checkpoint_dir: str) -> int:
    last = checkpoint_dir.rstrip("/").rsplit("/", 1)[-1]
    return int(last[1:]) if last.startswith("g") and last[1:].isdigit() else 1
