"""
Find or create: one CreateJob for one attempt, although DLC has no idempotency token.

An answer that was lost may hide a job that runs and is billed. So nothing is sent twice blindly: after an
ambiguous answer the job is looked for, by its tags, for as long as DLC's list may lag (assumed, see
`[pai_spot] submit_lookup_patience`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from airflow_provider_pai_spot.attempts.drive import JobReader
from airflow_provider_pai_spot.attempts.identity import (
    TAG_ATTEMPT,
    TAG_LEDGER,
    TAG_TASK_INSTANCE,
    TaskIdentity,
    is_local_namespace,
    tag_number,
)
from airflow_provider_pai_spot.attempts.ledger import Attempt, AttemptLedger
from airflow_provider_pai_spot.attempts.places import NOWHERE, Place
from airflow_provider_pai_spot.attempts.submission_pace import SubmissionPace
from airflow_provider_pai_spot.attempts.tagged import whole_jobs
from airflow_provider_pai_spot.clock import Clock
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import StopReason
from airflow_provider_pai_spot.dlc.status import JobStatus, Phase, is_decided, phase_of
from airflow_provider_pai_spot.exceptions import (
    PaiDlcError,
    PaiDlcRefused,
    PaiDlcThrottled,
    PaiDlcUnavailable,
    SpotSubmissionRefused,
    SpotTotalTimeout,
)

_LOOK_EVERY = 5.0
_LOOK_BACK = timedelta(days=30)
"""How long an older run of the same id may have left a live job; the tag keeps the list short all the same."""
_BLIND_PATIENCE = timedelta(minutes=5)
"""How much longer to look when DLC does not answer: not having seen a job proves nothing."""
_CREATE_TRIES = 5
_THROTTLED_PATIENCE = timedelta(hours=1)
"""How long a throttled submission is tried, however often: in a burst of a thousand it is nobody's fault."""
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
        workspace_id: str | None = None,
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


