"""
Find or create: one CreateJob for one attempt, although DLC has no idempotency token.

An answer that was lost may hide a job that runs and is billed. So nothing is sent twice blindly: after an
ambiguous answer the job is looked for, by its tags, for as long as DLC's list may lag (assumed, see
`[pai_spot] submit_lookup_patience`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from airflow_provider_pai_spot.attempts.identity import TAG_ATTEMPT, TAG_TASK_INSTANCE, TaskIdentity
from airflow_provider_pai_spot.clock import Clock
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import StopReason
from airflow_provider_pai_spot.dlc.status import Phase, phase_of
from airflow_provider_pai_spot.exceptions import (
    PaiDlcError,
    PaiDlcRefused,
    PaiDlcThrottled,
    PaiDlcUnavailable,
    SpotSubmissionRefused,
)

_LOOK_EVERY = 5.0
_CLOCK_SKEW = timedelta(minutes=5)
_CREATE_TRIES = 5
_FIRST_BACKOFF = 2.0
_LONGEST_BACKOFF = 60.0
_OUT_OF_STOCK = ("resourceallocatefailed", "resource type is not enough", "nostock", "outofstock")
"""Words of CreateJob's refusals that a later try may not meet (facts: the submit-time stock check)."""


class JobCalls(Protocol):
    """The calls of the hook that submission needs."""

    def create_job(self, body: Mapping[str, Any]) -> str:
        """Submit and return the job id."""
        ...

    def get_job(self, job_id: str) -> dict[str, Any]:
        """Return GetJob's JSON."""
        ...

    def stop_job(self, job_id: str) -> bool:
        """Stop a job."""
        ...

    def list_jobs(
        self,
        *,
        tags: Mapping[str, str],
        start_time: datetime,
        show_own: bool | None,
        payment_type: str | None = None,
    ) -> list[dict[str, Any]]:
        """List jobs by tag."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitter:
    """
    Creates and finds the jobs of one task instance.

    :param since: only jobs created after this count; run ids repeat when a run is deleted and re-created.
    :param patience: seconds a created job may stay invisible in ListJobs.
    :param before_create: called right before each CreateJob; raises if the task was killed meanwhile.
    """

    hook: JobCalls
    identity: TaskIdentity
    since: datetime
    patience: float
    clock: Clock
    log: Any
    before_create: Callable[[], None] = lambda: None

    def find(self) -> list[Job]:
        """Return this task instance's jobs, newest attempt last; matched again on our side."""
        return sorted(filter(self._is_ours, map(self._with_tags, self.list_as(None))), key=_age_key)

    def list_as(self, payment_type: str | None) -> list[dict[str, Any]]:
        """List this task instance's jobs as DLC shows them, all or of one PaymentType."""
        return self.hook.list_jobs(
            tags={TAG_TASK_INSTANCE: self.identity.key},
            start_time=self.since - _CLOCK_SKEW,
            show_own=False,
            payment_type=payment_type,
        )

    def find_attempt(self, attempt: int, *, patiently: bool) -> Job | None:
        """Return the job of one attempt, looking for up to `patience` seconds if asked to."""
        give_up_at = self.clock.now() + timedelta(seconds=self.patience if patiently else 0)
        while True:
            found = [job for job in self._find_or_none() if job.tags.get(TAG_ATTEMPT) == str(attempt)]
            if found:
                return self._keep_oldest(found)
            if self.clock.now() >= give_up_at:
                return None
            self.clock.sleep(_LOOK_EVERY)

    def create(self, body: Mapping[str, Any], attempt: int) -> str:
        """
        Submit one attempt and return its job id.

        :raises SpotSubmissionRefused: DLC will not take this request, now or later.
        :raises PaiDlcError: no answer after all, or no stock at submission; a later try may succeed.
        """
        for tries_left in range(_CREATE_TRIES - 1, -1, -1):
            self.before_create()
            try:
                return self.hook.create_job(body)
            except PaiDlcUnavailable as error:
                if error.ambiguous and (job := self._look_after(error, attempt)):
                    return job.job_id
                self._pause_or_raise(error, tries_left)
            except PaiDlcThrottled as error:
                self._pause_or_raise(error, tries_left)
            except PaiDlcRefused as error:
                raise _refusal(error) from None
        raise AssertionError("the last try returns or raises")

    def _look_after(self, error: PaiDlcError, attempt: int) -> Job | None:
        self.log.warning(
            "CreateJob's answer was lost (%s); looking for the job for up to %d s before it is sent again",
            error,
            self.patience,
        )
        return self.find_attempt(attempt, patiently=True)

    def _pause_or_raise(self, error: PaiDlcError, tries_left: int) -> None:
        if not tries_left:
            raise error
        retry_after = getattr(error, "retry_after", None)
        backoff = min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2 ** (_CREATE_TRIES - 1 - tries_left))
        pause = retry_after or backoff * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret
        self.log.warning("CreateJob took no effect (%s); trying again in %.0f s", error, pause)
        self.clock.sleep(pause)

    def _find_or_none(self) -> list[Job]:
        try:
            return self.find()
        except (PaiDlcUnavailable, PaiDlcThrottled) as error:
            self.log.warning("could not look for the job, looking again: %s", error)
            return []

    def _with_tags(self, item: Mapping[str, Any]) -> Job:
        """List items may lack Settings; then the job itself is asked."""
        job = Job(item)
        return job if job.tags or not job.job_id else Job(self.hook.get_job(job.job_id))

    def _is_ours(self, job: Job) -> bool:
        return job.tags.get(TAG_TASK_INSTANCE) == self.identity.key and (
            job.created_at is None or job.created_at >= self.since.replace(microsecond=0)
        )

    def _keep_oldest(self, found: list[Job]) -> Job:
        """Two jobs of one attempt: the older one counts, a younger live one is stopped."""
        oldest, *younger = sorted(found, key=_age_key)
        for job in younger:
            if phase_of(job.status) in (Phase.PENDING, Phase.RUNNING):
                self.log.warning(
                    "%s is a second job of the same attempt as %s; %s",
                    job.job_id,
                    oldest.job_id,
                    StopReason.DUPLICATE.value,
                )
                self.hook.stop_job(job.job_id)
        return oldest


def _age_key(job: Job) -> tuple[int, str, str]:
    attempt = job.tags.get(TAG_ATTEMPT, "")
    number = int(attempt) if attempt.isdigit() else -1
    return (number, job.created_at.isoformat() if job.created_at else "", job.job_id)


def _refusal(error: PaiDlcRefused) -> PaiDlcError | SpotSubmissionRefused:
    text = f"{error.code} {error}".lower()
    if any(word in text for word in _OUT_OF_STOCK):
        return error
    return SpotSubmissionRefused(f"DLC refused the job, and would again: {error}")
