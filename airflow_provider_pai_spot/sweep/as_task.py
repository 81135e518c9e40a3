"""The sweep as an Airflow task runs it: with connections, and sure of asking the Airflow it runs in."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk.configuration import conf

from airflow_provider_pai_spot import settings
from airflow_provider_pai_spot.attempts.identity import resolve_namespace
from airflow_provider_pai_spot.clock import SYSTEM_CLOCK, Clock
from airflow_provider_pai_spot.exceptions import PaiSpotError
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.sweep.airflow_address import AirflowAddress
from airflow_provider_pai_spot.sweep.airflow_api import AirflowApi
from airflow_provider_pai_spot.sweep.owners import RunRef
from airflow_provider_pai_spot.sweep.sweeper import Sweeper

if TYPE_CHECKING:
    from airflow.sdk import Context

DEFAULT_API_CONN_ID = "airflow_api_default"
_LOG = logging.getLogger(__name__)


class SweepIncomplete(PaiSpotError):
    """A sweep could not find everything out, or not stop everything; the task's log says which jobs."""


def sweep_as_task(
    context: Context,
    *,
    apply: bool,
    pai_dlc_conn_id: str = settings.DEFAULT_CONN_ID,
    airflow_api_conn_id: str = DEFAULT_API_CONN_ID,
    clock: Clock = SYSTEM_CLOCK,
) -> dict[str, Any]:
    """
    Sweep the jobs of this Airflow and return the report as JSON.

    A worker has no credential of its own for Airflow's public API, so it needs a connection with one.

    :param context: of the running task; its run is what Airflow is recognized by.
    :param airflow_api_conn_id: connection of type http: host, login and password (without login: an access token).
    :raises SweepIncomplete: Airflow was silent about a job, or an orphan could not be stopped.
    :raises PaiSpotError: DLC or Airflow cannot be asked, or the namespace is not to be trusted.
    """
    hook = PaiDlcHook(pai_dlc_conn_id)
    base_url = conf.get("api", "base_url", fallback="") or ""
    connection: Any = BaseHook.get_connection(airflow_api_conn_id)
    ti: Any = context["ti"]
    with AirflowApi(AirflowAddress.build(connection=connection, fallback=base_url)) as airflow:
        airflow.require_run(RunRef(ti.dag_id, ti.run_id))
        sweeper = Sweeper(
            hook=hook,
            namespace=resolve_namespace(settings.namespace(), hook.namespace, base_url),
            owner_states=airflow.owner_states,
            held_job=airflow.held_job,
            clock=clock,
            log=_LOG,
        )
        report = sweeper.sweep(apply=apply)
    report.log_to(_LOG)
    if report.is_incomplete:
        raise SweepIncomplete(report.summary)
    return report.to_dict()
