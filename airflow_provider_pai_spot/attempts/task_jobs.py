"""
One try's dealings with the task instance's jobs: begin, conclude, submit the next.

`begin` looks at what earlier tries left behind and decides by the re-attach table; `conclude` acts on a job's end.
Both answer with what comes next, so that operator and sensor only have to wait or return.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from airflow_provider_pai_spot.attempts.answers import answered
from airflow_provider_pai_spot.attempts.bodies import attempt_body, checkpoint_folder
from airflow_provider_pai_spot.attempts.checkpoints import OFF, look_at_checkpoints
from airflow_provider_pai_spot.attempts.endings import describe, error_for
from airflow_provider_pai_spot.attempts.identity import TAG_OWNER, Owner
from airflow_provider_pai_spot.attempts.judging import judge_with_events, rules_in_force
from airflow_provider_pai_spot.attempts.ledger import HANDED_OVER, Attempt, AttemptLedger
from airflow_provider_pai_spot.attempts.limits import WaitLimits, breached, breached_before_stop
from airflow_provider_pai_spot.attempts.log_ends import LogCalls
from airflow_provider_pai_spot.attempts.moment import TryMoment
from airflow_provider_pai_spot.attempts.newest import NewestFinder
from airflow_provider_pai_spot.attempts.pod_logs import PodTail, no_line_was_missed, read_tails
from airflow_provider_pai_spot.attempts.reattach import Action, NewestJob, decide, newest_state
from airflow_provider_pai_spot.attempts.recovering import (
    MarketCalls,
    Recoverer,
    as_submitted,
    how_it_ended,
    lost_capacity,
    waited_in_vain,
)
from airflow_provider_pai_spot.attempts.report import Report
from airflow_provider_pai_spot.attempts.spot_terms import SpotTerms, TermsCheck, TermsReader
from airflow_provider_pai_spot.attempts.stopping import stop_and_wait
from airflow_provider_pai_spot.attempts.submission import JobCalls, Submitter
from airflow_provider_pai_spot.attempts.unseen import NOT_OBSERVED
from airflow_provider_pai_spot.attempts.wanted import Wanted
from airflow_provider_pai_spot.clock import Clock
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.job_request import InvalidJobRequest
from airflow_provider_pai_spot.dlc.outcome import JobOutcome, StopReason, Verdict
from airflow_provider_pai_spot.dlc.progress import shortened
from airflow_provider_pai_spot.dlc.status import phase_of
from airflow_provider_pai_spot.dlc.terms import JobTerms
from airflow_provider_pai_spot.exceptions import (
    PaiDlcError,
    SpotNoProgress,
    SpotSubmissionRefused,
    SpotTotalTimeout,
)
from airflow_provider_pai_spot.recovery.policy import GiveUp, Resubmit
from airflow_provider_pai_spot.recovery.progress import came_further, either, newer_checkpoint

_ENDS_WITH_ITS_TASK = (
    "it was submitted without wait_for_completion=False, and its tags, which cannot be changed, would have `pai-spot "
    "sweep` end it with this task, under a sensor that waits for it"
)
_LONGEST_PROGRESS = 200  # characters; the timeline of all attempts is stored as one value


class SpotCalls(JobCalls, LogCalls, MarketCalls, Protocol):
    """The calls of the hook that a task needs."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job is under way."""

    job_id: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A job's end is known and not yet acted upon."""

    outcome: JobOutcome


@dataclass(frozen=True, slots=True)
class Finished:
    """The work is done."""

    outcome: JobOutcome


