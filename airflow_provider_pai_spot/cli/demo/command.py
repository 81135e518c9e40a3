"""`pai-spot demo`: a real Airflow, an emulated cloud, one night of training, on this machine."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from rich.console import Console

from airflow_provider_pai_spot.cli.demo.airflow_processes import AirflowDidNotStart, LocalAirflow
from airflow_provider_pai_spot.cli.demo.cloud import CloudDidNotStart, LocalCloud
from airflow_provider_pai_spot.cli.demo.live_view import table, view_on
from airflow_provider_pai_spot.cli.demo.report import Result
from airflow_provider_pai_spot.cli.demo.scenario import DAG_ID, TASK_ID, DemoTookTooLong, Night
from airflow_provider_pai_spot.cli.demo.sessions import Processes
from airflow_provider_pai_spot.cli.demo.story import Snapshot, resumed_exactly, steps_lost

INSTALL_SECONDS_VARIABLE = "PAI_SPOT_DEMO_INSTALL_SECONDS"
_IN_WHEEL = Path(__file__).parent / "dags_examples"
_IN_CHECKOUT = Path(__file__).parents[3] / "dags_examples"
_START_TIMEOUT = 240.0
_INTERRUPTED = 130
_EXPECTED_ERRORS = (AirflowDidNotStart, CloudDidNotStart, DemoTookTooLong, TimeoutError)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `pai-spot demo`."""
    parser.add_argument("--exit", action="store_true", help="end when the run is over, instead of serving until Ctrl-C")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    parser.add_argument("--no-revoke", action="store_true", help="let the training run undisturbed")
    parser.add_argument("--home", type=Path, metavar="DIR", help="keep logs, database and checkpoints here")
    parser.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS", help="limit for the run itself")
    parser.add_argument(
        "--dags",
        type=Path,
        default=_IN_WHEEL if _IN_WHEEL.is_dir() else _IN_CHECKOUT,
        metavar="DIR",
        help="the example DAGs",
    )


def run(options: argparse.Namespace) -> int:
    """Run the demo and return its exit code: 0 if everything went as it should."""
    console = Console()
    if not (options.dags / "01_nightly_training.py").exists():
        console.print(f"There is no 01_nightly_training.py in {options.dags}: give the folder with --dags.")
        return 2
    home = _home(options.home)
    try:
        with _ended_by_exception(), Processes() as processes:
            exit_code = _Demo(options, console, home, processes).run()
    except KeyboardInterrupt:
        console.print("Interrupted; everything was stopped.")
        exit_code = _INTERRUPTED
    except _EXPECTED_ERRORS as error:
        console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        exit_code = 1
    if exit_code in (0, _INTERRUPTED) and options.home is None:
        shutil.rmtree(home, ignore_errors=True)
    else:
        console.print(f"Logs, database and checkpoints are kept in {home}.")
    return exit_code


@dataclass(slots=True)
class _Demo:
    options: argparse.Namespace
    console: Console
    home: Path
    processes: Processes

    def run(self) -> int:
        started = time.monotonic()
        cloud = LocalCloud(self.home, self.processes)
        self.console.print("Starting a DLC emulator and Airflow (about half a minute) ...")
        cloud.start()
        with ExitStack() as stack:
            airflow = stack.enter_context(self._airflow(cloud))
            started_in = time.monotonic() - started
            self.console.print(
                f"Airflow is at {airflow.base_url} (no login), its logs are in {self.home} until it ends."
            )
            night, last, ran_in = self._night(airflow, cloud)
            result = self._result(night, last, {"start": started_in, "run": ran_in})
            exit_code = self._tell(result, last, airflow)
            if not self.options.exit:
                self._serve(airflow)
        return exit_code

    def _airflow(self, cloud: LocalCloud) -> LocalAirflow:
        return LocalAirflow(
            self.options.dags,
            self.home / "airflow",
            connections={"pai_dlc_default": cloud.connection_uri},
            parallelism=2,
            start_timeout=_START_TIMEOUT,
            processes=self.processes,
        )

    def _night(self, airflow: LocalAirflow, cloud: LocalCloud) -> tuple[Night, Snapshot, float]:
        began = time.monotonic()
        with view_on(self.console) as view:
            night = Night(airflow.client, cloud, view, revoke=not self.options.no_revoke)
            last = night.go_through(self.options.timeout)
        return night, last, time.monotonic() - began

    def _result(self, night: Night, last: Snapshot, seconds: dict[str, float]) -> Result:
        installed = os.environ.get(INSTALL_SECONDS_VARIABLE)
        tasks = night.airflow.task_instances(DAG_ID, night.run_id)
        return Result(
            seconds={
                "install": float(installed) if installed else None,
                **{name: round(value, 1) for name, value in seconds.items()},
            },
            dag_run_state=last.run_state,
            tries={task["task_id"]: task["try_number"] for task in tasks},
            attempts=last.attempts,
            recorded=night.airflow.xcom(DAG_ID, night.run_id, TASK_ID, "attempts") or [],
            jobs_left_running=night.jobs_left_running(),
            revoked=not self.options.no_revoke,
        )

    def _tell(self, result: Result, last: Snapshot, airflow: LocalAirflow) -> int:
        self.console.print(table(last))
        if self.options.json:
            _write(self.options.json, result.to_dict())
        if problems := result.problems():
            for problem in problems:
                self.console.print(problem, style="red")
            task = airflow.client.task_log(DAG_ID, last.run_id, TASK_ID, last.try_number)
            self.console.print(task, markup=False, highlight=False, soft_wrap=True)
            return 1
        self.console.print(_moral(last))
        return 0

    def _serve(self, airflow: LocalAirflow) -> None:
        self.console.print(f"Look around: {airflow.base_url}/dags/{DAG_ID}   Ctrl-C ends everything.")
        try:
            signal.pause()
        except KeyboardInterrupt:
            self.console.print("Stopping ...")


def _moral(last: Snapshot) -> str:
    tries = "1 Airflow try" if last.try_number == 1 else f"{last.try_number} Airflow tries"
    green = f"The run is green after {last.seconds:.0f} s and {tries}; no job is left running."
    if not resumed_exactly(last.attempts):
        return green
    return (
        f"The market price passed the first bid and the machine was taken back. Job {len(last.attempts)} went on at "
        f"the last checkpoint; {steps_lost(last.attempts)} steps had to be made twice. {green}"
    )


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n")


def _home(wanted: Path | None) -> Path:
    """Return the folder for everything that is written, a new temporary one unless one was named."""
    home = wanted or Path(tempfile.mkdtemp(prefix="pai-spot-demo-"))
    home.mkdir(parents=True, exist_ok=True)
    return home.resolve()


@contextmanager
def _ended_by_exception() -> Iterator[None]:
    """Let SIGTERM, and SIGINT even where a shell had it ignored, end the program through every `finally`."""

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    former = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
