"""`pai-spot why`: what a job waits for, in the words of the task log."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from airflow_provider_pai_spot.cli.airflow_process import airflow_process
from airflow_provider_pai_spot.cli.connecting import add_connection_options, open_hook

if TYPE_CHECKING:
    from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

_EPILOG = """\
The line is the one that the task log has once a wait turns unusual ([pai_spot] unusual_wait): the bid against the
market, stock, DLC's own reason, and the newest event. Prices need the permission ListEcsSpecs; without it the line goes
without them. Of a job that queues for a quota it says what PAI Studio's diagnosis says.

examples:
  pai-spot why dlc1a2b3c4d5e6f
  pai-spot why dlc1a2b3c4d5e6f --conn-id pai_dlc_shanghai --region-id cn-shanghai

exit codes: 0 it was told (also that the job does not wait), 1 DLC could not be asked
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `pai-spot why`."""
    parser.epilog = _EPILOG
    parser.add_argument("job_id", metavar="JOB_ID", help="DLC's id of the job, as in task logs: dlc…")
    add_connection_options(parser)


def run(options: argparse.Namespace) -> int:
    """Say why the job waits; errors are raised."""
    with airflow_process(debug=options.debug):
        said = _why(open_hook(options), options.job_id)
    print(said)
    return 0


def _why(hook: PaiDlcHook, job_id: str) -> str:
    from airflow_provider_pai_spot.attempts.drive import carry_out
    from airflow_provider_pai_spot.attempts.queue_word import inquire
    from airflow_provider_pai_spot.attempts.waiting_words import waiting_line
    from airflow_provider_pai_spot.clock import SYSTEM_CLOCK
    from airflow_provider_pai_spot.dlc.job import Job
    from airflow_provider_pai_spot.dlc.status import Phase

    job = Job(hook.get_job(job_id))
    if job.phase is not Phase.PENDING:
        return f"{job_id} does not wait, it is {job.status}: `pai-spot explain {job_id}` tells how it goes or ended."
    return waiting_line(job, SYSTEM_CLOCK.now(), carry_out(inquire(job), hook))
