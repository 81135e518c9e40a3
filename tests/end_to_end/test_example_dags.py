import importlib.util
import json
import time
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from airflow.sdk import Connection

from airflow_provider_pai_spot.cli.demo.airflow_processes import LocalAirflow
from airflow_provider_pai_spot.emulator import DlcEmulator
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

EXAMPLES = Path(__file__).parents[2] / "dags_examples"
CONF: dict[str, dict[str, Any]] = {"nightly_training": {"seconds_per_step": 0}}
DAG_FILES = {
    "nightly_training": "01_nightly_training.py",
    "submit_then_sense": "02_submit_then_sense.py",
    "mapped_sweep": "03_mapped_sweep.py",
    "checkpoint_on_sigterm": "04_checkpoint_on_sigterm.py",
    "lingjun_aimaster": "05_lingjun_aimaster.py",
}
LOSE_THEIR_MACHINE = ("checkpoint_on_sigterm", "lingjun_aimaster")
STEPS_BEFORE_THE_LOSS = 3
PATIENCE_SECONDS = 300


@pytest.fixture(scope="module")
def runs(airflow_server: LocalAirflow, cloud: DlcEmulator) -> dict[str, str]:
    """All examples at the same time, DAG id -> run id; those about losses have had theirs."""
    pytest.importorskip("sklearn", reason="the examples train with scikit-learn: pip install '.[examples]'")
    for dag_id in DAG_FILES:
        airflow_server.client.wait_for_dag(dag_id)
    started = {dag_id: airflow_server.client.trigger(dag_id, conf=CONF.get(dag_id)) for dag_id in DAG_FILES}
    take_machines_back(cloud, {started[dag_id] for dag_id in LOSE_THEIR_MACHINE})
    return started


def take_machines_back(cloud: DlcEmulator, run_ids: set[str]) -> None:
    """Let each run's first job lose its machine once its program has made a few steps."""
    hook, deadline = hook_of(cloud), time.monotonic() + PATIENCE_SECONDS
    while run_ids:
        for job in [one for one in cloud.control.jobs() if run_of(one) in run_ids]:
            if job["Status"] == "Running" and len(steps_of(hook, [job])) >= STEPS_BEFORE_THE_LOSS:
                cloud.control.revoke(job["JobId"])
                run_ids = run_ids - {run_of(job)}
        assert time.monotonic() < deadline, f"no job of {run_ids} has made a step"
        time.sleep(0.2)


def hook_of(cloud: DlcEmulator) -> PaiDlcHook:
    return PaiDlcHook.from_connection(Connection.from_uri(cloud.connection_uri(), conn_id="pai_dlc_default"))


def run_of(job: dict[str, Any]) -> str:
    return str(job["Envs"]["AIRFLOW_CTX_DAG_RUN_ID"])


def steps_of(hook: PaiDlcHook, jobs: Iterable[dict[str, Any]]) -> list[int]:
    """Return the steps that all incarnations of the jobs' workers have made, in their order."""
    pods = [(job["JobId"], pod) for job in jobs for pod in job["Pods"] if pod["Type"] != "aimaster"]
    lives = [(job_id, pod["PodId"], life["PodUid"]) for job_id, pod in pods for life in (*pod["HistoryPods"], pod)]
    lines = [line for job_id, pod_id, uid in lives for line in hook.get_pod_logs(job_id, pod_id, pod_uid=uid)]
    return [json.loads(line.split("PAI_SPOT_PROGRESS", 1)[1])["step"] for line in lines if "PAI_SPOT_PROGRESS" in line]


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
        *earlier, last = [job["Status"] for job in cloud.control.jobs() if run_of(job) == run_id]
        assert last == "Succeeded"
        assert set(earlier) <= {"Failed", "Succeeded"}


@pytest.mark.parametrize("dag_id", LOSE_THEIR_MACHINE)
def test_no_step_is_made_twice_although_the_machine_is_lost(
    dag_id: str, airflow_server: LocalAirflow, runs: dict[str, str], cloud: DlcEmulator
) -> None:
    airflow_server.client.wait_for_run(dag_id, runs[dag_id], PATIENCE_SECONDS)
    steps = steps_of(hook_of(cloud), [job for job in cloud.control.jobs() if run_of(job) == runs[dag_id]])
    assert len(steps) > STEPS_BEFORE_THE_LOSS
    assert steps == sorted(set(steps))


def test_a_restart_by_dlc_is_counted_and_nothing_is_submitted_for_it(
    airflow_server: LocalAirflow, runs: dict[str, str], cloud: DlcEmulator
) -> None:
    client, run_id = airflow_server.client, runs["lingjun_aimaster"]
    client.wait_for_run("lingjun_aimaster", run_id, PATIENCE_SECONDS)
    outcome = client.xcom("lingjun_aimaster", run_id, "train", "outcome")
    assert (outcome["verdict"], outcome["restarts"]) == ("succeeded", 1)
    assert [run_of(job) for job in cloud.control.jobs()].count(run_id) == 1


def test_no_dag_file_is_broken(airflow_server: LocalAirflow, runs: dict[str, str]) -> None:
    assert runs
    assert airflow_server.client.import_errors() == []
