"""One session of SubmitSpotJobOperator on a worker: from step to step until the work is done or deferred."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_pai_spot import settings as provider_settings
from airflow_provider_pai_spot.attempts.drive import drive
from airflow_provider_pai_spot.attempts.follow import follow
from airflow_provider_pai_spot.attempts.judging import judge_with_events, rules_for_live_job, rules_in_force
from airflow_provider_pai_spot.attempts.kill import KillSwitch
from airflow_provider_pai_spot.attempts.limits import WaitLimits
from airflow_provider_pai_spot.attempts.log_setup import notes_of, stream_on_worker, with_rest_of_log
from airflow_provider_pai_spot.attempts.log_stream import LogStream
from airflow_provider_pai_spot.attempts.queue_word import QueueWord
from airflow_provider_pai_spot.attempts.session import (
    calls_of,
    earliest,
    identity_from,
    moment_from,
    open_jobs,
)
from airflow_provider_pai_spot.attempts.task_jobs import Ended, Finished, Waiting
from airflow_provider_pai_spot.clock import SYSTEM_CLOCK
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import JobOutcome, StopReason
from airflow_provider_pai_spot.dlc.status import is_decided
from airflow_provider_pai_spot.exceptions import PaiDlcError, SpotSubmissionRefused
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.links.pai_console import JOB_CONSOLE_KEY, job_console_url
from airflow_provider_pai_spot.triggers.spot_job import SpotJobTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.exceptions import TaskDeferralError

    from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator

_BACKSTOP = timedelta(minutes=10)
"""How long after the last deadline Airflow's own deferral timeout waits for the trigger to have acted."""


