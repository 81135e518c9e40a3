"""One session of SpotJobSensor on a worker: watch, conclude, and replace a job that was lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk.exceptions import AirflowSensorTimeout, AirflowTaskTimeout

from airflow_provider_pai_spot import settings as provider_settings
from airflow_provider_pai_spot.attempts.drive import carry_out
from airflow_provider_pai_spot.attempts.endings import error_for
from airflow_provider_pai_spot.attempts.identity import Owner
from airflow_provider_pai_spot.attempts.judging import judge_with_events, rules_for_live_job, rules_in_force
from airflow_provider_pai_spot.attempts.kill import KillSwitch
from airflow_provider_pai_spot.attempts.ledger import MemoryStore, StateStore
from airflow_provider_pai_spot.attempts.log_notes import StoreNotes
from airflow_provider_pai_spot.attempts.log_setup import notes_of, stream_on_worker, with_rest_of_log
from airflow_provider_pai_spot.attempts.log_stream import LogStream
from airflow_provider_pai_spot.attempts.pod_logs import read_tails
from airflow_provider_pai_spot.attempts.queue_word import QueueWord
from airflow_provider_pai_spot.attempts.report import XCOM_OUTCOME
from airflow_provider_pai_spot.attempts.session import (
    after,
    earliest,
    identity_from,
    moment_from,
    open_jobs,
    report_for,
)
from airflow_provider_pai_spot.attempts.unseen import NOT_OBSERVED
from airflow_provider_pai_spot.clock import SYSTEM_CLOCK, Clock
from airflow_provider_pai_spot.dlc.duration import duration
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import JobOutcome, StopReason, Verdict
from airflow_provider_pai_spot.dlc.status import JobStatus, is_decided
from airflow_provider_pai_spot.exceptions import (
    PaiDlcError,
    PaiDlcNotFound,
    PaiDlcThrottled,
    PaiDlcUnavailable,
    SpotCapacityRevoked,
    SpotWatchEnded,
)
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.links.pai_console import JOB_CONSOLE_KEY, job_console_url
from airflow_provider_pai_spot.sensors.job_id import required_job_id
from airflow_provider_pai_spot.sensors.looks import Looks
from airflow_provider_pai_spot.sensors.successor import overwrite_job_id, rendered_submit_task, submit_successor
from airflow_provider_pai_spot.sensors.watch import WATCH_KEY, is_left_to_earlier_try, keep, open_watch
from airflow_provider_pai_spot.triggers.spot_job import SpotJobTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

_BACKSTOP = timedelta(minutes=10)
_MAY_PASS = (PaiDlcUnavailable, PaiDlcThrottled, PaiDlcNotFound)
"""A job submitted a moment ago may not be visible everywhere at once."""


class SensorFlow:
    """
    What a sensor does on a worker between being started and returning, raising or deferring.

    :param sensor: with its arguments rendered.
    :param job_id: the job that a trigger told about; the sensor's own `job_id` if None, or if an earlier try was told.
    :param hook: replaced in tests, as is `clock`.
    """

    def __init__(
        self,
        sensor: SpotJobSensor,
        context: Context,
        *,
        job_id: str | None = None,
        hook: PaiDlcHook | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.sensor = sensor
        self.context = context
        self.log = sensor.log
        self.clock = clock
        self.moment = moment_from(context, clock)
        self.store: StateStore = context.get("task_state_store") or MemoryStore()
        self._was_left_to_earlier_try = is_left_to_earlier_try(self.store, self.moment.try_number, clock.now())
        told_of = None if self._was_left_to_earlier_try else job_id
        self.pointed_at = told_of or required_job_id(sensor.job_id, sensor.task_id)
        self.hook = hook or PaiDlcHook(
            sensor.pai_dlc_conn_id, region_id=sensor.region_id, workspace_id=sensor.workspace_id
        )
        self.report = report_for(
            context, hook=self.hook, console_url=job_console_url, console_key=JOB_CONSOLE_KEY, log=self.log
        )
        self.kill = KillSwitch(
            hook=self.hook,
            identity=identity_from(context, self.hook),
            cancel_on_kill=sensor.cancel_on_kill,
            log=self.log,
        )
        self.watch = open_watch(self.store, self.pointed_at, self.moment.generation, clock.now())
        self._check_rules(is_told_of=job_id is not None)
        self._tolerance = provider_settings.poll_error_tolerance()
        self._unusual_wait = provider_settings.unusual_wait()
        self._logs = self._log_stream()
        self._status = ""
        self._farewell: str | None = None

    def _check_rules(self, *, is_told_of: bool) -> None:
        """A wrong [pai_spot] verdict_rules is found when the first try begins, and ends no watching after that."""
        if self.moment.try_number == 1 and not is_told_of and self.store.get(WATCH_KEY) is None:
            rules_in_force()
        else:
            rules_for_live_job(self.log)

    def begin(self) -> None:
        """Submit the successor of a job that an earlier try saw lost, and make the watched job visible."""
        if self.watch.lost:
            self._refuse_if_late()
            self._submit_successor()
        self.watch = replace(self.watch, try_number=self.moment.try_number)
        keep(self.store, self.watch)
        self._tell_downstream()
        self.report.job(self.watch.job_id)
        self.kill.check(self.watch.job_id)

    def watch_deferred(self) -> str:
        """Conclude if the job is over, otherwise leave the watching to the triggerer, which bears an outage itself."""
        try:
            job = self._read()
        except _MAY_PASS as error:
            self.log.warning("%s could not be read before deferring: %s", self.watch.job_id, error)
        else:
            if is_decided(job.status):
                return self._conclude(self._with_rest_of_log(judge_with_events(job, self.hook)))
        return self._defer()

    def look(self) -> str | None:
        """Look once: the job's id if it succeeded, None if it is not over, or DLC does not tell for the time being."""
        self.kill.check(self.watch.job_id)
        looks = self._looks()
        try:
            job = self._read()
        except _MAY_PASS as error:
            if (given_up := looks.missed(error)) is not None:
                return self._conclude(given_up)
        else:
            looks.answered(job.status)
            if is_decided(job.status):
                return self._conclude(self._with_rest_of_log(judge_with_events(job, self.hook)))
            self._say_why_it_waits(job, looks)
            if self._logs is not None:
                carry_out(self._logs.look(job), self.hook)
        if self.clock.now() >= self._deadline:
            self._time_out(self._status)
        return None

    def resume(self, event: Mapping[str, Any]) -> str:
        """
        Go on with the trigger's event; one that cannot be read is as good as none, and so is that of an earlier try.

        Airflow may begin a new try with it, where a person cleared the sensor while it was resumed on a worker.
        """
        if self._was_left_to_earlier_try:
            self.log.warning("the event is that of an earlier try, not of this one (%s); beginning anew", self.moment)
            self.begin()
            return self.watch_deferred()
        try:
            outcome = JobOutcome.from_dict(event)
        except (ValueError, TypeError, AttributeError) as error:
            self.log.warning("the trigger's event cannot be read, looking at the job instead: %s", error)
            return self.watch_deferred()
        self._status = outcome.status
        return self._conclude(outcome)

    def let_go(self) -> str:
        """Stop the job if it goes with the sensor (`cancel_on_kill`), once, and say what became of it. DLC may fail."""
        if self._farewell is None:
            self._farewell = self._stop_or_leave()
        return self._farewell

    def _stop_or_leave(self) -> str:
        job_id = self.watch.job_id
        if is_decided(self._status):
            return "it was stopped" if self._status == JobStatus.STOPPED else f"it is {self._status}"
        if not self.sensor.cancel_on_kill:
            return "it is left alone (cancel_on_kill=False)"
        try:
            stopped = self.hook.stop_job(job_id)
        except PaiDlcError as error:
            return f"it could not be stopped and may run on; `pai-spot stop {job_id}` stops it ({error})"
        return "it was stopped" if stopped else "it was over by then"

    def _read(self) -> Job:
        job = Job(self.hook.get_job(self.watch.job_id))
        if not job.status:
            raise PaiDlcUnavailable("GetJob's answer shows no Status")
        self._status = job.status
        return job

    def _say_why_it_waits(self, job: Job, looks: Looks) -> None:
        word = QueueWord(unusual_wait=self._unusual_wait, now=self.clock.now, log=self.log, spoken=looks.spoken)
        carry_out(word.look(job), self.hook)
        looks.spoke(word.spoken)

    def _log_stream(self) -> LogStream | None:
        sensor = self.sensor
        if sensor.log_poll_interval is None:
            return None
        return stream_on_worker(
            sensor.log_poll_interval.total_seconds(),
            try_number=self.moment.try_number,
            clock=self.clock,
            log=self.log,
            notes=notes_of(self.context["ti"]) if sensor.deferrable else StoreNotes(self.store),
        )

    def _with_rest_of_log(self, outcome: JobOutcome) -> JobOutcome:
        return with_rest_of_log(outcome, self._logs, self.hook, self.clock)

    def _looks(self) -> Looks:
        return Looks(
            self.store,
            job_id=self.watch.job_id,
            try_number=self.moment.try_number,
            tolerance=self._tolerance,
            now=self.clock.now,
            log=self.log,
        )

    @property
    def _deadline(self) -> datetime:
        return self.watch.start + timedelta(seconds=self.sensor.timeout)

    def _defer(self) -> NoReturn:
        sensor = self.sensor
        execution = after(self.moment.started_at, sensor.execution_timeout)
        sensor.defer(
            trigger=SpotJobTrigger(
                job_id=self.watch.job_id,
                pai_dlc_conn_id=sensor.pai_dlc_conn_id,
                region_id=sensor.region_id,
                workspace_id=sensor.workspace_id,
                poll_interval=sensor.poke_interval,
                total_deadline=self._deadline.isoformat(),
                execution_deadline=None if execution is None else execution.isoformat(),
                stop_at_limit=sensor.cancel_on_kill,
                own_job=False,
                cancel_on_kill=sensor.cancel_on_kill,
                log_poll_interval=None
                if sensor.log_poll_interval is None
                else sensor.log_poll_interval.total_seconds(),
            ),
            method_name="execute_complete",
            timeout=max(self._deadline - self.clock.now(), timedelta(0)) + _BACKSTOP,
        )

    def _conclude(self, outcome: JobOutcome) -> str:
        """Return the job id of a success, or raise what Airflow should see."""
        if outcome.verdict is not Verdict.SUCCEEDED:
            self._end_at_limit(outcome)
        if outcome.rule == NOT_OBSERVED:
            raise error_for(outcome, note=self._leave_unobserved())
        self.report.went(outcome)
        tails, outcome = read_tails(self.hook, outcome, provider_settings.log_tail_lines())
        self.report.push(XCOM_OUTCOME, outcome.to_dict())
        if outcome.verdict is Verdict.SUCCEEDED:
            self.log.info("succeeded: %s, %s running", outcome.job_id, duration(outcome.seconds_running))
            return outcome.job_id
        if outcome.verdict is Verdict.REVOKED and self.sensor.on_revoked == "resubmit":
            self._mark_lost(outcome)
        self.report.tails(outcome, tails)
        raise SpotWatchEnded(str(error_for(outcome, note=self._perhaps_ours(outcome))), outcome)

    def _leave_unobserved(self) -> str:
        """What becomes of a job whose state is not known: the next try's, or that of a sensor that ends."""
        if not self.moment.is_last_try:
            return " The job may be alive; the next try goes on watching it."
        return f" No try is left to watch it; {self.let_go()}."

    def _end_at_limit(self, outcome: JobOutcome) -> None:
        if outcome.stop_reason is StopReason.TOTAL_TIMEOUT:
            self._time_out(outcome.status)
        if outcome.stop_reason is StopReason.EXECUTION_TIMEOUT:
            raise error_for(outcome, note=f"; {self.let_go()}.")

    def _perhaps_ours(self, outcome: JobOutcome) -> str:
        """A worker at its execution_timeout cannot note down that it stops the job."""
        sensor = self.sensor
        ours = sensor.cancel_on_kill and sensor.execution_timeout and self.moment.try_number > 1
        if outcome.verdict is not Verdict.STOPPED or not ours:
            return ""
        return " Perhaps by this sensor's execution_timeout in an earlier try: cancel_on_kill=True."

    def _mark_lost(self, outcome: JobOutcome) -> NoReturn:
        """Record the loss and raise: Airflow shows the sensor up for retry, and the next try acts."""
        lost = self.watch.after_loss()
        keep(self.store, lost)
        last = self.moment.is_last_try
        then = "no tries are left" if last else "marked for retry: the next try submits its successor"
        self.log.warning(
            "revoked after %s (%s); %s, loss %d, %s",
            duration(outcome.seconds_running),
            "; ".join(outcome.evidence[:3]),
            then,
            lost.losses,
            self.moment,
        )
        raise SpotCapacityRevoked(f"{outcome.job_id} lost its capacity; {then}.", outcome)

    def _refuse_if_late(self) -> None:
        """A successor after the sensor's time would be paid for and watched by nobody."""
        if self.clock.now() >= self._deadline:
            raise AirflowSensorTimeout(
                f"{self.watch.job_id} lost its capacity, and the sensor's timeout of {duration(self.sensor.timeout)} "
                "has passed; no successor was submitted."
            )

    def _submit_successor(self) -> None:
        task_id = str(self.sensor.submitted_by)
        identity = identity_from(self.context, self.hook, task_id=task_id)
        submit_task = rendered_submit_task(self.context, task_id)
        wanted = submit_task.wanted(identity, self.hook, self.moment).owned_by(Owner.RUN)
        # The job belongs to the DAG run until it is watched: `begin` looks again whether the sensor was killed.
        kill = KillSwitch(hook=self.hook, identity=identity, cancel_on_kill=False, log=self.log)
        jobs = open_jobs(
            self.context,
            hook=self.hook,
            identity=identity,
            wanted=replace(wanted, total_deadline=earliest(wanted.total_deadline, self._deadline)),
            kill=kill,
            console_url=job_console_url,
            console_key=JOB_CONSOLE_KEY,
            log=self.log,
            clock=self.clock,
        )
        try:
            successor = submit_successor(jobs, self.watch.job_id, self.watch.losses)
        except AirflowTaskTimeout:
            self.watch = self.watch.over(kill.job_id or self.watch.job_id)  # the job to let go of
            raise
        self.watch = self.watch.over(successor)
        keep(self.store, self.watch)

    def _tell_downstream(self) -> None:
        """At each start: an earlier one may have ended between storing a successor and telling of it."""
        submit_task_id, job_id = self.sensor.submitted_by, self.watch.job_id
        if submit_task_id and job_id != self.pointed_at:
            overwrite_job_id(self.context, submit_task_id, job_id, self.report)

    def _time_out(self, status: str) -> NoReturn:
        what_now = self.let_go()
        raise AirflowSensorTimeout(
            f"{self.watch.job_id} is {status or 'unseen'} and the sensor's timeout of "
            f"{duration(self.sensor.timeout)} has passed; {what_now}."
        )
