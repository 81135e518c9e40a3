"""`pai-spot emulator`: from arguments to a running emulator."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_pai_spot.cli.problem import CliProblem
from airflow_provider_pai_spot.cli.tables import print_table

if TYPE_CHECKING:
    from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
    from airflow_provider_pai_spot.emulator.clock import EmulatorClock

_HIGHEST_PORT = 65_535
_EPILOG = """\
It speaks DLC's HTTP API to the unmodified vendor SDK, prints the connection to use, and serves until Ctrl-C.
Jobs only pretend to run, for --run-seconds each, unless --execute is given: then the user command of every job
really runs as a process of this machine, signatures are always verified and only loopback is served.
With --state-file, `pai-spot revoke` takes a job's machines back.

What the emulator does where DLC's documentation is silent can be switched with --behaviour; --behaviours lists it all.

examples:
  pai-spot emulator --port 8999
  pai-spot emulator --speed 60 --run-seconds 3600       an hour of training takes a minute
  pai-spot emulator --execute --root /tmp/dlc           commands run; mounts are folders below --root
  pai-spot emulator --behaviour echo_spot_spec=false --behaviour list_lag_seconds=20
  pai-spot emulator --state-file emulator.json &        another program reads endpoint, keys and control token
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `pai-spot emulator`."""
    parser.epilog = _EPILOG
    _add_server_options(parser.add_argument_group("server"))
    _add_simulation_options(parser.add_argument_group("simulation"))


def _add_server_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    group.add_argument("--port", type=port_number, default=0, help="port to listen on (default: a free one)")
    group.add_argument("--tls", action="store_true", help="serve https, with a certificate made now")
    group.add_argument("--execute", action="store_true", help="really run the jobs' commands on this machine")
    group.add_argument(
        "--verify-signatures", action="store_true", help="refuse wrong signatures (with --execute: always)"
    )
    group.add_argument(
        "--root",
        type=Path,
        metavar="DIR",
        help="certificates, mounts and working folders go here (default: a temporary folder, gone at the end)",
    )
    group.add_argument(
        "--state-file",
        type=Path,
        metavar="FILE",
        help="while it runs, endpoint, keys and control token as JSON, readable by you only",
    )


def _add_simulation_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--seed", type=int, default=0, help="of every random choice (default: %(default)s)")
    group.add_argument(
        "--speed",
        type=float,
        default=1.0,
        metavar="FACTOR",
        help="emulated seconds in a second; not with --execute, whose processes take their own time (default: 1)",
    )
    group.add_argument(
        "--run-seconds",
        type=float,
        metavar="SECONDS",
        help="how long a job pretends to run (default: as the emulator has it, a second or so)",
    )
    group.add_argument(
        "--behaviour",
        type=behaviour_switch,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="let an undocumented behaviour have another value, as JSON or text; can be repeated",
    )
    group.add_argument("--behaviours", action="store_true", help="list all behaviours and end")


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C; or list what can be switched."""
    if options.behaviours:
        _list_behaviours()
        return 0
    from airflow_provider_pai_spot.emulator.main import serve

    started: list[DlcEmulator] = []
    try:
        return serve(state_file=options.state_file, say=_say, ready=started.append, **_settings(options))
    except (ValueError, OSError) as error:
        if started:
            raise
        raise CliProblem(f"the emulator did not start: {error}") from error


def port_number(text: str) -> int:
    """Read a TCP port; ArgumentTypeError for anything else."""
    if not text.isdecimal() or int(text) > _HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a whole number from 0 to {_HIGHEST_PORT}")
    return int(text)


def behaviour_switch(text: str) -> tuple[str, Any]:
    """Read `name=value`, the value as JSON where it is JSON; ArgumentTypeError without a name or a value."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r}: write NAME=VALUE, for example echo_spot_spec=false")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    if options.execute and options.speed != 1:
        raise CliProblem("--speed does not go with --execute: real processes take their own time.")
    return {
        "host": options.host,
        "port": options.port,
        "tls": options.tls,
        "execute": options.execute,
        "root": options.root,
        "seed": options.seed,
        "clock": _clock(options.speed),
        "default_plan": _plan(options.run_seconds),
        "behaviours": dict(options.behaviour),
        "verify_signatures": options.verify_signatures or None,
    }


def _clock(speed: float) -> str | EmulatorClock:
    from airflow_provider_pai_spot.emulator import ScaledClock

    return "real" if speed == 1 else ScaledClock(speed)


def _plan(run_seconds: float | None) -> JobPlan | None:
    from airflow_provider_pai_spot.emulator import JobPlan

    return None if run_seconds is None else JobPlan(run_seconds=run_seconds)


def _say(line: str) -> None:
    print(line, flush=True)  # whoever started it in the background reads a file or a pipe


def _list_behaviours() -> None:
    from airflow_provider_pai_spot.emulator import BEHAVIOURS

    columns = ("name", "value", "certainty", "source")
    rows = [(one.name, json.dumps(one.default), one.certainty.value, one.source) for one in BEHAVIOURS]
    print_table(columns, rows)
