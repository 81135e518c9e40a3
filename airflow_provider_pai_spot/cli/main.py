"""`pai-spot`: the command line. Finds the command, hands it its arguments, and tells errors in one line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

from airflow_provider_pai_spot import __version__
from airflow_provider_pai_spot.cli.helping import HelpFormatter
from airflow_provider_pai_spot.cli.problem import is_explained

_FAILED = 1
_INTERRUPTED = 130  # as a shell reports SIGINT
_PIPE_CLOSED = 141  # as a shell reports SIGPIPE

_EPILOG = """\
examples:
  pai-spot demo                               see it work, on this machine
  pai-spot plan nightly_training train        what would be submitted, and what it may cost in jobs
  pai-spot jobs --status Running,Queuing      what this Airflow has on DLC
  pai-spot why dlc1a2b3c4d5e6f                what a job waits for: bid, market, stock, newest event
  pai-spot explain dlc1a2b3c4d5e6f            why it ended, by which rule, and what Airflow does next
  pai-spot stop dlc1a2b3c4d5e6f               stop one job and wait until it is over
  pai-spot sweep                              what nobody in Airflow waits for any more, without stopping it

exit codes: 0 done, 1 it could not be done (one line on stderr says why), 2 wrong arguments, 130 Ctrl-C
"""


@dataclass(frozen=True, slots=True)
class Command:
    """
    A subcommand, whose module has `add_arguments(parser)` and `run(options) -> exit code`.

    :param module: imported only when this command is called.
    :param summary: its line in `pai-spot --help`.
    """

    module: str
    summary: str


_HERE = "airflow_provider_pai_spot.cli"
COMMANDS = {
    "demo": Command(f"{_HERE}.demo.command", "see a training survive a revocation, on this machine"),
    "emulator": Command(f"{_HERE}.emulator", "run a DLC service on this machine, for tests and trials"),
    "revoke": Command(f"{_HERE}.revoke", "take the machines of an emulated job back, as the market would"),
    "plan": Command(f"{_HERE}.plan.command", "show what a task would submit, without submitting it"),
    "jobs": Command(f"{_HERE}.jobs.command", "list the jobs that Airflow has on DLC"),
    "why": Command(f"{_HERE}.why", "say what a job waits for"),
    "explain": Command(f"{_HERE}.explain.command", "tell why a job ended as it did, and what follows"),
    "stop": Command(f"{_HERE}.stop", "stop one job and wait until it is over"),
    "sweep": Command(f"{_HERE}.sweep", "find the jobs that nobody in Airflow waits for, and stop them"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run `pai-spot` with these arguments (None: the process's own) and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = run(arguments)
        sys.stdout.flush()
        return code  # noqa: TRY300 - what is flushed above can fail as well
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough; Python must not complain once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED
    except Exception as error:
        if "--debug" in arguments or not is_explained(error):
            raise
        print(f"pai-spot: {' '.join(str(error).split())}", file=sys.stderr)
        return _FAILED


def run(arguments: Sequence[str]) -> int:
    """Parse and carry out; errors are raised. SystemExit for --help, --version and wrong arguments."""
    name = next((one for one in arguments if not one.startswith("-")), "")
    parser = _parser(name)
    options = parser.parse_args(arguments)
    return cast(int, options.run(options))


def _parser(wanted: str) -> argparse.ArgumentParser:
    """Return the parser; only the wanted command's module is loaded and described in full."""
    parser = argparse.ArgumentParser(
        prog="pai-spot",
        description="Training on spot capacity of PAI DLC, scheduled by Airflow: see, plan, list and stop jobs.",
        epilog=_EPILOG,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pai-spot {__version__}")
    _add_debug(parser, default=False)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        own = commands.add_parser(name, help=command.summary, formatter_class=HelpFormatter)
        if name == wanted:
            module: Any = import_module(command.module)
            own.description = f"{command.summary[0].upper()}{command.summary[1:]}."
            module.add_arguments(own)
            _add_debug(own, default=argparse.SUPPRESS)
            own.set_defaults(run=module.run)
    return parser


def _add_debug(parser: argparse.ArgumentParser, *, default: Any) -> None:
    parser.add_argument(
        "--debug", action="store_true", default=default, help="show Airflow's log lines, and tracebacks of errors"
    )
