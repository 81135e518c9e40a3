"""`pai-spot stop`: end one job, and do not come back before it is over."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from airflow_provider_pai_spot.cli.airflow_process import airflow_process, progress_on_stderr
from airflow_provider_pai_spot.cli.connecting import add_connection_options, open_hook

if TYPE_CHECKING:
    from airflow_provider_pai_spot.dlc.job import Job
    from airflow_provider_pai_spot.dlc.outcome import JobOutcome
    from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

_EPILOG = """\
A job that is already over is left as it is, and that is not an error.
If Airflow still waits for the job, its task fails without a retry: somebody wanted the job stopped.
To end job and task together mark the task failed in Airflow; the job is then stopped by itself.

examples:
  pai-spot stop dlc1a2b3c4d5e6f
  pai-spot stop dlc1a2b3c4d5e6f --no-wait
  pai-spot stop dlc1a2b3c4d5e6f --conn-id pai_dlc_shanghai --region-id cn-shanghai

exit codes: 0 it is over (with --no-wait: DLC accepted the stop), 1 it is not
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `pai-spot stop`."""
    parser.epilog = _EPILOG
    parser.add_argument("job_id", metavar="JOB_ID", help="DLC's id of the job, as in task logs: dlc…")
    add_connection_options(parser)
    parser.add_argument("--no-wait", action="store_true", help="return once DLC has accepted the stop")


def run(options: argparse.Namespace) -> int:
    """Stop the job; errors are raised."""
    with airflow_process(debug=options.debug):
        hook = open_hook(options)
        said = _told(hook, options.job_id) if options.no_wait else _stopped(hook, options.job_id)
    print(said)
    return 0


def _told(hook: PaiDlcHook, job_id: str) -> str:
    accepted = hook.stop_job(job_id)
    return f"{job_id}: DLC is stopping it." if accepted else f"{job_id} was already over."


def _stopped(hook: PaiDlcHook, job_id: str) -> str:
    from airflow_provider_pai_spot.attempts.stopping import stop_and_wait
    from airflow_provider_pai_spot.clock import SYSTEM_CLOCK
    from airflow_provider_pai_spot.dlc.job import Job

    before = Job(hook.get_job(job_id))
    with progress_on_stderr() as log:
        log.info("%s", _whose(before))
        outcome = stop_and_wait(hook, job_id, None, clock=SYSTEM_CLOCK, log=log)
    return _how_it_ended(outcome, was_over=before.is_decided)


def _whose(job: Job) -> str:
    from airflow_provider_pai_spot.attempts.identity import ENV_DAG_ID, ENV_RUN_ID, ENV_TASK_ID

    task = " / ".join(job.envs[name] for name in (ENV_DAG_ID, ENV_RUN_ID, ENV_TASK_ID) if name in job.envs)
    return f"{job.job_id} is {job.display_name!r}, {f'of {task}' if task else 'not made by Airflow'}"


def _how_it_ended(outcome: JobOutcome, *, was_over: bool) -> str:
    from airflow_provider_pai_spot.attempts.endings import describe

    over = "was already over" if was_over else "is over"
    held = " Its nodes are still held, and perhaps billed, until the reservation ends." if outcome.reserving else ""
    return f"{outcome.job_id} {over}: {describe(outcome)}.{held}"
