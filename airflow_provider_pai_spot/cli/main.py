"""
`pai-spot <command>`: reads the command line and hands over.

A command is a module with `add_arguments(parser)` and `run(options) -> exit code`; it is imported only when its
name is typed, so that `pai-spot --help` is quick.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = {
    "demo": ("airflow_provider_pai_spot.cli.demo.command", "a real Airflow and an emulated cloud, on this machine"),
    "emulator": ("airflow_provider_pai_spot.cli.emulator_command", "a DLC service on this machine, until Ctrl-C"),
}
"""Name -> module and what it is, as `pai-spot --help` shows it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    name = given[0] if given and given[0] in COMMANDS else None
    options = _parser(name).parse_args(given)
    return int(import_module(COMMANDS[options.command][0]).run(options))


def _parser(wanted: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pai-spot", description="Airflow on spot capacity of PAI DLC.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, purpose) in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
        if name == wanted:
            import_module(module).add_arguments(command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
