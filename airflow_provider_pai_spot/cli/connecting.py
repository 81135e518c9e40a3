"""The options that say which DLC, and the hook they lead to."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

DEFAULT_CONNECTION = "pai_dlc_default"


def add_connection_options(parser: argparse.ArgumentParser) -> None:
    """Add --conn-id, --region-id and --workspace-id."""
    parser.add_argument(
        "--conn-id",
        default=DEFAULT_CONNECTION,
        metavar="ID",
        help="Airflow connection of type pai_dlc (default: %(default)s)",
    )
    parser.add_argument("--region-id", metavar="REGION", help="DLC's region, instead of the connection's")
    parser.add_argument("--workspace-id", metavar="ID", help="PAI workspace, instead of the connection's")


def open_hook(options: argparse.Namespace) -> PaiDlcHook:
    """
    Return a hook whose connection was found and checked.

    :raises CliProblem: Airflow knows no such connection.
    :raises PaiDlcError: the connection cannot be right.
    """
    from airflow.sdk.exceptions import AirflowNotFoundException

    from airflow_provider_pai_spot.cli.problem import CliProblem
    from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

    hook = PaiDlcHook(options.conn_id, region_id=options.region_id, workspace_id=options.workspace_id)
    try:
        hook.settings  # noqa: B018 - looks the connection up
    except AirflowNotFoundException:
        raise CliProblem(not_found(options.conn_id)) from None
    return hook


def not_found(conn_id: str, *, conn_type: str = "pai_dlc", option: str = "--conn-id") -> str:
    """Return what to tell somebody whose connection Airflow does not know."""
    return (
        f"Airflow has no connection {conn_id!r}: neither AIRFLOW_CONN_{conn_id.upper()} nor a secrets backend nor the "
        f"metadata database of this AIRFLOW_HOME has it. Add one of type {conn_type}, or name another with {option}."
    )
