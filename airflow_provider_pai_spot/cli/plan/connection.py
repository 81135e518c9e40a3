"""The hook a task would use; where its connection is not to be had, something that stands in for it, and says so."""

from __future__ import annotations

import json
from dataclasses import dataclass

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_provider_pai_spot.cli.connecting import not_found
from airflow_provider_pai_spot.cli.plan.unknown import KNOWN_AT_RUN_TIME, KNOWN_WITH_THE_CONNECTION, Unknown
from airflow_provider_pai_spot.exceptions import PaiDlcError
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator

_REGION_STAND_IN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """
    What is known of the connection.

    :param problem: why it could not be used; None if it could.
    :param region_id: '' where it is not known.
    """

    hook: PaiDlcHook
    conn_id: str
    problem: str | None
    region_id: str
    endpoint: str


def reach(operator: SubmitSpotJobOperator, unknown: Unknown, conn_id: str | None) -> Reached:
    """
    Look the task's connection up, without a call to DLC.

    :param conn_id: another connection than the task's.
    """
    wanted = conn_id or operator.pai_dlc_conn_id
    region_id = None if "region_id" in unknown.arguments else operator.region_id
    if conn_id is None and (reason := unknown.arguments.get("pai_dlc_conn_id")):
        return _stand_in(KNOWN_AT_RUN_TIME, region_id, f"which connection is known at run time: {reason}")
    hook = PaiDlcHook(wanted, region_id=region_id)
    try:
        settings = hook.settings
        endpoint = settings.endpoint or hook.endpoint
    except AirflowNotFoundException:
        return _stand_in(wanted, region_id, not_found(wanted))
    except PaiDlcError as error:
        return _stand_in(wanted, region_id, str(error))
    return Reached(hook=hook, conn_id=wanted, problem=None, region_id=settings.region_id, endpoint=endpoint)


def _stand_in(conn_id: str, region_id: str | None, problem: str) -> Reached:
    extra = {"region_id": region_id or _REGION_STAND_IN, "workspace_id": KNOWN_WITH_THE_CONNECTION}
    connection = Connection(conn_id=conn_id, conn_type=PaiDlcHook.conn_type, extra=json.dumps(extra))
    return Reached(
        hook=PaiDlcHook.from_connection(connection),
        conn_id=conn_id,
        problem=problem,
        region_id=region_id or "",
        endpoint="",
    )
