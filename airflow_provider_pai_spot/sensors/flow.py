"""One session of SpotJobSensor on a worker: watch, conclude, and replace a job that was lost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk.exceptions import AirflowSensorTimeout

from airflow_provider_pai_spot import settings as provider_settings
from airflow_provider_pai_spot.attempts.endings import error_for
from airflow_provider_pai_spot.attempts.follow import NOT_OBSERVED
from airflow_provider_pai_spot.attempts.identity import Owner
from airflow_provider_pai_spot.attempts.kill import KillSwitch
from airflow_provider_pai_spot.attempts.ledger import MemoryStore, StateStore
from airflow_provider_pai_spot.attempts.pod_logs import read_tails
from airflow_provider_pai_spot.attempts.report import XCOM_OUTCOME
from airflow_provider_pai_spot.attempts.session import identity_from, moment_from, open_jobs, report_for
from airflow_provider_pai_spot.clock import SYSTEM_CLOCK
from airflow_provider_pai_spot.dlc.duration import duration
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import JobOutcome, StopReason, Verdict
from airflow_provider_pai_spot.dlc.status import is_decided
from airflow_provider_pai_spot.dlc.verdict import classify
from airflow_provider_pai_spot.exceptions import SpotCapacityRevoked, SpotWatchEnded
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.links.pai_console import JOB_CONSOLE_KEY, job_console_url
from airflow_provider_pai_spot.sensors.successor import overwrite_job_id, rendered_submit_task, submit_successor
from airflow_provider_pai_spot.sensors.watch import keep, open_watch
from airflow_provider_pai_spot.triggers.spot_job import SpotJobTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

_BACKSTOP = timedelta(minutes=10)
_STATUS_KEY = "pai_spot_status"


class SensorFlow:
    """
    What a sensor does on a worker between being started and returning, raising or deferring.

    :param sensor: with its arguments rendered.
    """

    def __init__(self, sensor: SpotJobSensor, context: Context) -> None:
        self.sensor = sensor
        self.context = context
        self.log = sensor.log
        self.moment = moment_from(context)
        self.store: StateStore = context.get("task_state_store") or MemoryStore()
        self.hook = PaiDlcHook(sensor.pai_dlc_conn_id, region_id=sensor.region_id, workspace_id=sensor.workspace_id)
        self.report = report_for(
            context, hook=self.hook, console_url=job_console_url, console_key=JOB_CONSOLE_KEY, log=self.log
        )
        self.kill = KillSwitch(
            hook=self.hook,
            identity=identity_from(context, self.hook),
            cancel_on_kill=sensor.cancel_on_kill,
            log=self.log,
        )
        self.watch = open_watch(self.store, sensor.job_id, self.moment.generation, SYSTEM_CLOCK.now())

    def begin(self) -> None:
        """Submit the successor of a job that an earlier try saw lost, and make the watched job visible."""
        if self.watch.lost:
            self._submit_successor()
        keep(self.store, self.watch)
        self.report.job(self.watch.job_id)
        self.kill.check(self.watch.job_id)

    def watch_deferred(self) -> str:
        """Conclude if the job is over, otherwise leave the watching to the triggerer."""
        job = Job(self.hook.get_job(self.watch.job_id))
        if is_decided(job.status):
            return self._conclude(classify(job, spot=True))
        return self._defer()

    def look(self) -> str | None:
        """Look once: the job's id if it succeeded, None if it is not over."""
        self.kill.check(self.watch.job_id)
        job = Job(self.hook.get_job(self.watch.job_id))
        self._log_change(job)
        if is_decided(job.status):
            return self._conclude(classify(job, spot=True))
        if SYSTEM_CLOCK.now() >= self._deadline:
            self._time_out(job.status)
        return None

    def resume(self, event: Mapping[str, Any]) -> str:
        """Go on with the trigger's event."""
        return self._conclude(JobOutcome.from_dict(event))

    def stop_if_asked(self) -> None:
        """Stop the job if it is not over and goes with the sensor (`cancel_on_kill`)."""
        job_id = self.watch.job_id
        if self.sensor.cancel_on_kill and not is_decided(Job(self.hook.get_job(job_id)).status):
            self.hook.stop_job(job_id)

    @property
    def _deadline(self) -> datetime:
        return self.watch.start + timedelta(seconds=self.sensor.timeout)

    def _defer(self) -> NoReturn:
        sensor = self.sensor
        sensor.defer(
            trigger=SpotJobTrigger(
                job_id=self.watch.job_id,
                pai_dlc_conn_id=sensor.pai_dlc_conn_id,
                region_id=sensor.region_id,
                workspace_id=sensor.workspace_id,
                poll_interval=sensor.poke_interval,
                total_deadline=self._deadline.isoformat(),
                stop_at_limit=sensor.cancel_on_kill,
                cancel_on_kill=sensor.cancel_on_kill,
            ),
            method_name="execute_complete",
            timeout=max(self._deadline - SYSTEM_CLOCK.now(), timedelta(0)) + _BACKSTOP,
        )

    def _conclude(self, outcome: JobOutcome) -> str:
        """Return the job id of a success, or raise what Airflow should see."""
        if outcome.stop_reason is StopReason.TOTAL_TIMEOUT and outcome.verdict is not Verdict.SUCCEEDED:
            self._time_out(outcome.status)
        if outcome.rule == NOT_OBSERVED:
            raise error_for(outcome, note=" The job may be alive; the next try goes on watching it.")
        self.report.went(outcome)
        tails, outcome = read_tails(self.hook, outcome, provider_settings.log_tail_lines())
        self.report.push(XCOM_OUTCOME, outcome.to_dict())
        if outcome.verdict is Verdict.SUCCEEDED:
            self.log.info("succeeded: %s, %s running", outcome.job_id, duration(outcome.seconds_running))
            return outcome.job_id
        if outcome.verdict is Verdict.REVOKED and self.sensor.on_revoked == "resubmit":
            self._mark_lost(outcome)
        self.report.tails(outcome, tails)
        raise SpotWatchEnded(str(error_for(outcome)), outcome)

    def _mark_lost(self, outcome: JobOutcome) -> NoReturn:
        """Record the loss and raise: Airflow shows the sensor up for retry, and the next try acts."""
        lost = self.watch.after_loss()
        keep(self.store, lost)
        last = self.moment.try_number > self.moment.max_tries
        then = "no tries are left" if last else "marked for retry: the next try submits its successor"
        self.log.warning(
            "revoked after %s (%s); %s, loss %d, %s",
            duration(outcome.seconds_running),
            "; ".join(outcome.evidence[:2]),
            then,
            lost.losses,
            self.moment,
        )
        raise SpotCapacityRevoked(f"{outcome.job_id} lost its capacity; {then}.", outcome)

    def _submit_successor(self) -> None:
        task_id = str(self.sensor.submitted_by)
        identity = identity_from(self.context, self.hook, task_id=task_id)
        submit_task = rendered_submit_task(self.context, task_id)
        jobs = open_jobs(
            self.context,
            hook=self.hook,
            identity=identity,
            wanted=submit_task.wanted(identity, self.hook, self.moment).owned_by(Owner.RUN),
            kill=KillSwitch(hook=self.hook, identity=identity, cancel_on_kill=False, log=self.log),
            console_url=job_console_url,
            console_key=JOB_CONSOLE_KEY,
            log=self.log,
        )
        self.watch = self.watch.over(submit_successor(jobs, self.watch.job_id, self.watch.losses))
        keep(self.store, self.watch)
        overwrite_job_id(self.context, task_id, self.watch.job_id, jobs.report)

    def _time_out(self, status: str) -> NoReturn:
        stopped = "it was stopped" if self.sensor.cancel_on_kill else "it is left alone (cancel_on_kill=False)"
        raise AirflowSensorTimeout(
            f"{self.watch.job_id} is {status or 'unseen'} and the sensor's timeout of "
            f"{duration(self.sensor.timeout)} has passed; {stopped}."
        )

    def _log_change(self, job: Job) -> None:
        seen = f"{job.job_id}: {job.status}"
        if self.store.get(_STATUS_KEY) != seen:
            self.store.set(_STATUS_KEY, seen)
            self.log.info("%s", seen)
