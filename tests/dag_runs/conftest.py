"""Whole DAG runs in this process: `dag.test()` on a real metadata database, against the emulator over HTTP."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.emulator.lifecycle import Phases

QUICK = Phases(creating=0.05, queuing=0.1, env_preparing=0.05, stopping=0.05, restarting=0.05, bidding=0.1)


@dataclass
class Run:
    """One finished DAG run."""

    state: str
    task_states: dict[str, str]
    tries: dict[str, int]
    log: str
    xcom: Callable[..., Any]


@pytest.fixture(scope="session")
def metadata_database() -> None:
    """A migrated SQLite database in the tests' own Airflow home."""
    command = [sys.executable, "-m", "airflow", "db", "migrate"]
    subprocess.run(command, check=True, capture_output=True, env=dict(os.environ), timeout=300)


@pytest.fixture
def emulator() -> Iterator[DlcEmulator]:
    with DlcEmulator(phases=QUICK, default_plan=JobPlan(run_seconds=0.3)) as running:
        os.environ["AIRFLOW_CONN_PAI_DLC_DEFAULT"] = running.connection_uri()
        yield running
        del os.environ["AIRFLOW_CONN_PAI_DLC_DEFAULT"]


@pytest.fixture
def run_dag(metadata_database: None, capfd: pytest.CaptureFixture[str]) -> Callable[[Any], Run]:
    """Store the DAG as Airflow's DAG processor would, run it, and return what became of it."""

    def run(dag: Any) -> Run:
        _store(dag)
        capfd.readouterr()
        dag_run = dag.test(logical_date=datetime.now(UTC))
        captured = capfd.readouterr()
        return _read(dag_run, captured.out + captured.err)

    return run


@pytest.fixture
def meanwhile() -> Iterator[Callable[[Callable[[], object]], None]]:
    """Do something to a job while the DAG runs; an error in it fails the test."""
    threads: list[threading.Thread] = []
    errors: list[BaseException] = []

    def start(action: Callable[[], object]) -> None:
        def guarded() -> None:
            try:
                action()
            except BaseException as error:
                errors.append(error)
                raise

        thread = threading.Thread(target=guarded, daemon=True)
        threads.append(thread)
        thread.start()

    yield start
    for thread in threads:
        thread.join(30)
    assert not errors


def _store(dag: Any) -> None:
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.collection import update_dag_parsing_results_in_db
    from airflow.serialization.serialized_objects import LazyDeserializedDAG
    from airflow.utils.session import create_session

    file = Path(os.environ["AIRFLOW__CORE__DAGS_FOLDER"]) / f"{dag.dag_id}.py"
    file.write_text("# this DAG exists in the test process only\n")
    dag.fileloc, dag.relative_fileloc = str(file), file.name
    errors: dict[tuple[str, str], str] = {}
    with create_session() as session:
        DagBundlesManager().sync_bundles_to_db(session=session)
        session.commit()
        update_dag_parsing_results_in_db(
            "dags-folder", None, [LazyDeserializedDAG.from_dag(dag)], errors, None, set(), session=session
        )
    assert not errors, errors


def _read(dag_run: Any, log: str) -> Run:
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    with create_session() as session:
        instances = {_name(ti): ti for ti in dag_run.get_task_instances(session=session)}
        states = {name: str(ti.state) for name, ti in instances.items()}
        tries = {name: ti.try_number for name, ti in instances.items()}

    def xcom(task_id: str, key: str = "return_value", map_index: int = -1) -> Any:
        with create_session() as session:
            query = XComModel.get_many(
                run_id=dag_run.run_id,
                key=key,
                dag_ids=[dag_run.dag_id],
                task_ids=[task_id],
                map_indexes=[map_index],
            )
            row = session.scalars(query).first() if not hasattr(query, "first") else query.first()
            return None if row is None else XComModel.deserialize_value(row)

    return Run(str(dag_run.state), states, tries, log, xcom)


def _name(ti: Any) -> str:
    return ti.task_id if ti.map_index < 0 else f"{ti.task_id}[{ti.map_index}]"


@pytest.fixture
def stop_by_hand(emulator: DlcEmulator) -> Callable[[str], None]:
    """Stop a job the way the console does: by a caller of its own."""
    from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

    return lambda job_id: PaiDlcHook().stop_job(job_id) and None
