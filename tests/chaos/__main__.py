"""
`make chaos`: a production-like Airflow, the emulated DLC, and everything going wrong at once.

Prints one JSON line for each seed; what happens meanwhile goes to stderr. Exit code 0 only if every task instance
succeeded and no job was submitted twice, left running or misreported.

======================  ====================================================================================
`works`                 pieces of work: one job each, unless the market takes it (two tasks may share one)
`jobs_expected`         works + revocations: what somebody pays who never submits work that is under way or done
`duplicates`            pairs of jobs of one task instance that were alive at the same instant
`lost`                  pieces of work whose end in Airflow, or whose XComs, are not their newest job's end
`orphans_before_sweep`  jobs alive after every DAG run ended
`orphans`               jobs alive after `pai-spot sweep --apply` as well
======================  ====================================================================================
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
from types import FrameType

from seed_run import SeedRun, Settings
from servers import ProgramMissing, required_programs
from timetable import Trouble

_MISSING = 2
_INTERRUPTED = 130


def main() -> int:
    """Run every seed, one after the other."""
    options = _options()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("chaos").setLevel(logging.INFO)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        programs = required_programs()
    except ProgramMissing as missing:
        sys.stderr.write(f"{missing}\n")
        return _MISSING
    settings = Settings(options.tasks, options.seconds, tuple(options.faults), options.poll_seconds, options.keep)
    try:
        every = [_run(SeedRun(seed, settings, programs)) for seed in options.seeds]
    except KeyboardInterrupt:
        return _INTERRUPTED
    return 0 if all(every) else 1


def _run(seed_run: SeedRun) -> bool:
    try:
        figures = seed_run.run()
    except BaseException:
        sys.stderr.write(f"seed {seed_run.seed} did not end; its logs are in {seed_run.home}\n")
        raise
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()
    return bool(figures["ok"])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make chaos", description="Break everything, count what went wrong.")
    parser.add_argument("--seeds", type=_numbers, default=[1], metavar="1,2,3", help="default: 1")
    parser.add_argument("--tasks", type=int, default=200, help="task instances of each seed (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=480.0, help="over which the troubles are spread (default: %(default)s)"
    )
    parser.add_argument(
        "--faults",
        type=_troubles,
        default=list(Trouble),
        metavar="KIND,KIND",
        help=f"which troubles, `none` for none (default: all of {', '.join(Trouble)})",
    )
    parser.add_argument("--poll-seconds", type=float, default=1.0, help="default: %(default)s")
    parser.add_argument("--keep", action="store_true", help="keep the folder with all logs even if all is well")
    return parser.parse_args()


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _troubles(text: str) -> list[Trouble]:
    return [] if text == "none" else [Trouble(part) for part in text.split(",")]


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
