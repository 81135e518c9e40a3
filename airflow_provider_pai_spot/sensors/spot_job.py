"""SpotJobSensor: wait for a job that another task submitted; a loss marks the sensor for retry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow.sdk import BaseSensorOperator
from airflow.sdk.bases.sensor import PokeReturnValue
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
    AirflowTaskTimeout,
)

from airflow_provider_pai_spot.dlc.duration import as_timedelta
from airflow_provider_pai_spot.links.pai_console import PaiJobLink
from airflow_provider_pai_spot.settings import DEFAULT_CONN_ID

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context, RetryPolicy

    from airflow_provider_pai_spot.sensors.flow import SensorFlow

OnRevoked = Literal["resubmit", "fail"]


class SpotJobSensor(BaseSensorOperator):
    """
    Wait for the end of a DLC job that another task submitted.

    Where it lost its capacity, the sensor is marked for retry and the next try submits the successor, under the submit
    task's identity; everything downstream then sees the new id.

    A job that failed, or was stopped, fails the sensor at once: another look at it would see the same.

    While DLC does not answer the sensor waits on, for `[pai_spot] poll_error_tolerance` seconds at most.

    Airflow's `execution_timeout` ends one try; the next goes on watching. With `deferrable` the deferral counts, and it
    ends in `SpotTotalTimeout`; otherwise it is Airflow's own `AirflowTaskTimeout`, in reschedule mode for each look
    anew. The job is left alone unless `cancel_on_kill`.

    :param job_id: DLC's id of the job, usually `submit.output`.
    :param submitted_by: the `SubmitSpotJobOperator` upstream (or its task id) whose request the successor repeats.
    :param on_revoked: `resubmit` needs `submitted_by`, `retries` of 1 or more and none of Airflow's `soft_fail`,
        `never_fail`, `silent_fail`; `fail` fails without retry. Default: `resubmit` if `submitted_by` is given,
        otherwise `fail`.
    :param pai_dlc_conn_id: connection of type `pai_dlc`.
    :param region_id: overrides the connection's.
    :param workspace_id: overrides the connection's.
    :param deferrable: wait in the triggerer, without a worker; otherwise `mode` says how.
    :param cancel_on_kill: stop the job when the sensor is ended in Airflow, or its `timeout` or `execution_timeout`
        passes; by default the job is left alone, it belongs to the DAG run.
    :param log_poll_interval: copy the pods' logs into the task log while the job runs, at this interval (and without
        `deferrable` at the looks, so not more often than `poke_interval`); timedelta or seconds. None: only the last
        lines of pods that failed, once the job is over.
    :param timeout: seconds for the whole watch, over all tries and successors.
    :raises SpotCapacityRevoked: the job was revoked; with `resubmit` the next try submits its successor.
    :raises SpotSubmissionRefused: `job_id` is not the id of one job, or a lost job is not of `submitted_by`. Never
        retried.
    :raises SpotTotalTimeout: `execution_timeout` passed (`deferrable`). The next try goes on watching.
    :raises SpotOutcomeUnknown: DLC did not answer for too long. The next try goes on watching; the last one stops the
        job if `cancel_on_kill`.
    :raises SpotWatchEnded: the job ended otherwise than by success. Never retried.
    :raises AirflowSensorTimeout: `timeout` passed. Never retried.
    """

    template_fields: Sequence[str] = ("job_id", "region_id", "workspace_id", "pai_dlc_conn_id")
    operator_extra_links = (PaiJobLink(),)
    ui_color = "#eef3e8"
    default_retry_policy: ClassVar[RetryPolicy | None] = None
    """For subclasses, where no `retry_policy` is given: Airflow ignores a class attribute of that name."""
    _choices: ClassVar[tuple[str, ...]] = ("resubmit", "fail")

    def __init__(
        self,
        *,
        job_id: str,
        submitted_by: BaseOperator | str | None = None,
        on_revoked: OnRevoked | None = None,
        pai_dlc_conn_id: str = DEFAULT_CONN_ID,
        region_id: str | None = None,
        workspace_id: str | None = None,
        deferrable: bool = True,
        cancel_on_kill: bool = False,
        poke_interval: timedelta | float = 30,
        log_poll_interval: timedelta | float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(poke_interval=poke_interval, **kwargs)
        if self.retry_policy is None:  # neither given nor among default_args; a mapped task passes an explicit None
            self.retry_policy = self.default_retry_policy
        self.job_id = job_id
        self.submitted_by = submit_task_id(submitted_by)
        self.on_revoked: OnRevoked = on_revoked or default_on_revoked(self.submitted_by)
        self.pai_dlc_conn_id = pai_dlc_conn_id
        self.region_id = region_id
        self.workspace_id = workspace_id
        self.deferrable = deferrable
        self.cancel_on_kill = cancel_on_kill
        self.log_poll_interval = as_timedelta("log_poll_interval", log_poll_interval)
        self._flow: SensorFlow | None = None
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
        if self.silent_fail and not self.deferrable:
            raise ValueError(
                f"{self.task_id}: on_revoked='resubmit' cannot go with silent_fail: it swallows the loss that is to be "
                "retried."
            )
        if self.soft_fail or self.never_fail:
            raise ValueError(
                f"{self.task_id}: on_revoked='resubmit' cannot go with soft_fail or never_fail: they turn the loss "
                "into a skip, and a skipped task is not retried."
            )

    # --- what Airflow calls; the flow itself loads only where a job is watched, not where a DAG is parsed ---

    def execute(self, context: Context) -> Any:
        """Submit the successor of a job that an earlier try saw lost; then watch."""
        flow = self._begin(context)
        try:
            with self._softened():
                flow.begin()
                if self.deferrable:
                    return flow.watch_deferred()
            return super().execute(context)
        except (AirflowSensorTimeout, AirflowSkipException, AirflowTaskTimeout) as end:
            self._let_go(flow, end)  # Airflow knows nothing of a job that should go with its sensor
            raise

    def poke(self, context: Context) -> PokeReturnValue:
        """Look once (`deferrable=False`); in reschedule mode every look is a session of its own."""
        done = self._begin(context).look()
        return PokeReturnValue(is_done=done is not None, xcom_value=done)

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> str:
        """Act on the trigger's event."""
        return self._begin(context, _job_told_of(event)).resume(event)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Let go of the job where Airflow ends the deferral itself (`timeout`), or the session after it."""
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except (AirflowSensorTimeout, AirflowSkipException, AirflowTaskTimeout) as end:
            self._let_go(self._begin(context), end)
            raise

    def on_kill(self) -> None:
        """Stop the job if asked to (`cancel_on_kill`) and Airflow has given the sensor up."""
        if self._flow is not None:
            self._flow.kill.pull()

    @contextmanager
    def _softened(self) -> Iterator[None]:
        """What Airflow's own sensors make of an end while they poke, for an end that is seen before anything else."""
        try:
            yield
        except AirflowSkipException:
            raise
        except (AirflowSensorTimeout, AirflowTaskTimeout, AirflowFailException) as end:
            if self.soft_fail or self.never_fail:
                raise AirflowSkipException(f"skipped instead of failed: {end}") from end
            raise
        except Exception as error:
            if self.never_fail:
                raise AirflowSkipException(f"skipped instead of failed: {error}") from error
            raise

    def _let_go(self, flow: SensorFlow, end: BaseException) -> None:
        self.log.warning("%s: %s: %s", flow.watch.job_id, type(end).__name__, flow.let_go())

    def _begin(self, context: Context, job_id: str | None = None) -> SensorFlow:
        """Return the one flow of this session: connection, settings and stored watch are read once."""
        from airflow_provider_pai_spot.sensors.flow import SensorFlow

        if self._flow is None or self._flow.context is not context:
            self._flow = SensorFlow(self, context, job_id=job_id)
        return self._flow


def _job_told_of(event: Any) -> str | None:
    """Ids come from the event: what `job_id` renders to can have changed meanwhile."""
    job_id = event.get("job_id") if isinstance(event, Mapping) else None
    return job_id if isinstance(job_id, str) and job_id else None


def default_on_revoked(submitted_by: str | None) -> OnRevoked:
    """Return what a sensor does about a loss unless `on_revoked` says otherwise."""
    return "resubmit" if submitted_by else "fail"


def submit_task_id(submitted_by: BaseOperator | str | None) -> str | None:
    """Return the id only: an operator held by another would be serialized with it."""
    if submitted_by is None or isinstance(submitted_by, str):
        return submitted_by
    return str(submitted_by.task_id)
