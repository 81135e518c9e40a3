"""SpotJobSensor: wait for a job that another task submitted; a loss marks the sensor for retry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow.sdk import BaseSensorOperator
from airflow.sdk.bases.sensor import PokeReturnValue
from airflow.sdk.exceptions import AirflowSensorTimeout, AirflowSkipException

from airflow_provider_pai_spot import settings as provider_settings
from airflow_provider_pai_spot.attempts.endings import error_for
from airflow_provider_pai_spot.attempts.follow import NOT_OBSERVED
from airflow_provider_pai_spot.attempts.identity import Owner
from airflow_provider_pai_spot.attempts.kill import KillSwitch
from airflow_provider_pai_spot.attempts.ledger import MemoryStore, StateStore
from airflow_provider_pai_spot.attempts.pod_logs import read_tails
from airflow_provider_pai_spot.attempts.report import XCOM_OUTCOME, Report
from airflow_provider_pai_spot.attempts.session import identity_from, moment_from, open_jobs, report_for
from airflow_provider_pai_spot.clock import SYSTEM_CLOCK
from airflow_provider_pai_spot.dlc.duration import duration
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import JobOutcome, StopReason, Verdict
from airflow_provider_pai_spot.dlc.status import is_decided
from airflow_provider_pai_spot.dlc.verdict import classify
from airflow_provider_pai_spot.exceptions import SpotCapacityRevoked, SpotWatchEnded
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.links.pai_console import JOB_CONSOLE_KEY, PaiJobLink, job_console_url
from airflow_provider_pai_spot.sensors.successor import (
    overwrite_job_id,
    rendered_submit_task,
    submit_successor,
)
from airflow_provider_pai_spot.sensors.watch import Watch, keep, open_watch
from airflow_provider_pai_spot.triggers.spot_job import SpotJobTrigger

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

OnRevoked = Literal["resubmit", "fail"]
_BACKSTOP = timedelta(minutes=10)
_STATUS_KEY = "pai_spot_status"


class SpotJobSensor(BaseSensorOperator):
    """
    Wait for the end of a DLC job that another task submitted.

    Where it lost its capacity, the sensor is marked for retry and the next try submits the successor, under the submit
    task's identity; everything downstream then sees the new id.

    A job that failed, or was stopped, fails the sensor at once: another look at it would see the same.

    :param job_id: DLC's id of the job, usually `submit.output`.
    :param submitted_by: the `SubmitSpotJobOperator` upstream (or its task id) whose request the successor repeats.
    :param on_revoked: `resubmit` needs `submitted_by`, `retries` of 1 or more and no `soft_fail`; `fail` fails without
        retry. Default: `resubmit` if `submitted_by` is given, otherwise `fail`.
    :param pai_dlc_conn_id: connection of type `pai_dlc`.
    :param region_id: overrides the connection's.
    :param workspace_id: overrides the connection's.
    :param deferrable: wait in the triggerer, without a worker; otherwise `mode` says how.
    :param cancel_on_kill: stop the job when the sensor is ended in Airflow or its `timeout` passes; by default the
        job is left alone, it belongs to the DAG run.
    :param timeout: seconds for the whole watch, over all tries and successors.
    :raises SpotCapacityRevoked: the job was revoked; with `resubmit` the next try submits its successor.
    :raises SpotWatchEnded: the job ended otherwise than by success. Never retried.
    :raises AirflowSensorTimeout: `timeout` passed. Never retried.
    """

    template_fields: Sequence[str] = ("job_id", "region_id", "workspace_id", "pai_dlc_conn_id")
    operator_extra_links = (PaiJobLink(),)
    ui_color = "#eef3e8"
    _choices: ClassVar[tuple[str, ...]] = ("resubmit", "fail")

    def __init__(
        self,
        *,
        job_id: str,
        submitted_by: BaseOperator | str | None = None,
        on_revoked: OnRevoked | None = None,
        pai_dlc_conn_id: str = PaiDlcHook.default_conn_name,
        region_id: str | None = None,
        workspace_id: str | None = None,
        deferrable: bool = True,
        cancel_on_kill: bool = False,
        poke_interval: timedelta | float = 30,
        **kwargs: Any,
    ) -> None:
        super().__init__(poke_interval=poke_interval, **kwargs)
        self.job_id = job_id
        self.submitted_by = _task_id(submitted_by)
        self.on_revoked: OnRevoked = on_revoked or ("resubmit" if self.submitted_by else "fail")
        self.pai_dlc_conn_id = pai_dlc_conn_id
        self.region_id = region_id
        self.workspace_id = workspace_id
        self.deferrable = deferrable
        self.cancel_on_kill = cancel_on_kill
        self._kill: KillSwitch | None = None
        self._check_on_revoked()

    def _check_on_revoked(self) -> None:
        if self.on_revoked not in self._choices:
            raise ValueError(f"{self.task_id}: on_revoked is {self.on_revoked!r}: expected 'resubmit' or 'fail'.")
        if self.on_revoked == "fail":
            return
        if not self.submitted_by:
            raise ValueError(
                f"{self.task_id}: on_revoked='resubmit' needs submitted_by=<the SubmitSpotJobOperator upstream>; "
                "for a job made elsewhere use on_revoked='fail'."
            )
        if not self.retries:
            raise ValueError(
                f"{self.task_id}: on_revoked='resubmit' needs retries of 1 or more: it is the retry that submits the "
                "successor."
            )
        if self.soft_fail or self.never_fail:
            raise ValueError(
                f"{self.task_id}: on_revoked='resubmit' cannot go with soft_fail or never_fail: they turn the loss "
                "into a skip, and a skipped task is not retried."
            )

    # --- what Airflow calls ---

    def execute(self, context: Context) -> Any:
        """Submit the successor of a job that an earlier try saw lost; then watch."""
        watch = self._begin(context)
        if not self.deferrable:
            return self._poke_until_over(context, watch)
        job = Job(self._hook.get_job(watch.job_id))
        if is_decided(job.status):
            return self._conclude(context, watch, classify(job, spot=True))
        self._defer(watch)
        return None

    def poke(self, context: Context) -> PokeReturnValue:
        """Look once (`deferrable=False`); in reschedule mode every look is a session of its own."""
        watch = self._watch(context)
        now = SYSTEM_CLOCK.now()
        job = Job(self._hook.get_job(watch.job_id))
        self._log_change(context, job)
        if is_decided(job.status):
            return PokeReturnValue(is_done=True, xcom_value=self._conclude(context, watch, classify(job, spot=True)))
        if now >= self._deadline(watch):
            self._time_out(watch, job.status)
        return PokeReturnValue(is_done=False)

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> str:
        """Act on the trigger's event."""
        return self._conclude(context, self._watch(context), JobOutcome.from_dict(event))

    def on_kill(self) -> None:
        """Stop the job if asked to (`cancel_on_kill`) and Airflow has given the sensor up."""
        if self._kill is not None:
            self._kill.pull()

    # --- the watch ---

    def _poke_until_over(self, context: Context, watch: Watch) -> Any:
        """Leave the poking to Airflow's own loop, which knows nothing of a job that should go with its timeout."""
        try:
            return super().execute(context)
        except (AirflowSensorTimeout, AirflowSkipException):
            if self.cancel_on_kill and not is_decided(Job(self._hook.get_job(watch.job_id)).status):
                self._hook.stop_job(watch.job_id)
            raise

    def _begin(self, context: Context) -> Watch:
        watch = self._watch(context)
        if watch.lost:
            watch = self._submit_successor(context, watch)
        keep(self._store(context), watch)
        self._report(context).job(watch.job_id)
        self._kill = KillSwitch(
            hook=self._hook,
            identity=identity_from(context, self._hook),
            cancel_on_kill=self.cancel_on_kill,
            log=self.log,
        )
        self._kill.check(watch.job_id)
        return watch

    def _defer(self, watch: Watch) -> None:
        deadline = self._deadline(watch)
        self.defer(
            trigger=SpotJobTrigger(
                job_id=watch.job_id,
                pai_dlc_conn_id=self.pai_dlc_conn_id,
                region_id=self.region_id,
                workspace_id=self.workspace_id,
                poll_interval=self.poke_interval,
                total_deadline=deadline.isoformat(),
                stop_at_limit=self.cancel_on_kill,
                cancel_on_kill=self.cancel_on_kill,
            ),
            method_name="execute_complete",
            timeout=max(deadline - SYSTEM_CLOCK.now(), timedelta(0)) + _BACKSTOP,
        )

    def _conclude(self, context: Context, watch: Watch, outcome: JobOutcome) -> str:
        """Return the job id of a success, or raise what Airflow should see."""
        if outcome.stop_reason is StopReason.TOTAL_TIMEOUT and outcome.verdict is not Verdict.SUCCEEDED:
            self._time_out(watch, outcome.status)
        if outcome.rule == NOT_OBSERVED:
            raise error_for(outcome, note=" The job may be alive; the next try goes on watching it.")
        tails, outcome = read_tails(self._hook, outcome, provider_settings.log_tail_lines())
        report = self._report(context)
        report.push(XCOM_OUTCOME, outcome.to_dict())
        if outcome.verdict is Verdict.SUCCEEDED:
            self.log.info("succeeded: %s, %s running", outcome.job_id, duration(outcome.seconds_running))
            return outcome.job_id
        if outcome.verdict is Verdict.REVOKED and self.on_revoked == "resubmit":
            self._mark_lost(context, watch, outcome)
        report.tails(outcome, tails)
        raise SpotWatchEnded(str(error_for(outcome)), outcome)

    def _mark_lost(self, context: Context, watch: Watch, outcome: JobOutcome) -> None:
        """Record the loss and raise: Airflow shows the sensor up for retry, and the next try acts."""
        lost = watch.after_loss()
        keep(self._store(context), lost)
        moment = moment_from(context)
        last = moment.try_number > moment.max_tries
        then = "no tries are left" if last else "marked for retry: the next try submits its successor"
        self.log.warning(
            "revoked after %s (%s); %s, loss %d, %s",
            duration(outcome.seconds_running),
            "; ".join(outcome.evidence[:2]),
            then,
            lost.losses,
            moment,
        )
        raise SpotCapacityRevoked(f"{outcome.job_id} lost its capacity; {then}.", outcome)

    def _submit_successor(self, context: Context, watch: Watch) -> Watch:
        task_id = str(self.submitted_by)
        identity = identity_from(context, self._hook, task_id=task_id)
        submit_task = rendered_submit_task(context, task_id)
        wanted = submit_task.wanted(identity, self._hook, moment_from(context)).owned_by(Owner.RUN)
        jobs = open_jobs(
            context,
            hook=self._hook,
            identity=identity,
            wanted=wanted,
            kill=KillSwitch(hook=self._hook, identity=identity, cancel_on_kill=False, log=self.log),
            console_url=job_console_url,
            console_key=JOB_CONSOLE_KEY,
            log=self.log,
        )
        job_id = submit_successor(jobs, watch.job_id, watch.losses)
        keep(self._store(context), watch.over(job_id))
        overwrite_job_id(context, task_id, job_id)
        return watch.over(job_id)

    def _time_out(self, watch: Watch, status: str) -> None:
        stopped = "it was stopped" if self.cancel_on_kill else "it is left alone (cancel_on_kill=False)"
        raise AirflowSensorTimeout(
            f"{watch.job_id} is {status or 'unseen'} and the sensor's timeout of {duration(self.timeout)} has passed; "
            f"{stopped}."
        )

    def _deadline(self, watch: Watch) -> datetime:
        return watch.start + timedelta(seconds=self.timeout)

    def _watch(self, context: Context) -> Watch:
        moment = moment_from(context)
        return open_watch(self._store(context), self.job_id, moment.generation, SYSTEM_CLOCK.now())

    def _log_change(self, context: Context, job: Job) -> None:
        store = self._store(context)
        seen = f"{job.job_id}: {job.status}"
        if store.get(_STATUS_KEY) != seen:
            store.set(_STATUS_KEY, seen)
            self.log.info("%s", seen)

    def _store(self, context: Context) -> StateStore:
        store: StateStore = context.get("task_state_store") or self._memory
        return store

    def _report(self, context: Context) -> Report:
        return report_for(
            context, hook=self._hook, console_url=job_console_url, console_key=JOB_CONSOLE_KEY, log=self.log
        )

    @cached_property
    def _memory(self) -> MemoryStore:
        return MemoryStore()

    @cached_property
    def _hook(self) -> PaiDlcHook:
        return PaiDlcHook(self.pai_dlc_conn_id, region_id=self.region_id, workspace_id=self.workspace_id)


def _task_id(submitted_by: BaseOperator | str | None) -> str | None:
    """Keep the id only: an operator held by another would be serialized with it."""
    if submitted_by is None or isinstance(submitted_by, str):
        return submitted_by
    return str(submitted_by.task_id)
