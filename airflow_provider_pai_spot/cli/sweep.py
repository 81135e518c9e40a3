"""`pai-spot sweep`: find the jobs that nobody in Airflow waits for any more, and stop them if told to."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING, Any

from airflow_provider_pai_spot.cli.airflow_process import airflow_process, progress_on_stderr
from airflow_provider_pai_spot.cli.connecting import add_connection_options, not_found, open_hook
from airflow_provider_pai_spot.cli.problem import CliProblem

if TYPE_CHECKING:
    from airflow_provider_pai_spot.clock import Clock
    from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
    from airflow_provider_pai_spot.sweep.airflow_address import AirflowAddress
    from airflow_provider_pai_spot.sweep.report import SweepReport

TOKEN_VARIABLE = "PAI_SPOT_AIRFLOW_TOKEN"  # noqa: S105 - the name of a variable
DEFAULT_API_CONNECTION = "airflow_api_default"
_INCOMPLETE = 1
_ORPHANS_FOUND = 3
_EPILOG = f"""\
A job is an orphan if its task instance is finished or gone; in the two-task form, where a SpotJobSensor waits, if its
DAG run is. So is a second job of a task instance of which Airflow says that it waits for the other one. Orphans come
from the moments in which nobody listens: a task marked failed while it was queued for resume or up for retry, a worker
that was lost, a run that was deleted. A job that was left running on purpose (cancel_on_kill=False) is one, too.

A dry run unless --apply is given. Nothing is stopped that is younger than 10 minutes, or whose owner ended less than
10 minutes ago, or about which two looks a minute apart do not say the same, or about which Airflow gave no answer.
Jobs without this provider's tags, or of another namespace, are not even looked at.

Airflow is asked at --airflow-url, else the host of the http connection --airflow-conn-id, else [api] base_url. Login
and password come from that connection (a password without a login is taken for an access token), or an access token
from the variable {TOKEN_VARIABLE}.

examples:
  pai-spot sweep
  pai-spot sweep --apply
  pai-spot sweep --json | jq '.jobs[] | select(.result == "would_stop")'
  pai-spot sweep --apply --namespace airflow-prod --airflow-url https://airflow.example.com

exit codes: 0 no orphans, or all stopped; 3 a dry run found orphans; 1 Airflow was silent about a job, an orphan could
not be stopped, or another error
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `pai-spot sweep`."""
    parser.epilog = _EPILOG
    add_connection_options(parser)
    parser.add_argument("--apply", action="store_true", help="stop the orphans; without it they are only listed")
    parser.add_argument(
        "--namespace",
        metavar="NAME",
        help="jobs of this namespace instead of the configured one; --apply then needs to know which Airflow to ask",
    )
    parser.add_argument("--airflow-url", metavar="URL", help="where Airflow's API server is, without /api/v2")
    parser.add_argument(
        "--airflow-conn-id",
        metavar="ID",
        help=f"connection of type http with host, login and password (default: {DEFAULT_API_CONNECTION}, if it exists)",
    )
    parser.add_argument("--json", action="store_true", help="a JSON object instead of lines")


def run(options: argparse.Namespace, clock: Clock | None = None) -> int:
    """
    Sweep and return the exit code; errors are raised.

    :param clock: replaced in tests.
    """
    with airflow_process(debug=options.debug):
        report = _sweep(open_hook(options), options, clock)
    print(json.dumps(report.to_dict(), indent=2, ensure_ascii=False) if options.json else _lines(report))
    return _exit_code(report)


def _sweep(hook: PaiDlcHook, options: argparse.Namespace, clock: Clock | None) -> SweepReport:
    from airflow_provider_pai_spot.clock import SYSTEM_CLOCK
    from airflow_provider_pai_spot.sweep.airflow_api import AirflowApi
    from airflow_provider_pai_spot.sweep.sweeper import Sweeper, refuse_shared

    base_url = _configured_url()
    namespace = _namespace(hook, options, base_url)
    if options.apply:
        refuse_shared(namespace)
    with progress_on_stderr() as log, AirflowApi(_address(options, base_url)) as airflow:
        sweeper = Sweeper(
            hook=hook,
            namespace=namespace,
            owner_states=airflow.owner_states,
            held_job=airflow.held_job,
            clock=clock or SYSTEM_CLOCK,
            log=log,
        )
        return sweeper.sweep(apply=options.apply)


def _configured_url() -> str:
    from airflow.sdk.configuration import conf

    return conf.get("api", "base_url", fallback="") or ""


def _namespace(hook: PaiDlcHook, options: argparse.Namespace, base_url: str) -> str:
    """Jobs of one Airflow judged by another are all orphans: with a foreign namespace somebody has to say which one."""
    from airflow_provider_pai_spot import settings
    from airflow_provider_pai_spot.attempts.identity import resolve_namespace

    own = resolve_namespace(settings.namespace(), hook.namespace, base_url)
    wanted: str = (options.namespace or "").strip() or own
    if options.apply and wanted != own and not (options.airflow_url or options.airflow_conn_id):
        raise CliProblem(
            f"--namespace is {wanted!r}, and this Airflow's own is {own!r}: add --airflow-url or --airflow-conn-id to "
            "say which Airflow submitted these jobs. A wrong one would know none of them, and all would be stopped."
        )
    return wanted


def _address(options: argparse.Namespace, base_url: str) -> AirflowAddress:
    from airflow_provider_pai_spot.sweep.airflow_address import AirflowAddress

    return AirflowAddress.build(
        url=options.airflow_url or "",
        connection=_connection(options.airflow_conn_id),
        token=os.environ.get(TOKEN_VARIABLE, "").strip(),
        fallback=base_url,
    )


def _connection(conn_id: str | None) -> Any:
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowNotFoundException

    try:
        return BaseHook.get_connection(conn_id or DEFAULT_API_CONNECTION)
    except AirflowNotFoundException:
        if conn_id is None:
            return None
        raise CliProblem(
            not_found(conn_id, conn_type="http (host, login and password of Airflow's API)", option="--airflow-conn-id")
        ) from None


def _lines(report: SweepReport) -> str:
    return "\n".join([*map(str, report.jobs), report.summary])


def _exit_code(report: SweepReport) -> int:
    from airflow_provider_pai_spot.sweep.report import Result

    if report.is_incomplete:
        return _INCOMPLETE
    return _ORPHANS_FOUND if report.count(Result.WOULD_STOP) else 0
