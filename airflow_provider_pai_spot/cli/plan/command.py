"""`pai-spot plan`: reads the command line and puts the steps in order."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_pai_spot.cli.airflow_process import airflow_process

if TYPE_CHECKING:
    from airflow_provider_pai_spot.cli.plan.contents import Plan
    from airflow_provider_pai_spot.cli.plan.context import PlannedRun

_EPILOG = """\
Shows the exact CreateJob body that the task's first attempt would send, its bids with their units, its limits and
how many jobs it can come to. Nothing is submitted and DLC is not called.

Templates are rendered as for a run started by hand. What only the run knows (another task's result, a template that
does not render here) is marked <known at run time>, with the reason. Values of environment variables, registry
passwords and injected credentials are never shown.

With --dag-file no metadata database is needed: AIRFLOW_CONN_* and AIRFLOW_VAR_* can supply what it would hold.

examples:
  pai-spot plan nightly_training train
  pai-spot plan nightly_training train --dag-file dags/nightly.py --params '{"steps": 500}'
  pai-spot plan mapped_sweep train --map-index 2
  pai-spot plan nightly_training train --json | jq .request.JobSpecs

exit codes: 0 planned, 1 the task would be refused (or is not there): one line says why
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `pai-spot plan`."""
    parser.epilog = _EPILOG
    parser.add_argument("dag_id", metavar="DAG_ID", help="the DAG")
    parser.add_argument("task_id", metavar="TASK_ID", help="a task of it that is a SubmitSpotJobOperator")
    parser.add_argument(
        "--dag-file",
        type=Path,
        metavar="FILE",
        help="the file that defines the DAG (default: all DAG bundles of this Airflow are searched)",
    )
    parser.add_argument(
        "--params",
        type=json_object,
        default={},
        metavar="JSON",
        help="what the run is started with, as `airflow dags trigger --conf`",
    )
    parser.add_argument("--map-index", type=int, metavar="N", help="which one of a mapped task (default: 0)")
    parser.add_argument("--run-id", metavar="ID", help="plan for this run id (default: one as of a run by hand)")
    parser.add_argument(
        "--logical-date",
        type=aware_time,
        metavar="TIME",
        help="ISO 8601, UTC if it names no zone (default: now); also stands for both ends of the data interval",
    )
    parser.add_argument("--conn-id", metavar="ID", help="connection of type pai_dlc, instead of the task's")
    parser.add_argument("--json", action="store_true", help="the plan as one JSON object")


def run(options: argparse.Namespace) -> int:
    """Plan; errors are raised."""
    with airflow_process(debug=options.debug):
        from airflow_provider_pai_spot.cli.plan.showing import as_text

        plan = _plan(options)
        shown = json.dumps(plan.to_dict(), indent=2, ensure_ascii=False) if options.json else as_text(plan)
    print(shown)
    return 0


def json_object(text: str) -> Mapping[str, Any]:
    """Read a JSON object; ArgumentTypeError for anything else."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError('expected a JSON object, such as {"steps": 500}')
    return value


def aware_time(text: str) -> datetime:
    """Read an ISO 8601 time, UTC if it names no zone; ArgumentTypeError for anything else."""
    from datetime import UTC

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write 2026-05-04T12:00:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _plan(options: argparse.Namespace) -> Plan:
    from airflow_provider_pai_spot.attempts.session import identity_from
    from airflow_provider_pai_spot.cli.plan import contents
    from airflow_provider_pai_spot.cli.plan.connection import reach
    from airflow_provider_pai_spot.cli.plan.context import plan_context
    from airflow_provider_pai_spot.cli.plan.dags import find_dag, find_task, watching_sensors
    from airflow_provider_pai_spot.cli.plan.drafting import draft
    from airflow_provider_pai_spot.cli.plan.mapping import one_of
    from airflow_provider_pai_spot.cli.plan.masking import masked
    from airflow_provider_pai_spot.cli.plan.rendering import render

    dag = find_dag(options.dag_id, options.dag_file)
    chosen = one_of(find_task(dag, options.task_id), options.map_index)
    operator, run = chosen.operator, _run(options)
    context = plan_context(operator, run, chosen.map_index)
    unknown = render(operator, context)
    reached = reach(operator, unknown, options.conn_id)
    identity = identity_from(context, reached.hook)
    checkpoints = bool(operator.checkpoint_uri)
    drafted = draft(operator, reached.hook, identity, unknown)
    own_bid = drafted.request.bid if drafted.bids_known else None
    return contents.Plan(
        dag_id=identity.dag_id,
        task_id=identity.task_id,
        run_id=identity.run_id,
        map_index=identity.map_index,
        map_count=chosen.count,
        connection=contents.ConnectionShown.of(reached, drafted.body, identity.namespace),
        request=masked(drafted.body),
        request_bytes=drafted.size,
        known_at_run_time={**unknown.reasons(), **chosen.left_out},
        bids=contents.bids_shown(drafted.request) if drafted.bids_known else None,
        limits=contents.Limits.of(operator, drafted.body),
        arithmetic=contents.Arithmetic.of(operator, watching_sensors(dag, operator.task_id), own_bid, drafted.body),
        warnings=contents.warnings_about(
            drafted.request, operator.recovery, checkpoints=checkpoints, waits=operator.wait_for_completion
        ),
    )


def _run(options: argparse.Namespace) -> PlannedRun:
    from airflow_provider_pai_spot.cli.plan.context import PlannedRun
    from airflow_provider_pai_spot.clock import SYSTEM_CLOCK

    date = options.logical_date or SYSTEM_CLOCK.now().replace(microsecond=0)
    run_id = options.run_id or f"manual__{date.isoformat()}"
    return PlannedRun(run_id=run_id, logical_date=date, params=options.params)