@dataclass(slots=True)
class _Tries:
    """How often one CreateJob was sent in vain; throttled ones are counted apart."""

    failed: int = 0
    throttled: int = 0
    throttled_since: datetime | None = None

    def pause_after(self, error: PaiDlcError, now: datetime) -> float:
        """Count a failure; return the seconds until the next try."""
        if isinstance(error, PaiDlcThrottled):
            self.throttled += 1
            self.throttled_since = self.throttled_since or now
        else:
            self.failed += 1
        backoff = min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2 ** min(self.failed + self.throttled - 1, 16))
        asked = getattr(error, "retry_after", None)
        return float(min(_LONGEST_BACKOFF, asked or backoff * random.uniform(0.5, 1.0)))  # noqa: S311 - jitter

    def are_used_up(self, error: PaiDlcError, now: datetime) -> bool:
        """Whether another try is too many."""
        if isinstance(error, PaiDlcThrottled):
            return self.throttled_since is not None and now - self.throttled_since >= _THROTTLED_PATIENCE
        return self.failed >= _CREATE_TRIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitter:
    """
    Creates and finds the jobs of one task instance.

    :param ledger: its id tells our jobs from those of another run, or installation, that has the same names.
    :param since: what was created before belongs to an earlier run, for a ledger that knows no attempts yet.
    :param patience: seconds a created job may stay invisible in ListJobs.
    :param adopts: whether jobs of a lost ledger can be ours: a first try has submitted none yet, whatever clocks say.
    :param workspace_id: where the jobs are created, as the request has it; None for the hook's.
    :param before_create: called right before each CreateJob with the job's tags and workspace; raises if the task was
        killed meanwhile.
    :param pace: the turns of this machine's submissions, None if nobody has to wait for anybody.
    :param place: where jobs are sent to, which is stored with them.
    :param hook_at: opens a hook for the place of something that was sent there; raises PaiDlcError if it cannot.
    """

    hook: JobCalls
    identity: TaskIdentity
    ledger: AttemptLedger
    since: datetime
    patience: float
    clock: Clock
    log: Any
    adopts: bool = True
    workspace_id: str | None = None
    before_create: Callable[[Mapping[str, str], str | None], None] = lambda _tags, _workspace_id: None
    pace: SubmissionPace | None = None
    place: Place = NOWHERE
    hook_at: Callable[[Place, str], JobCalls] | None = None

    def where_sent(self, intent: Attempt) -> Submitter:
        """
        Return one like this that looks where an earlier try sent its request to, which need not be here.

        :raises PaiDlcError: that place cannot be reached.
        """
        place = intent.place
        if self.hook_at is None or not place.is_known or place == self.place:
            return self
        hook = self.hook_at(place, f"CreateJob of attempt {intent.number}, which nobody saw answered,")
        return replace(self, hook=hook, workspace_id=place.workspace_id or None, place=place)

    def find(self) -> FoundJobs:
        """Return this task instance's jobs, matched again on our side."""
        if self.ledger.is_blank and not self._may_judge:
            return FoundJobs(of_this_run=[], older_live=[])  # nothing could be told to be ours
        tagged = [job for job in whole_jobs(self.hook, map(Job, self.list_as(None))) if self._has_our_key(job)]
        ours = [job for job in tagged if self._is_ours(job)]
        strangers = [job for job in tagged if job not in ours and not is_decided(job.status)]
        return FoundJobs(of_this_run=sorted(ours, key=_age_key), older_live=strangers if self._may_judge else [])

    def list_as(self, payment_type: str | None) -> list[dict[str, Any]]:
        """List this task instance's jobs as DLC shows them, all or of one PaymentType."""
        return self.hook.list_jobs(
            tags={TAG_TASK_INSTANCE: self.identity.key},
            start_time=self.since - _LOOK_BACK,
            show_own=False,
            payment_type=payment_type,
            workspace_id=self.workspace_id,
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
                if found := self._of_attempt(attempt):
                    return self._keep_one(found)
            except (PaiDlcUnavailable, PaiDlcThrottled) as error:
                unanswered = error
            if self._is_enough(unanswered, until):
                return None
            self.clock.sleep(_LOOK_EVERY)

    def _of_attempt(self, attempt: int) -> list[Job]:
        return [job for job in self.find().of_this_run if job.tags.get(TAG_ATTEMPT) == str(attempt)]

    def _is_enough(self, unanswered: PaiDlcError | None, until: datetime) -> bool:
        """Whether the search may end: after its time, and with a look that was answered."""
        if unanswered is None:
            return self.clock.now() >= until
        self.log.warning("could not look for the job, looking again: %s", unanswered)
        if self.clock.now() >= until + _BLIND_PATIENCE:
            raise unanswered
        return False

    def create(
        self,
        body: Mapping[str, Any],
        attempt: int,
        *,
        renew_intent: Callable[[], None] = lambda: None,
        look_for_twins: bool = False,
        give_up_at: datetime | None = None,
    ) -> str:
        """
        Submit one attempt and return its job id.

        :param renew_intent: stores the intent anew before each request; a worker process that Airflow has given up, and
            replaced by another try, cannot store any more and must not send either.
        :param look_for_twins: whether the same attempt may have been submitted before; of two, one is stopped.
        :param give_up_at: nothing is sent again after this.
        :raises SpotSubmissionRefused: DLC will not take this request, now or later.
        :raises SpotTotalTimeout: the time was up while others of this machine submitted.
        :raises PaiDlcError: no answer after all, or no stock at submission; a later try may succeed.
            `ambiguous` of any of these is true if there may be a job all the same, by an answer that was lost earlier.
        """
        doubtful = look_for_twins
        tries = _Tries()
        while True:
            self._wait_for_turn(give_up_at)
            self.before_create(body["Settings"]["Tags"], self.workspace_id)
            renew_intent()
            try:
                job_id = self.hook.create_job(body)
                return self.only_one(job_id, attempt) if doubtful else job_id
            except (PaiDlcUnavailable, PaiDlcThrottled) as error:
                if getattr(error, "ambiguous", False):
                    doubtful = True
                    if job := self._look_after(error, attempt):
                        return job.job_id
                self._pause_or_raise(error, tries, give_up_at, doubtful)
            except PaiDlcError as error:
                if doubtful and (job := self._look_once_more(attempt)):
                    return job.job_id
                raise _refusal(error, doubtful) from None

    def only_one(self, job_id: str, attempt: int) -> str:
        """
        Return the id that counts of an attempt that somebody else may have submitted, too; other jobs are stopped.

        Looks until our own job is listed: an older one of the same attempt then is, too (assumed: DLC lists jobs in the
        order they were made), and of two submitters the one with the younger job makes way. What cannot be seen within
        `patience` is left to the sweep.
        """
        until = self.clock.now() + timedelta(seconds=self.patience)
        while True:
            try:
                found = self._of_attempt(attempt)
                if any(job.job_id == job_id for job in found) or self.clock.now() >= until:
                    return self._keep_one(self._with_own(found, job_id)).job_id
            except PaiDlcError as error:
                if self.clock.now() >= until:
                    self.log.warning("could not look for a second job of attempt %d: %s", attempt, error)
                    return job_id
            self.clock.sleep(_LOOK_EVERY)

    def _with_own(self, found: list[Job], job_id: str) -> list[Job]:
        """Another one that is listed must not hide ours, which is not."""
        known = any(job.job_id == job_id for job in found)
        return found if known else [*found, Job(self.hook.get_job(job_id))]

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

    def _look_once_more(self, attempt: int) -> Job | None:
        """Before a no is believed that came after a lost answer; whoever goes on looks with patience again."""
        try:
            return self.find_attempt(attempt, patiently=False)
        except PaiDlcError as error:
            self.log.warning("could not look for the job of the lost answer: %s", error)
            return None

    def _pause_or_raise(self, error: PaiDlcError, tries: _Tries, give_up_at: datetime | None, doubtful: bool) -> None:
        now = self.clock.now()
        pause = tries.pause_after(error, now)
        late = give_up_at is not None and now + timedelta(seconds=pause) >= give_up_at
        if late or tries.are_used_up(error, now):
            raise _doubtful(error) if doubtful else error
        if not isinstance(error, PaiDlcThrottled):
            self.log.warning("CreateJob took no effect (%s); trying again in %.0f s", error, pause)
        elif tries.throttled == 1:
            self.log.warning("CreateJob is throttled (%s); trying more slowly, for an hour at most", error)
        if isinstance(error, PaiDlcThrottled) and self._all_slow_down(error):
            return  # the next turn comes late enough
        self.clock.sleep(pause)

    def _all_slow_down(self, error: PaiDlcThrottled) -> bool:
        return self.pace is not None and self.pace.throttled(error.retry_after or _FIRST_BACKOFF)

    def _wait_for_turn(self, give_up_at: datetime | None) -> None:
        if self.pace is None:
            return
        self.pace.wait_for_turn()
        if give_up_at is not None and self.clock.now() >= give_up_at:
            raise SpotTotalTimeout(
                "the task's time (total_timeout or execution_timeout) was up before it was its turn to submit."
            )

    def _has_our_key(self, job: Job) -> bool:
        return job.tags.get(TAG_TASK_INSTANCE) == self.identity.key

    @property
    def _may_judge(self) -> bool:
        """
        Whether jobs of other ledgers are this task instance's at all, and not another installation's.

        That is only so for a ledger that knows nothing yet, under a name that no other installation has.
        """
        return self.ledger.is_blank and not is_local_namespace(self.identity.namespace)

    def _is_ours(self, job: Job) -> bool:
        """By the ledger's id; for a ledger that may have been lost, by the time the run began, too."""
        if job.tags.get(TAG_LEDGER) == self.ledger.ledger_id:
            return True
        began = self.since.replace(microsecond=0)  # DLC shows whole seconds
        return self._may_judge and self.adopts and (job.created_at is None or job.created_at >= began)

    def _keep_one(self, found: list[Job]) -> Job:
        """Two jobs of one attempt: one that lives or succeeded counts, the older of such two; the other is stopped."""
        oldest, *younger = sorted(found, key=lambda job: (_is_lost(job), _age_key(job)))
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


def _is_lost(job: Job) -> bool:
    return is_decided(job.status) and job.status not in (JobStatus.SUCCEEDED, JobStatus.SUCCEEDED_RESERVING)


def _age_key(job: Job) -> tuple[int, str, str]:
    number = tag_number(job.tags, TAG_ATTEMPT, -1)
    return (number, job.created_at.isoformat() if job.created_at else "", job.job_id)


def _doubtful(error: PaiDlcError) -> PaiDlcError:
    """A definite no after an answer that was lost: whoever goes on must know that there may be a job."""
    return PaiDlcUnavailable(
        str(error), code=error.code, status_code=error.status_code, request_id=error.request_id, ambiguous=True
    )


def _refusal(error: PaiDlcError, doubtful: bool) -> PaiDlcError | SpotSubmissionRefused:
    text = f"{error.code} {error}".lower()
    if not isinstance(error, PaiDlcRefused) or any(word in text for word in _OUT_OF_STOCK):
        return _doubtful(error) if doubtful else error
    return SpotSubmissionRefused(f"DLC refused the job, and would again: {error}", ambiguous=doubtful)
