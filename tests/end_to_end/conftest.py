"""One real Airflow for all tests of this folder, and two emulated clouds that it is connected to."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_pai_spot.cli.demo.airflow_processes import LocalAirflow
from airflow_provider_pai_spot.emulator import DlcEmulator

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "dags_examples"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.end_to_end)


@pytest.fixture(scope="session")
def cloud() -> Iterator[DlcEmulator]:
    """Behind `pai_dlc_default`: really runs commands."""
    with DlcEmulator(execute=True) as emulator:
        yield emulator


@pytest.fixture(scope="session")
def scripted_cloud() -> Iterator[DlcEmulator]:
    """Behind `pai_dlc_scripted`: jobs follow `control.plan`."""
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
    connections = {
        "pai_dlc_default": cloud.connection_uri(),
        "pai_dlc_scripted": scripted_cloud.connection_uri(),
    }
    with LocalAirflow(folder / "dags", folder / "home", connections=connections) as airflow:
        yield airflow
