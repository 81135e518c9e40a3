import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from airflow_provider_pai_spot.cli.demo.airflow_processes import LocalAirflow
from airflow_provider_pai_spot.emulator import DlcEmulator

EXAMPLES = Path(__file__).parents[2] / "dags_examples"
CONF: dict[str, dict[str, Any]] = {"nightly_training": {"seconds_per_step": 0}}
DAG_FILES = {
    "nightly_training": "01_nightly_training.py",
    "submit_then_sense": "02_submit_then_sense.py",
    "mapped_sweep": "03_mapped_sweep.py",
}
PATIENCE_SECONDS = 300


@pytest.fixture(scope="module")
def runs(airflow_server: LocalAirflow) -> dict[str, str]:
    """All examples at the same time, DAG id -> run id."""
    pytest.importorskip("sklearn", reason="the examples train with scikit-learn: pip install '.[examples]'")
    for dag_id in DAG_FILES:
        airflow_server.client.wait_for_dag(dag_id)
    return {dag_id: airflow_server.client.trigger(dag_id, conf=CONF.get(dag_id)) for dag_id in DAG_FILES}


def load(file_name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file_name, EXAMPLES / file_name)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("dag_id", "file_name"), DAG_FILES.items(), ids=list(DAG_FILES))
def test_an_example_ends_as_its_file_says(
    dag_id: str, file_name: str, airflow_server: LocalAirflow, runs: dict[str, str]
) -> None:
    example, client, run_id = load(file_name), airflow_server.client, runs[dag_id]
    client.wait_for_run(dag_id, run_id, PATIENCE_SECONDS)
    tasks = client.task_instances(dag_id, run_id)
    logs = {
        (task["task_id"], task["map_index"]): client.task_log(
            dag_id, run_id, task["task_id"], task["try_number"], task["map_index"]
        )
        for task in tasks
    }
    assert {task["task_id"]: task["state"] for task in tasks} == example.EXPECTED_STATE, logs
    for (task_id, _), log in logs.items():
        for words in example.EXPECTED_LOG[task_id]:
            assert words in log


def test_the_examples_leave_no_job_running(
    airflow_server: LocalAirflow, runs: dict[str, str], cloud: DlcEmulator
) -> None:
    for dag_id, run_id in runs.items():
        airflow_server.client.wait_for_run(dag_id, run_id, PATIENCE_SECONDS)
    assert {job["Status"] for job in cloud.control.jobs()} == {"Succeeded"}


def test_no_dag_file_is_broken(airflow_server: LocalAirflow, runs: dict[str, str]) -> None:
    assert runs
    assert airflow_server.client.import_errors() == []