class TaskJobs:
    """
    The jobs of one task instance, as one try of Airflow deals with them.

    :param after_create: called once a job exists; raises if the task was killed meanwhile (and stops the job).
    """

    def __init__(
        self,
        *,
        hook: SpotCalls,
        submitter: Submitter,
        ledger: AttemptLedger,
        wanted: Wanted,
        moment: TryMoment,
        report: Report,
        clock: Clock,
        log: Any,
        after_create: Callable[[str], None] = lambda _job_id: None,
    ) -> None:
        self.hook = hook
        self.submitter = submitter
        self.identity = submitter.identity
        self.ledger = ledger
        self.wanted = wanted
        self.moment = moment
        self.report = report
        self.clock = clock
        self.log = log
        self.after_create = after_create
        self.terms = TermsReader(hook=hook, list_as=submitter.list_as, patience=submitter.patience, clock=clock)
        self._interrupted = False
        self._unreachable = ""
        self.finder = NewestFinder(submitter=submitter, ledger=ledger, moment=moment, log=log)
        self.recoverer = Recoverer(
            hook=hook, ledger=ledger, moment=moment, request=wanted.request, recovery=wanted.recovery, log=log
        )

    # --- the beginning of a try ---

    def begin(self) -> Waiting | Ended:
        """Look at the newest job and take over, conclude, replace or submit."""
        last = self.ledger.newest
        self._interrupted = last is not None and last.job_id is None
        found = self.finder.find()
        if found is None:
            return self.submit()
        attempt, job = found
        if self._was_handed_over(attempt):
            return self._reattach(attempt, job)
        newest, outcome = self._judge(attempt, job)
        action = decide(newest, reattach=self.wanted.reattach)
        self.log.info("%s of an earlier try is %s: %s", job.job_id, job.status, action.value)
        return self._act(action, attempt, job, newest, outcome)

    def _act(
        self, action: Action, attempt: Attempt, job: Job, newest: NewestJob, outcome: JobOutcome
    ) -> Waiting | Ended:
        match action:
            case Action.REATTACH:
                return self._reattach(attempt, job)
            case Action.CONCLUDE:
                self.report.job(job.job_id)
                return Ended(outcome)
            case Action.FINISH_STOP:
                return self._finish_stop(attempt, job.job_id)
            case Action.REPLACE:
                return self._replace(attempt, job.job_id, newest)
            case Action.AWAIT_STOP_THEN_SUBMIT:
                outcome = self._await_stop(attempt, job.job_id)
            case Action.REPORT_THEN_SUBMIT:
                self.log.info("%s had %s", job.job_id, describe(outcome))
            case Action.SUBMIT:
                pass
        return self._submit_after(outcome)

    def _submit_after(self, outcome: JobOutcome) -> Waiting:
        self._consume(outcome)
        return self.submit(new_folder=outcome.verdict is Verdict.SUCCEEDED)

    def _replace(self, attempt: Attempt, job_id: str, newest: NewestJob) -> Waiting | Ended:
        """Stop the job and submit another, unless it succeeded before the stop reached it, and is what is asked for."""
        self._say_what_differs(attempt, newest)
        outcome = self.stop(attempt, job_id, StopReason.REPLACED)
        if outcome.verdict is Verdict.SUCCEEDED and newest.same_generation and newest.same_request:
            self.report.job(job_id)
            return Ended(outcome)
        return self._submit_after(outcome)

    def _judge(self, attempt: Attempt, job: Job) -> tuple[NewestJob, JobOutcome]:
        reason = _stop_reason(attempt)
        outcome = as_submitted(judge_with_events(job, self.hook, spot=True), attempt)
        if outcome.verdict is Verdict.STOPPED:
            reason = reason or breached_before_stop(job, self._limits_of(attempt))
        outcome = outcome.with_stop_reason(reason)
        newest = NewestJob(
            state=newest_state(phase_of(job.status), outcome.verdict, reason is not None),
            consumed=attempt.consumed,
            same_generation=attempt.generation == self.moment.generation,
            same_request=self._is_still_asked_for(attempt),
            outlives_task=not self._goes_with_its_task(job),
        )
        return newest, outcome

    def _is_still_asked_for(self, attempt: Attempt) -> bool:
        is_same = attempt.request_hash == self.wanted.request.request_hash
        return is_same and not attempt.place.is_other_region_than(self.submitter.place)

    def _goes_with_its_task(self, job: Job) -> bool:
        """A job handed over to a sensor must outlive its task; its tags, which cannot change, say that it does not."""
        return self.wanted.owner is Owner.RUN and job.tags.get(TAG_OWNER) == Owner.TASK

    def _was_handed_over(self, attempt: Attempt) -> bool:
        """In the two-task form a returned id stays the answer of every retry."""
        return (
            self.wanted.owner is Owner.RUN
            and attempt.verdict == HANDED_OVER
            and attempt.generation == self.moment.generation
        )

    def _reattach(self, attempt: Attempt, job: Job) -> Waiting:
        """Take the job over: from now on it is this try's, and this generation's, should the try die."""
        self.ledger.change(
            attempt.number,
            generation=self.moment.generation,
            try_number=self.moment.try_number,
            **self.wanted.limits.stored_deadlines(),
        )
        self.report.job(job.job_id)
        self.log.info("re-attached to %s (%s), %s", job.job_id, job.status, self.moment)
        if self.wanted.refusal is not None:
            self.log.warning("%s is watched on, though none could follow it: %s", job.job_id, self.wanted.refusal)
        elif not attempt.terms_read and not attempt.on_demand:
            self._verify_spot_terms(attempt, job.job_id, lambda: self.terms.of_found(self.wanted.request.body, job.raw))
        return Waiting(job.job_id)

    def _say_what_differs(self, attempt: Attempt, newest: NewestJob) -> None:
        if self.wanted.refusal is not None:
            self.log.warning("stopping %s: what the task now asks for cannot be used", attempt.job_id)
            return
        wanted = self.wanted.request.key_hashes
        if not newest.outlives_task:
            self.log.warning("stopping %s: %s", attempt.job_id, _ENDS_WITH_ITS_TASK)
            return
        if attempt.place.is_other_region_than(self.submitter.place):
            here = self.submitter.place.region_id
            self.log.warning("stopping %s in %s: the task now asks for region %s", attempt.job_id, attempt.place, here)
            return
        keys = sorted(key for key in {*wanted, *attempt.key_hashes} if wanted.get(key) != attempt.key_hashes.get(key))
        if self._is_still_asked_for(attempt):
            self.log.info("stopping %s: reattach=False", attempt.job_id)
        else:
            what = ", ".join(keys) if attempt.key_hashes else "the state store was lost, so which keys is not known"
            self.log.warning("stopping %s: the task now asks for another job (differs in: %s)", attempt.job_id, what)

    # --- submitting ---

    def submit(self, *, terms: JobTerms | None = None, reason: str = "", new_folder: bool = False) -> Waiting:
        """
        Submit the next attempt.

        :param terms: what a resubmission changes; None for the first job of a try.
        :param reason: why recovery submits it, for the timeline.
        :param new_folder: whether to start over in a new checkpoint folder (a person cleared a success).
        :raises SpotTotalTimeout: the task's time is up.
        :raises SpotSubmissionRefused: the arguments cannot work, DLC will not take the request, or took it without its
            spot terms.
        :raises InvalidVerdictRules: `[pai_spot] verdict_rules` cannot be used: how the job ends could not be told.
        """
        if self.wanted.refusal is not None:
            raise self.wanted.refusal
        rules_in_force()
        self._refuse_if_late()
        terms = self.recoverer.first_terms() if terms is None else terms
        attempt = replace(self._next_attempt(terms, new_folder), reason=reason)
        body = self._body(attempt, terms)
        try:
            job_id = self.submitter.create(
                body,
                attempt.number,
                renew_intent=lambda: self._store_intent(attempt),
                look_for_twins=self._interrupted,
                give_up_at=self.wanted.total_deadline,
            )
        except (PaiDlcError, SpotSubmissionRefused) as error:
            if not getattr(error, "ambiguous", False):
                self.ledger.drop(attempt.number)
            raise
        attempt = self.ledger.change(attempt.number, job_id=job_id)
        self.report.job(job_id)
        self.report.submitted(attempt, str(self.moment))
        self.after_create(job_id)
        self._verify_spot_terms(attempt, job_id, lambda: self.terms.of_new(body, job_id))
        return Waiting(job_id)

    def _store_intent(self, attempt: Attempt) -> None:
        """Before CreateJob: should this process die, the next try looks for the job first."""
        self.ledger.put(replace(attempt, submitting_at=self.clock.now().isoformat()))

    def _refuse_if_late(self) -> None:
        deadline = self.wanted.total_deadline
        if deadline is not None and self.clock.now() >= deadline:
            raise SpotTotalTimeout("the task's time is up (total_timeout or execution_timeout): nothing was submitted.")

    def _next_attempt(self, terms: JobTerms, new_folder: bool) -> Attempt:
        newest = self.ledger.newest
        request = self.wanted.request
        return Attempt(
            number=newest.number + 1 if newest else 0,
            generation=self.moment.generation,
            request_hash=request.request_hash,
            key_hashes=request.key_hashes,
            try_number=self.moment.try_number,
            bid="" if terms.on_demand else str(terms.bid or request.bid),
            ecs_spec=terms.ecs_spec or request.ecs_spec,
            on_demand=terms.on_demand,
            checkpoint_folder=(newest.checkpoint_folder if newest else 1) + new_folder,
            namespace=self.identity.namespace,
            ledger=self.ledger.ledger_id,
            place=self.submitter.place,
            **self.wanted.limits.stored_deadlines(),
        )

    def _body(self, attempt: Attempt, terms: JobTerms) -> dict[str, Any]:
        earlier = any(one.checkpoint_folder == attempt.checkpoint_folder for one in self.ledger.attempts)
        request, owner = self.wanted.request, self.wanted.owner
        try:
            return attempt_body(request, self.identity, attempt, owner=owner, resumes=earlier, terms=terms)
        except InvalidJobRequest as error:
            raise SpotSubmissionRefused(str(error)) from None

    def _verify_spot_terms(self, attempt: Attempt, job_id: str, read: Callable[[], TermsCheck]) -> None:
        """Once for each job, by the first try that gets to it: a job that does not bid costs the full price."""
        if self.wanted.verify_spot_terms == "off":
            return
        check = read()
        if check.terms is SpotTerms.UNREAD:
            self.log.warning("%s: its spot terms could not be read back: %s", job_id, check.detail)
            return
        if check.terms is SpotTerms.CONTRADICTED:
            self._refuse_terms(attempt, job_id, check.detail)
        elif check.terms is SpotTerms.ABSENT:
            self.log.warning("%s: DLC does not echo SpotSpec, so the bid cannot be confirmed", job_id)
        self.ledger.change(attempt.number, terms_read=True)

    def _refuse_terms(self, attempt: Attempt, job_id: str, detail: str) -> None:
        message = f"{job_id} does not run on the spot terms that were asked for: {detail}"
        if self.wanted.verify_spot_terms == "warn":
            self.log.warning("%s", message)
            return
        self.stop(attempt, job_id, StopReason.SPOT_TERMS)
        self.ledger.change(attempt.number, consumed=True, verdict=Verdict.STOPPED.value)
        raise SpotSubmissionRefused(
            f"{message}; it was stopped. To run it all the same set [pai_spot] verify_spot_terms = warn."
        )

    # --- the end of a job ---

    def awaits(self, job_id: str | None = None) -> bool:
        """
        Whether this try is the one that waits for its newest job, whose end nobody has acted upon yet.

        Airflow may begin a new try with what an earlier one was told: after a person cleared a task while a session of
        it was resumed on a worker. A store that was lost cannot tell, and a finished job must not be paid for again.

        :param job_id: the job that an event tells about; None for whichever is the newest.
        """
        newest = self.ledger.newest
        if newest is None:
            return True
        is_meant = newest.job_id is not None and job_id in (None, newest.job_id)
        return is_meant and not newest.consumed and newest.try_number == self.moment.try_number

    def conclude(self, outcome: JobOutcome) -> Waiting | Finished:
        """
        Act on a job's end: finish, submit the next attempt, or raise.

        :raises SpotJobError: of the type that the outcome calls for; Airflow's retries take over from there.
        """
        if outcome.rule == NOT_OBSERVED:
            return self._wait_on(outcome)
        outcome = as_submitted(outcome, self.ledger.find(outcome.job_id))
        self.report.went(outcome)
        tails, outcome = read_tails(self.hook, outcome, self.wanted.log_tail_lines)
        progress = self._progress(outcome, tails)  # looks at checkpoints, which takes its time
        with self.ledger.in_one_write():
            self.recoverer.count(outcome)
            self._consume(outcome, progress)
        self.report.ended(outcome, self.ledger.attempts)
        if outcome.verdict is Verdict.SUCCEEDED:
            self.report.succeeded(outcome, self._of_this_generation())
            return Finished(outcome)
        if lost_capacity(outcome) or waited_in_vain(outcome):
            return self._recover(outcome, tails)
        self.report.tails(outcome, tails)
        raise error_for(outcome)

    def _wait_on(self, outcome: JobOutcome) -> Waiting | Finished:
        """
        Wait again for a job that whoever waited could not see, if it can be seen from here and no limit has passed.

        Nobody else would stop it at its limit: who cannot see a job does not know since when it has been running.
        """
        job_id = outcome.job_id
        try:
            job = Job(self.hook.get_job(job_id))
        except PaiDlcError as error:
            return self._leave_unobserved(outcome, error)
        unseen = "; ".join(outcome.evidence)
        self.log.warning("%s was out of sight (%s); from here it is %s", job_id, unseen, job.status)
        attempt = self.ledger.find(job_id)
        if attempt is None or job.is_decided:
            return Waiting(job_id)
        reason = breached(job, self._limits_of(attempt), self.clock.now())
        return Waiting(job_id) if reason is None else self.conclude(self.stop(attempt, job_id, reason))

    def _leave_unobserved(self, outcome: JobOutcome, unseen: PaiDlcError) -> Waiting:
        """Leave a job whose state is not known to the next try, or stop it if there is none."""
        job_id = outcome.job_id
        if not self.moment.is_last_try:
            note = f" Nor can it be seen from here ({unseen}). It may be alive; the next try re-attaches to it."
            raise error_for(outcome, note=note)
        try:
            if not self.hook.stop_job(job_id):
                return Waiting(job_id)  # it is over already, so its end can be read
        except PaiDlcError as error:
            note = f" It could not be stopped either ({error}): stop it with `pai-spot stop {job_id}`."
        else:
            note = " No try is left to watch it, so it was stopped."
        raise error_for(outcome, note=note)

    def hand_over(self, job_id: str) -> str:
        """Return the id of a job that is left to run (two-task form); from now on it belongs to the DAG run."""
        attempt = self.ledger.find(job_id)
        if attempt is not None:
            self.ledger.change(attempt.number, consumed=True, verdict=HANDED_OVER)
        return job_id

    def _consume(self, outcome: JobOutcome, progress: Mapping[str, Any] | None = None) -> None:
        attempt = self.ledger.find(outcome.job_id)
        if attempt is None:
            self.log.warning("%s is not in the state store; its end is acted upon all the same", outcome.job_id)
            return
        self.ledger.change(
            attempt.number,
            consumed=True,
            verdict=outcome.verdict.value,
            cause=outcome.cause.value if outcome.cause else "",
            stop_reason=outcome.stop_reason.value if outcome.stop_reason else attempt.stop_reason,
            seconds_pending=outcome.seconds_pending,
            seconds_running=outcome.seconds_running,
            restarts=outcome.restarts,
            **(progress or {}),
        )

    def _progress(self, outcome: JobOutcome, tails: Sequence[PodTail]) -> dict[str, Any]:
        """Compare with the attempts before; what cannot be read, or a job that never ran, tells nothing."""
        attempt = self.ledger.find(outcome.job_id)
        if attempt is None or not outcome.has_run:
            return {}
        before = [
            one
            for one in self.ledger.attempts
            if one.number < attempt.number and one.checkpoint_folder == attempt.checkpoint_folder
        ]
        is_known = outcome.progress is not None or no_line_was_missed(outcome, tails)
        of_this_work = [one.progress for one in before if one.generation == attempt.generation]
        printed = came_further(outcome.progress, of_this_work) if is_known else None
        newest = self._newest_checkpoint(attempt, outcome)
        written = newer_checkpoint(newest, [one.checkpoint for one in before])
        progress = shortened(outcome.progress, _LONGEST_PROGRESS)
        return {"progress": progress, "checkpoint": newest, "progressed": either(printed, written)}

    def _newest_checkpoint(self, attempt: Attempt, outcome: JobOutcome) -> str | None:
        uri, wanted = self.wanted.request.checkpoint_uri, self.wanted
        if uri is None or not lost_capacity(outcome) or wanted.recovery.max_losses_without_progress is None:
            return None
        seen = look_at_checkpoints(checkpoint_folder(uri, self.identity, attempt), wanted.checkpoint_storage)
        self._unreachable = seen.problem
        if seen.problem and wanted.checkpoint_storage not in ("", OFF):
            self.log.warning("%s: its checkpoints cannot be looked at: %s", outcome.job_id, seen.problem)
        return seen.newest

    def _of_this_generation(self) -> list[Attempt]:
        return [one for one in self.ledger.attempts if one.generation == self.moment.generation]

    def _recover(self, outcome: JobOutcome, tails: Sequence[PodTail]) -> Waiting:
        step = self.recoverer.step(outcome)
        ended = how_it_ended(outcome)
        if lost_capacity(outcome):
            self.recoverer.warn_if_blind(outcome, self._unreachable)
        if isinstance(step, Resubmit):
            changes = f": {step.changes}" if step.changes else ""
            self.log.warning("%s; resubmitting: %s, %s%s", ended, step.reason, self.moment, changes)
            return self.submit(terms=step.terms, reason=str(step))
        if step.reason:
            self.log.warning("%s; not resubmitting within this try: %s", ended, step.reason)
        self.report.tails(outcome, tails)
        note = f" {step.reason}; {self.moment}." if step.reason else ""
        error = error_for(outcome, note=note)
        raise error if isinstance(step, GiveUp) else SpotNoProgress(str(error), outcome)

    def _finish_stop(self, attempt: Attempt, job_id: str) -> Waiting | Ended:
        """Tell what a stop of ours was for; `execution_timeout` is of one try, and the next one submits anew."""
        self.report.job(job_id)
        outcome = self._await_stop(attempt, job_id)
        out_of_time = outcome.stop_reason is StopReason.EXECUTION_TIMEOUT and not outcome.ended_by_itself
        if not out_of_time or attempt.try_number == self.moment.try_number:
            return Ended(outcome)
        self.log.info("%s: execution_timeout was that of try %d, not of this one", job_id, attempt.try_number)
        self._consume(outcome)
        return self.submit()

    def _await_stop(self, attempt: Attempt, job_id: str) -> JobOutcome:
        """Wait until the job is over; a triggerer that stopped it at a limit of ours could not store why."""
        outcome = stop_and_wait(self.hook, job_id, _stop_reason(attempt), clock=self.clock, log=self.log)
        if outcome.verdict is not Verdict.STOPPED or outcome.stop_reason is not None:
            return outcome
        job = Job(answered(lambda: self.hook.get_job(job_id), clock=self.clock, log=self.log))
        return outcome.with_stop_reason(breached_before_stop(job, self._limits_of(attempt)))

    def _limits_of(self, attempt: Attempt) -> WaitLimits:
        """Return the limits that a job was watched with: the deadlines are those of the try that watched it."""
        return self.wanted.limits.with_deadlines(
            total_deadline=attempt.total_deadline, execution_deadline=attempt.execution_deadline
        )

    def stop(self, attempt: Attempt, job_id: str, reason: StopReason) -> JobOutcome:
        """Store why before StopJob is sent, so that whoever finds the job stopped knows that it was us."""
        consumed = attempt.consumed or reason is StopReason.REPLACED  # a try that dies here must not raise its end
        self.ledger.change(attempt.number, stop_reason=reason.value, consumed=consumed)
        return stop_and_wait(self.hook, job_id, reason, clock=self.clock, log=self.log)

    def stop_with_try(self, attempt: Attempt, job_id: str, reason: StopReason) -> JobOutcome:
        """Stop the job and act upon that end, whose try ends with it; a success is left for the next one to find."""
        outcome = as_submitted(self.stop(attempt, job_id, reason), attempt)
        if outcome.verdict is not Verdict.SUCCEEDED:
            with self.ledger.in_one_write():
                self.recoverer.count(outcome)
                self._consume(outcome)
        return outcome


def _stop_reason(attempt: Attempt) -> StopReason | None:
    return StopReason(attempt.stop_reason) if attempt.stop_reason else None


__all__ = ["Ended", "Finished", "TaskJobs", "Waiting", "Wanted"]
