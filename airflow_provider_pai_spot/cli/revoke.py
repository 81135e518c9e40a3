"""`pai-spot revoke`: take the machines of an emulated job back, as the market would."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_pai_spot.cli.problem import CliProblem

if TYPE_CHECKING:
    from airflow_provider_pai_spot.emulator.client import EmulatorClient

_EPILOG = """\
For rehearsals: it speaks to a running `pai-spot emulator` by the state file of that one, never to DLC.

examples:
  pai-spot revoke dlc1a2b3c4d5e6f --state-file emulator.json
  pai-spot revoke dlc1a2b3c4d5e6f --state-file emulator.json --nodes 1     one machine of several
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `pai-spot revoke`."""
    parser.epilog = _EPILOG
    parser.add_argument("job_id", metavar="JOB_ID", help="id of the job, as in task logs: dlc…")
    parser.add_argument(
        "--state-file",
        type=Path,
        required=True,
        metavar="FILE",
        help="what `pai-spot emulator --state-file FILE` writes while it runs",
    )
    parser.add_argument("--nodes", type=int, metavar="NUMBER", help="how many machines (default: all of the job)")


def run(options: argparse.Namespace) -> int:
    """Revoke; errors are raised."""
    from airflow_provider_pai_spot.emulator.client import EmulatorControlError

    try:
        _client(options.state_file).revoke(options.job_id, options.nodes)
    except EmulatorControlError as error:
        raise CliProblem(f"{options.job_id} keeps its machines: {error}") from error
    except OSError as error:
        raise CliProblem(f"the emulator of {options.state_file} does not answer: {error}") from error
    machines = "its machines" if options.nodes is None else f"{options.nodes} of its machines"
    print(f"{options.job_id} has lost {machines}.")
    return 0


def _client(state_file: Path) -> EmulatorClient:
    from airflow_provider_pai_spot.emulator.client import EmulatorClient

    try:
        state = json.loads(state_file.read_text(encoding="utf-8"))
        return EmulatorClient(state["base_url"], state["control_token"], state["ca_file"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CliProblem(
            f"{state_file} cannot be read as the state of an emulator ({error!r}); is one running with "
            f"`pai-spot emulator --state-file {state_file}`?"
        ) from error
