"""The sweep as the maintenance DAG's task runs it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_pai_spot.emulator import DlcEmulator
from airflow_provider_pai_spot.sweep.airflow_address import AirflowApiError
from airflow_provider_pai_spot.sweep.as_task import SweepIncomplete, sweep_as_task
from airflow_provider_pai_spot.sweep.sweeper import SweepRefused

EXAMPLE = Path(__file__).parents[2] / "dags_examples" / "06_sweep_orphans.py"
DAG, RUN = "nightly", "scheduled__2026-11-30T00:00:00+00:00"
SWEEP_DAG, SWEEP_RUN = "sweep_orphans", "scheduled__2026-11-30T22:00:00+00:00"
NAMESPACE = "airflow-prod"
Sweep = Callable[..., dict[str, Any]]


@pytest.fixture
def sweep(airflow: Any, cloud: DlcEmulator, clock: Any, monkeypatch: pytest.MonkeyPatch) -> Sweep:
    """Return a function that sweeps in a run that Airflow knows."""
    monkeypatch.setenv("AIRFLOW_CONN_PAI_DLC_DEFAULT", cloud.connection_uri())
    monkeypatch.setenv("AIRFLOW_CONN_AIRFLOW_API_DEFAULT", f'{{"conn_type": "http", "host": "{airflow.url}"}}')
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__NAMESPACE", NAMESPACE)
    airflow.run(SWEEP_DAG, SWEEP_RUN)

    def run(*, apply: bool, run_id: str = SWEEP_RUN) -> dict[str, Any]:
        context: Any = {"ti": SimpleNamespace(dag_id=SWEEP_DAG, run_id=run_id)}
        return sweep_as_task(context, apply=apply, clock=clock)

    return run


@pytest.fixture
def orphan(airflow: Any, cloud: DlcEmulator, submit: Callable[..., str]) -> str:
    job_id = submit()
    airflow.task(DAG, RUN, "train", "failed")
    cloud.control.advance(3600)
    return job_id


@pytest.mark.parametrize(("apply", "status"), [(True, "Stopped"), (False, "Running")], ids=["apply", "dry run"])
def test_orphans_are_stopped_if_the_param_says_so(
    cloud: DlcEmulator, sweep: Sweep, orphan: str, apply: bool, status: str
) -> None:
    report = sweep(apply=apply)
    assert (report["applied"], report["orphans"], report["jobs"][0]["job_id"]) == (apply, 1, orphan)
    assert cloud.control.job(orphan)["Status"] == status


def test_each_decision_is_one_line_in_the_task_s_log(  # noqa: PLR0917 - fixtures
    airflow: Any,
    cloud: DlcEmulator,
    sweep: Sweep,
    submit: Callable[..., str],
    orphan: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    healthy = submit("other")
    airflow.task(DAG, RUN, "other", "deferred")
    with caplog.at_level(logging.INFO, "airflow_provider_pai_spot.sweep"):
        sweep(apply=False)
    lines = [record.getMessage() for record in caplog.records]
    assert [sum(line.startswith(job_id) for line in lines) for job_id in (orphan, healthy)] == [1, 1]
    assert lines[-1] == "2 live jobs in namespace 'airflow-prod', 1 orphan. A dry run: nothing was stopped."


def test_another_airflow_than_its_own_is_not_believed(cloud: DlcEmulator, sweep: Sweep, orphan: str) -> None:
    """Staging may have the same DAGs and none of the runs: every job of production would be an orphan."""
    with pytest.raises(AirflowApiError, match="another Airflow"):
        sweep(apply=True, run_id="scheduled__of_production")
    assert cloud.control.job(orphan)["Status"] == "Running"


def test_an_airflow_that_was_silent_about_a_job_fails_the_task(
    airflow: Any, cloud: DlcEmulator, sweep: Sweep, orphan: str
) -> None:
    airflow.broken["/taskInstances/"] = (403, {"detail": "Forbidden"})
    with pytest.raises(SweepIncomplete, match="1 without an answer from Airflow"):
        sweep(apply=True)
    assert cloud.control.job(orphan)["Status"] == "Running"


def test_a_namespace_that_many_call_theirs_is_refused(
    sweep: Sweep, orphan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__NAMESPACE", "localhost:8080")
    with pytest.raises(SweepRefused):
        sweep(apply=True)


def test_the_maintenance_dag_only_lists_until_it_is_told_otherwise() -> None:
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(str(EXAMPLE))
    assert bag.import_errors == {}
    dag = bag.dags[SWEEP_DAG]
    assert dag.params["apply"] is False
    assert dag.task_ids == ["sweep"]
    assert dag.max_active_runs == 1
