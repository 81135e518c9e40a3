"""`pai-spot jobs`: the table, the JSON and the last line."""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_provider_pai_spot.cli.airflow_process import airflow_process
from airflow_provider_pai_spot.cli.connecting import add_connection_options, open_hook
from airflow_provider_pai_spot.cli.tables import print_table
from airflow_provider_pai_spot.dlc.duration import duration
from airflow_provider_pai_spot.dlc.status import JobStatus

if TYPE_CHECKING:
    from airflow_provider_pai_spot.cli.jobs.reading import JobLine
    from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

_LONGEST_SPAN = timedelta(days=5 * 366)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
COLUMNS = ("job", "status", "dag", "run", "task", "map", "attempt", "bid", "pending", "running", "owner")
_EPILOG = """\
Jobs are known by the tags this provider puts on them; dag, run and task come from the job's AIRFLOW_CTX_* variables.
No other environment variable of a job is read out. `owner` says whose end also ends the job: the task's, or (where a
SpotJobSensor waits) the run's.

examples:
  pai-spot jobs
  pai-spot jobs --since 12h --status Running,Queuing,Bidding
  pai-spot jobs --all-namespaces --json | jq '.[] | select(.seconds_running > 3600)'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `pai-spot jobs`."""
    parser.epilog = _EPILOG
    add_connection_options(parser)
    parser.add_argument(
        "--since",
        type=time_span,
        default="7d",
        metavar="SPAN",
        help="created within this span: 30m, 12h, 7d or 4w (default: %(default)s)",
    )
    parser.add_argument(
        "--status",
        type=job_statuses,
        default=frozenset(),
        metavar="STATUS,…",
        help=f"only these: {', '.join(JobStatus)}",
    )
    parser.add_argument(
        "--all-namespaces",
        action="store_true",
        help="jobs of every Airflow installation, not only of this one; reads every job of the workspace",
    )
    parser.add_argument("--json", action="store_true", help="a JSON list instead of a table")


def run(options: argparse.Namespace) -> int:
    """List the jobs; errors are raised."""
    with airflow_process(debug=options.debug):
        hook = open_hook(options)
        namespace = None if options.all_namespaces else _namespace(hook)
        lines = _read(hook, options, namespace)
    if options.json:
        print(json.dumps([line.to_dict() for line in lines], indent=2, ensure_ascii=False))
        return 0
    if lines:
        print_table(COLUMNS, [_cells(line) for line in lines])
    print(_total(lines, options.since, namespace))
    return 0


def time_span(text: str) -> timedelta:
    """Read `30m`, `12h`, `7d` or `4w`; ArgumentTypeError for anything else."""
    found = re.fullmatch(r"([1-9]\d{0,4})([mhdw])", text.strip())
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not a span of time; write 30m, 12h, 7d or 4w")
    span = timedelta(**{_UNITS[found[2]]: int(found[1])})
    if span > _LONGEST_SPAN:
        raise argparse.ArgumentTypeError(f"{text!r} is too long; five years at most")
    return span


def job_statuses(text: str) -> frozenset[str]:
    """Read a comma list of statuses in any case; ArgumentTypeError for one that DLC does not have."""
    known = {status.value.casefold(): status.value for status in JobStatus}
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    if unknown := [name for name in wanted if name.casefold() not in known]:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: DLC's statuses are {', '.join(JobStatus)}")
    return frozenset(known[name.casefold()] for name in wanted)


def _namespace(hook: PaiDlcHook) -> str:
    from airflow.sdk.configuration import conf

    from airflow_provider_pai_spot import settings
    from airflow_provider_pai_spot.attempts.identity import resolve_namespace

    return resolve_namespace(settings.namespace(), hook.namespace, conf.get("api", "base_url", fallback=""))


def _read(hook: PaiDlcHook, options: argparse.Namespace, namespace: str | None) -> list[JobLine]:
    from airflow_provider_pai_spot.attempts.identity import hash_namespace
    from airflow_provider_pai_spot.cli.jobs.reading import find_jobs, job_line
    from airflow_provider_pai_spot.clock import SYSTEM_CLOCK

    now = SYSTEM_CLOCK.now()
    jobs = find_jobs(
        hook,
        since=now - options.since,
        namespace_tag=None if namespace is None else hash_namespace(namespace),
        statuses=options.status,
    )
    lines = [job_line(job, now) for job in jobs]
    return sorted(lines, key=lambda line: line.created_at.timestamp() if line.created_at else 0.0, reverse=True)


def _cells(line: JobLine) -> tuple[str, ...]:
    return (
        line.job_id,
        line.status,
        line.dag_id,
        line.run_id,
        line.task_id,
        "" if line.map_index == "-1" else line.map_index,
        line.attempt,
        ", ".join(line.bids),
        duration(line.seconds_pending),
        duration(line.seconds_running),
        line.owner,
    )


def _total(lines: Sequence[JobLine], since: timedelta, namespace: str | None) -> str:
    where = "any namespace" if namespace is None else f"namespace {namespace!r}"
    when = f"{where}, created within {duration(since.total_seconds())}"
    if not lines:
        return f"No jobs ({when})."
    counts = ", ".join(f"{count} {status}" for status, count in Counter(line.status for line in lines).most_common())
    pending, running = (
        duration(sum(getattr(line, name) for line in lines)) for name in ("seconds_pending", "seconds_running")
    )
    noun = "job" if len(lines) == 1 else "jobs"
    return f"{len(lines)} {noun}: {counts}; {pending} pending, {running} running ({when})."
