"""One real Airflow for all tests of this folder, and two emulated clouds that it is connected to."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from airflow_provider_pai_spot.cli.demo.airflow_processes import LocalAirflow
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan

HERE = Path(__file__).parent
LONG = frozenset(
    {
        "test_logs_on_airflow",
        "test_recovery_on_airflow",
        "test_rerunning_submit",
        "test_the_same_work_again",
        "test_what_happens_to_the_job",
        "test_when_airflow_dies",
    }
)
"""Files that `make test-long` runs: together with the rest they would take longer than anybody waits for a change."""
TABLES = frozenset({"test_what_happens_to_the_job"})
"""Of these the event that people cause most often stays with the rest."""
EXAMPLES = HERE.parents[1] / "dags_examples"
LONGEST = 2400.0
"""Seconds that one test may take, what it shares with others included: the whole table takes half an hour."""
MOST_TASKS_AT_ONCE = 40
"""So many workers are held at the same time by tasks that are to be ended in a worker."""
PRELOAD = """
import sys

if "scheduler" in sys.argv:  # forks the workers, which then need not load the SDK each for itself
    from airflow_provider_pai_spot.hooks.sdk import load

    load()
"""
SETTINGS = {"AIRFLOW__PAI_SPOT__POLL_ERROR_TOLERANCE": "30"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.end_to_end)
            item.add_marker(pytest.mark.timeout(LONGEST))
        if item.path.stem in LONG and not (item.path.stem in TABLES and "mark_failed" in item.name):
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def cloud() -> Iterator[DlcEmulator]:
    """Behind `pai_dlc_default`: really runs commands."""
    with DlcEmulator(execute=True) as emulator:
        yield emulator


@pytest.fixture(scope="session")
def scripted_cloud() -> Iterator[DlcEmulator]:
    """Behind `pai_dlc_scripted` and, with a namespace of its own, `pai_dlc_named`: jobs follow `control.plan`."""
    with DlcEmulator() as emulator:
        yield emulator


@pytest.fixture(scope="session")
def airflow_server(
    cloud: DlcEmulator, scripted_cloud: DlcEmulator, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalAirflow]:
    """A running Airflow with the example DAGs and those of `tests/end_to_end/dags`."""
    folder = tmp_path_factory.mktemp("airflow")
    shutil.copytree(EXAMPLES, folder / "dags")
    shutil.copytree(HERE / "dags", folder / "dags", dirs_exist_ok=True)
    (folder / "home" / "config").mkdir(parents=True)
    (folder / "home" / "config" / "airflow_local_settings.py").write_text(PRELOAD)
    connections = {
        "pai_dlc_default": cloud.connection_uri(),
        "pai_dlc_scripted": scripted_cloud.connection_uri(),
        "pai_dlc_named": scripted_cloud.connection_uri(namespace="end-to-end-named"),
    }
    with LocalAirflow(
        folder / "dags",
        folder / "home",
        connections=connections,
        environment=SETTINGS,
        parallelism=MOST_TASKS_AT_ONCE,
    ) as airflow:
        yield airflow


@pytest.fixture(scope="session")
def eventually() -> Callable[[Callable[[], object]], bool]:
    """Whether something comes to hold; an API server that is busy with SQLite answers 500 now and then."""

    def wait(holds: Callable[[], object], seconds: float = 240.0) -> bool:
        give_up_at = time.monotonic() + seconds
        while time.monotonic() < give_up_at:
            with contextlib.suppress(httpx.HTTPError):
                if holds():
                    return True
            time.sleep(0.5)
        return False

    return wait


class Work:
    """One DAG run with a task `train`, its jobs, which go on until they are ended, and what a person can do to them."""

    patience = 240.0

    def __init__(
        self, airflow: LocalAirflow, cloud: DlcEmulator, eventually: Callable[..., bool], dag_id: str, run_id: str
    ) -> None:
        self.airflow, self.client, self.cloud, self.eventually = airflow, airflow.client, cloud, eventually
        self.dag_id, self.run_id = dag_id, run_id
        self.display_name = f"{dag_id}-{run_id}"
        cloud.control.plan(JobPlan(run_seconds=None), match={"display_name": self.display_name}, times=None)
        self.start()

    def start(self) -> None:
        self.client.trigger(self.dag_id, run_id=self.run_id)

    def jobs(self) -> list[dict[str, Any]]:
        return [job for job in self.cloud.control.jobs() if job["DisplayName"] == self.display_name]

    def statuses(self) -> list[str]:
        return [job["Status"] for job in self.jobs()]

    def state(self) -> str:
        return str(self.client.task_instance(self.dag_id, self.run_id, "train")["state"])

    def tries(self) -> int:
        return int(self.client.task_instance(self.dag_id, self.run_id, "train")["try_number"])

    def start_date(self) -> str:
        return str(self.client.task_instance(self.dag_id, self.run_id, "train")["start_date"])

    def log(self, try_number: int = 1) -> str:
        return self.client.task_log(self.dag_id, self.run_id, "train", try_number)

    def clear(self) -> None:
        self.client.clear(self.dag_id, self.run_id, ["train"])

    def waits_for(self, *statuses: str, state: str = "deferred") -> None:
        """Wait until the jobs show these statuses and somebody watches the last one: the log shows his first look."""
        assert self.eventually(lambda: self.statuses() == [*statuses]), (self.statuses(), self.log())
        assert self.eventually(lambda: self.state() == state), (self.state(), self.log())
        looked = f"{self.jobs()[-1]['JobId']}: "
        assert self.eventually(lambda: looked in self.log(self.tries())), self.log()

    def succeeds_with(self, job_id: str) -> None:
        """Let the job succeed; the task must report that one."""
        self.cloud.control.set_status(job_id, "Succeeded")
        assert self.client.wait_for_run(self.dag_id, self.run_id, self.patience) == "success", self.log()
        assert self.client.xcom(self.dag_id, self.run_id, "train") == job_id


@pytest.fixture(scope="session")
def new_work(
    airflow_server: LocalAirflow, scripted_cloud: DlcEmulator, eventually: Callable[..., bool]
) -> Callable[[str, str], Work]:
    """Start a run, by DAG id and run id, of a DAG whose job is called `<dag id>-<run id>`."""

    def start(dag_id: str, run_id: str) -> Work:
        airflow_server.client.wait_for_dag(dag_id)
        return Work(airflow_server, scripted_cloud, eventually, dag_id, run_id)

    return start
