"""`pai-spot emulator`: the DLC emulator as a program."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `pai-spot emulator`."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; with --execute loopback only")
    parser.add_argument("--port", type=int, default=0, help="0 (the default) takes a free one")
    parser.add_argument("--tls", action="store_true", help="serve https with a certificate made now")
    parser.add_argument("--execute", action="store_true", help="really run commands, as processes of this user")
    parser.add_argument("--root", type=Path, metavar="DIR", help="mounts and working folders; default: temporary")
    parser.add_argument("--seed", type=int, default=0, help="of every random choice")
    parser.add_argument("--state-file", type=Path, metavar="FILE", help="write how to reach it, as JSON")


def run(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM and return 0."""
    from airflow_provider_pai_spot.emulator.main import serve

    return serve(
        state_file=options.state_file,
        host=options.host,
        port=options.port,
        tls=options.tls,
        execute=options.execute,
        root=options.root,
        seed=options.seed,
    )
