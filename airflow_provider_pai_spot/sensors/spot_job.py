"""SpotJobSensor: wait for a job that another task submitted; a loss marks the sensor for retry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow.sdk import BaseSensorOperator
from airflow.sdk.bases.sensor import PokeReturnValue
from airflow.sdk.exceptions import AirflowSensorTimeout, AirflowSkipException

from airflow_provider_pai_spot.links.pai_console import PaiJobLink
from airflow_provider_pai_spot.settings import DEFAULT_CONN_ID

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from airflow_provider_pai_spot.sensors.flow import SensorFlow

OnRevoked = Literal["resubmit", "fail"]


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
        pai_dlc_conn_id: str = DEFAULT_CONN_ID,
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
        if self.soft_fail or self.never_fail:
            raise ValueError(
                f"{self.task_id}: on_revoked='resubmit' cannot go with soft_fail or never_fail: they turn the loss "
                "into a skip, and a skipped task is not retried."
            )

    # --- what Airflow calls; the flow itself loads only where a job is watched, not where a DAG is parsed ---

    def execute(self, context: Context) -> Any:
        """Submit the successor of a job that an earlier try saw lost; then watch."""
        flow = self._begin(context)
        flow.begin()
        if self.deferrable:
            return flow.watch_deferred()
        try:
            return super().execute(context)
        except (AirflowSensorTimeout, AirflowSkipException):
            flow.stop_if_asked()  # Airflow's own loop knows nothing of a job that should go with its timeout
            raise

    def poke(self, context: Context) -> PokeReturnValue:
        """Look once (`deferrable=False`); in reschedule mode every look is a session of its own."""
        done = self._begin(context).look()
        return PokeReturnValue(is_done=done is not None, xcom_value=done)

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> str:
        """Act on the trigger's event."""
        return self._begin(context).resume(event)

    def on_kill(self) -> None:
        """Stop the job if asked to (`cancel_on_kill`) and Airflow has given the sensor up."""
        if self._flow is not None:
            self._flow.kill.pull()

    def _begin(self, context: Context) -> SensorFlow:
        from airflow_provider_pai_spot.sensors.flow import SensorFlow

        if self._flow is None or self._flow.context is not context:
            self._flow = SensorFlow(self, context)
        return self._flow


def _task_id(submitted_by: BaseOperator | str | None) -> str | None:
    """Keep the id only: an operator held by another would be serialized with it."""
    if submitted_by is None or isinstance(submitted_by, str):
        return submitted_by
    return str(submitted_by.task_id)