class OperatorFlow:
    """
    What an operator does on a worker between being started and returning, raising or deferring.

    :param operator: with its arguments rendered.
    """

    def __init__(self, operator: SubmitSpotJobOperator, context: Context) -> None:
        self.operator = operator
        self.log = operator.log
        self.hook = PaiDlcHook(
            operator.pai_dlc_conn_id, region_id=operator.region_id, workspace_id=operator.workspace_id
        )
        self.moment = moment_from(context)
        self._instance = context["ti"]
        identity = identity_from(context, self.hook)
        self.calls = calls_of(context, self.hook)
        self.kill = KillSwitch(hook=self.calls, identity=identity, cancel_on_kill=operator.cancel_on_kill, log=self.log)
        self.jobs = open_jobs(
            context,
            hook=self.hook,
            identity=identity,
            wanted=operator.wanted(identity, self.hook, self.moment),
            kill=self.kill,
            console_url=job_console_url,
            console_key=JOB_CONSOLE_KEY,
            log=self.log,
            calls=self.calls,
        )
        newest = self.jobs.ledger.newest
        self.kill.job_id = newest.job_id if newest is not None else None
        self._check_rules()

    def _check_rules(self) -> None:
        """A wrong [pai_spot] verdict_rules is found before a first job, and ends the watching of none."""
        if self.moment.try_number == 1 and self.jobs.ledger.newest is None:
            rules_in_force()
        else:
            rules_for_live_job(self.log)

    def begin(self) -> str | None:
        """
        Take over what an earlier try left, or submit; then wait. Returns the id of the job that decided.

        :raises SpotSubmissionRefused: the arguments cannot work, and there is no job that could be taken over.
        """
        refusal = self.jobs.wanted.refusal
        if refusal is not None and self.moment.try_number == 1 and self.jobs.ledger.newest is None:
            raise refusal
        step = self.jobs.begin()
        return self._go_on(Ended(self._with_rest_of_log(step.outcome)) if isinstance(step, Ended) else step)

    def resume(self, event: Mapping[str, Any]) -> str | None:
        """Go on with the trigger's event; one that cannot be read is as good as a new try."""
        try:
            outcome = JobOutcome.from_dict(event)
        except (ValueError, TypeError, AttributeError) as error:
            self.log.warning("the trigger's event cannot be read, looking at the job instead: %s", error)
            return self.begin()
        if not self.jobs.awaits(outcome.job_id):
            self.log.warning("%s: its event is not this try's (%s); beginning anew", outcome.job_id, self.moment)
            return self.begin()
        return self._go_on(Ended(outcome))

    def end_after_deferral_timeout(self) -> str | None:
        """Act in the place of a trigger that did not: every deadline is long past."""
        if not self.jobs.awaits():
            self.log.warning("the deferral that timed out is not this try's (%s); beginning anew", self.moment)
            return self.begin()
        return self._go_on(self._end_newest(StopReason.TOTAL_TIMEOUT))

    def end_after_failed_trigger(self, error: TaskDeferralError) -> str | None:
        """
        Stop the job of a try whose trigger failed, unless another try will take it over, or it is over by itself.

        :raises TaskDeferralError: `error`; the try ends with it, unless the job's own end is known.
        """
        if not self.jobs.awaits():
            self.log.warning("the trigger that failed is not this try's (%s); beginning anew", self.moment)
            return self.begin()
        if not self.moment.is_last_try:
            raise error
        ended = self._end_newest(StopReason.KILLED)
        if not ended.outcome.ended_by_itself:
            raise error
        return self._go_on(Ended(self._with_rest_of_log(ended.outcome)))

    def stop_at_execution_timeout(self) -> None:
        """Airflow's `execution_timeout` struck on the worker: the job goes with the task, and the store says why."""
        attempt = self.jobs.ledger.find(self.kill.job_id) if self.kill.job_id else None
        if attempt is not None and attempt.job_id is not None and not attempt.consumed:
            self.log.warning("execution_timeout: stopping %s", attempt.job_id)
            self.jobs.stop_with_try(attempt, attempt.job_id, StopReason.EXECUTION_TIMEOUT)

    def _go_on(self, step: Waiting | Ended) -> str | None:
        while True:
            if isinstance(step, Ended):
                done = self.jobs.conclude(step.outcome)
                if isinstance(done, Finished):
                    return done.outcome.job_id
                step = done
            elif not self.operator.wait_for_completion:
                return self.jobs.hand_over(step.job_id)
            else:
                step = Ended(self._wait(step.job_id))

    def _wait(self, job_id: str) -> JobOutcome:
        """Wait here, or leave it to the triggerer unless the job is over already."""
        limits = self.jobs.wanted.limits
        self.kill.check(job_id)
        if not self.operator.deferrable:
            return self._wait_here(job_id, limits)
        job = self._look_once(job_id)
        if job is not None and is_decided(job.status):
            return self._with_rest_of_log(judge_with_events(job, self.calls, spot=True))
        return self._defer(job_id, limits)

    def _look_once(self, job_id: str) -> Job | None:
        """A deferral that ends at once is wasted, and can fail the try; but no answer is for the trigger to bear."""
        try:
            return Job(self.calls.get_job(job_id))
        except PaiDlcError as error:
            self.log.warning("%s could not be read before deferring: %s", job_id, error)
            return None

    def _wait_here(self, job_id: str, limits: WaitLimits) -> JobOutcome:
        logs = self._log_stream()
        word = QueueWord(unusual_wait=provider_settings.unusual_wait(), now=SYSTEM_CLOCK.now, log=self.log)
        following = follow(
            job_id,
            limits=limits,
            poll_interval=self.operator.poll_interval.total_seconds(),
            now=SYSTEM_CLOCK.now,
            log=self.log,
            spot=True,
            companions=(word,) if logs is None else (word, logs),
        )
        outcome = drive(following, self.calls, SYSTEM_CLOCK)
        return outcome if logs is None else outcome.with_progress(logs.progress)

    def _log_stream(self) -> LogStream | None:
        interval = self.operator.log_poll_interval
        if interval is None:
            return None
        return stream_on_worker(
            interval.total_seconds(),
            try_number=self.moment.try_number,
            clock=SYSTEM_CLOCK,
            log=self.log,
            notes=notes_of(self._instance) if self.operator.deferrable else None,
        )

    def _with_rest_of_log(self, outcome: JobOutcome) -> JobOutcome:
        return with_rest_of_log(outcome, self._log_stream(), self.calls, SYSTEM_CLOCK)

    def _defer(self, job_id: str, limits: WaitLimits) -> NoReturn:
        operator = self.operator
        deadline = earliest(limits.total_deadline, limits.execution_deadline)
        operator.defer(
            trigger=SpotJobTrigger(
                job_id=job_id,
                **self._site_of(job_id),
                poll_interval=operator.poll_interval.total_seconds(),
                pending_timeout=limits.pending_timeout,
                run_timeout=limits.run_timeout,
                total_deadline=_iso(limits.total_deadline),
                execution_deadline=_iso(limits.execution_deadline),
                cancel_on_kill=operator.cancel_on_kill,
                log_poll_interval=_seconds(operator.log_poll_interval),
            ),
            method_name="execute_complete",
            timeout=None if deadline is None else max(deadline - SYSTEM_CLOCK.now(), timedelta(0)) + _BACKSTOP,
        )

    def _site_of(self, job_id: str) -> dict[str, Any]:
        """Return a trigger's arguments for where the job is: here, unless an earlier try sent it elsewhere."""
        place, operator = self.calls.place_elsewhere(job_id), self.operator
        if place is None:
            workspace_id = None if operator.workspace_id is None else str(operator.workspace_id)
            conn_id, region_id = operator.pai_dlc_conn_id, operator.region_id
        else:
            conn_id, region_id, workspace_id = place.conn_id, place.region_id or None, place.workspace_id or None
        return {"pai_dlc_conn_id": conn_id, "region_id": region_id, "workspace_id": workspace_id}

    def _end_newest(self, reason: StopReason) -> Ended:
        newest = self.jobs.ledger.newest
        if newest is None or newest.job_id is None:
            raise SpotSubmissionRefused(f"{self.operator.task_id}: no job is known that could have been waited for.")
        return Ended(self.jobs.stop(newest, newest.job_id, reason))


def _seconds(interval: timedelta | None) -> float | None:
    return None if interval is None else interval.total_seconds()


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
