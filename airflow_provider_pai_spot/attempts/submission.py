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

from airflow_provider_pai_spot.attempts.drive import JobReader
from airflow_provider_pai_spot.attempts.identity import TAG_ATTEMPT, TAG_TASK_INSTANCE, TaskIdentity, tag_number
from airflow_provider_pai_spot.attempts.tagged import whole_jobs
from airflow_provider_pai_spot.clock import Clock
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import StopReason
from airflow_provider_pai_spot.dlc.status import Phase, is_decided, phase_of
from airflow_provider_pai_spot.exceptions import (
    PaiDlcError,
    PaiDlcRefused,
    PaiDlcThrottled,
    PaiDlcUnavailable,
    SpotSubmissionRefused,
)

_LOOK_EVERY = 5.0
_LOOK_BACK = timedelta(days=30)
"""How long an older run of the same id may have left a live job; the tag keeps the list short all the same."""
_BLIND_PATIENCE = timedelta(minutes=5)
"""How much longer to look when DLC does not answer: not having seen a job proves nothing."""
_CREATE_TRIES = 5
_FIRST_BACKOFF = 2.0
_LONGEST_BACKOFF = 60.0
_OUT_OF_STOCK = ("resourceallocatefailed", "resource type is not enough", "nostock", "outofstock")
"""Words of CreateJob's refusals that a later try may not meet (facts: the submit-time stock check)."""


class JobCalls(JobReader, Protocol):
    """The calls of the hook that submission needs."""

    def create_job(self, body: Mapping[str, Any]) -> str:
        """Submit and return the job id."""
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
class FoundJobs:
    """
    What DLC's tags tell of a task instance.

    :param of_this_run: its jobs, newest attempt last.
    :param older_live: live jobs of an earlier run that had the same id, was deleted and created again.
    """

    of_this_run: list[Job]
    older_live: list[Job]


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

    def find(self) -> FoundJobs:
        """Return this task instance's jobs, matched again on our side."""
        tagged = [job for job in whole_jobs(self.hook, map(Job, self.list_as(None))) if self._is_ours(job)]
        return FoundJobs(
            of_this_run=sorted((job for job in tagged if self._is_of_this_run(job)), key=_age_key),
            older_live=[job for job in tagged if not self._is_of_this_run(job) and not is_decided(job.status)],
        )

    def list_as(self, payment_type: str | None) -> list[dict[str, Any]]:
        """List this task instance's jobs as DLC shows them, all or of one PaymentType."""
        return self.hook.list_jobs(
            tags={TAG_TASK_INSTANCE: self.identity.key},
            start_time=self.since - _LOOK_BACK,
            show_own=False,
            payment_type=payment_type,
        )

    def find_attempt(self, attempt: int, *, patiently: bool) -> Job | None:
        """
        Return the job of one attempt, looking for up to `patience` seconds if asked to.

        :raises PaiDlcError: DLC could not be asked, so whether there is a job is not known.
        """
        until = self.clock.now() + timedelta(seconds=self.patience if patiently else 0)
        while True:
            unanswered = None
            try:
                found = [job for job in self.find().of_this_run if job.tags.get(TAG_ATTEMPT) == str(attempt)]
                if found:
                    return self._keep_oldest(found)
            except (PaiDlcUnavailable, PaiDlcThrottled) as error:
                unanswered = error
            if self._is_enough(unanswered, until):
                return None
            self.clock.sleep(_LOOK_EVERY)

    def _is_enough(self, unanswered: PaiDlcError | None, until: datetime) -> bool:
        """Whether the search may end: after its time, and with a look that was answered."""
        if unanswered is None:
            return self.clock.now() >= until
        self.log.warning("could not look for the job, looking again: %s", unanswered)
        if self.clock.now() >= until + _BLIND_PATIENCE:
            raise unanswered
        return False

    def create(self, body: Mapping[str, Any], attempt: int, *, look_for_twins: bool = False) -> str:
        """
        Submit one attempt and return its job id.

        :param look_for_twins: whether the same attempt may have been submitted before; of two, the younger is stopped.
        :raises SpotSubmissionRefused: DLC will not take this request, now or later.
        :raises PaiDlcError: no answer after all, or no stock at submission; a later try may succeed.
        """
        for tries_left in range(_CREATE_TRIES - 1, -1, -1):
            self.before_create()
            try:
                job_id = self.hook.create_job(body)
                return self._without_twins(job_id, attempt) if look_for_twins else job_id
            except PaiDlcUnavailable as error:
                if error.ambiguous:
                    look_for_twins = True
                    if job := self._look_after(error, attempt):
                        return job.job_id
                self._pause_or_raise(error, tries_left)
            except PaiDlcThrottled as error:
                self._pause_or_raise(error, tries_left)
            except PaiDlcRefused as error:
                raise _refusal(error) from None
        raise AssertionError("the last try returns or raises")

    def _without_twins(self, job_id: str, attempt: int) -> str:
        """Return the id that counts; whatever cannot be seen now is left to the sweep."""
        try:
            found = self.find_attempt(attempt, patiently=False)
        except PaiDlcError as error:
            self.log.warning("could not look for a second job of attempt %d: %s", attempt, error)
            return job_id
        return found.job_id if found else job_id

    def _look_after(self, error: PaiDlcError, attempt: int) -> Job | None:
        self.log.warning(
            "CreateJob's answer was lost (%s); looking for the job for up to %d s before it is sent again",
            error,
            self.patience,
        )
        try:
            return self.find_attempt(attempt, patiently=True)
        except PaiDlcError:
            raise error from None  # the ambiguous one: whoever goes on must know that there may be a job

    def _pause_or_raise(self, error: PaiDlcError, tries_left: int) -> None:
        if not tries_left:
            raise error
        retry_after = getattr(error, "retry_after", None)
        backoff = min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2 ** (_CREATE_TRIES - 1 - tries_left))
        pause = retry_after or backoff * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret
        self.log.warning("CreateJob took no effect (%s); trying again in %.0f s", error, pause)
        self.clock.sleep(pause)

    def _is_ours(self, job: Job) -> bool:
        return job.tags.get(TAG_TASK_INSTANCE) == self.identity.key

    def _is_of_this_run(self, job: Job) -> bool:
        """DLC shows whole seconds; a job without a time of creation is given the benefit of the doubt."""
        return job.created_at is None or job.created_at >= self.since.replace(microsecond=0)

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
    number = tag_number(job.tags, TAG_ATTEMPT, -1)
    return (number, job.created_at.isoformat() if job.created_at else "", job.job_id)


def _refusal(error: PaiDlcRefused) -> PaiDlcError | SpotSubmissionRefused:
    text = f"{error.code} {error}".lower()
    if any(word in text for word in _OUT_OF_STOCK):
        return error
    return SpotSubmissionRefused(f"DLC refused the job, and would again: {error}")
