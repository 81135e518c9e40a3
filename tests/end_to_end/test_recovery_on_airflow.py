"""The two budgets on a real Airflow, and a market that takes six of ten machines in the same minute."""

from __future__ import annotations

import ast
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_pai_spot.cli.demo.airflow_processes import LocalAirflow
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan

HERE = Path(__file__).parent
PATIENCE_SECONDS = 600
NEVER_RUNS = JobPlan(pending_seconds=3600)
PLANS = {
    "lost": JobPlan(run_seconds=60, revoke_after=0.2),
    "failed": JobPlan(run_seconds=0.2, exit_code=1),
    "unknown": JobPlan(run_seconds=0.2, exit_code=143),
    "waiting": NEVER_RUNS,
}
CAME_TO = {
    ("lost", 0, 0): (1, 1),
    ("lost", 0, 2): (3, 1),
    ("lost", 1, 0): (2, 2),
    ("lost", 1, 1): (4, 2),
    ("failed", 0, 3): (1, 1),
    ("failed", 1, 3): (2, 2),
    ("unknown", 1, 1): (2, 2),
    ("waiting", 1, 1): (2, 2),
}
"""(how every job ends, retries, max_revocations) -> (jobs, tries)."""


@pytest.fixture
def market(scripted_cloud: DlcEmulator) -> Iterator[DlcEmulator]:
    """The scripted cloud, left without plans afterwards."""
    yield scripted_cloud
    scripted_cloud.control.clear_plans()


def jobs_of(cloud: DlcEmulator, run_id: str) -> list[dict[str, Any]]:
    return [job for job in cloud.control.jobs() if job["Envs"]["AIRFLOW_CTX_DAG_RUN_ID"] == run_id]


def wait_until(condition: Callable[[], bool], what: str) -> None:
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > give_up_at:
            pytest.fail(f"{what}: not within {PATIENCE_SECONDS} s")
        time.sleep(0.5)


def cells_of_the_dag() -> tuple[tuple[str, int, int], ...]:
    [value] = re.findall(r"^CELLS = (\(.*?^\))", (HERE / "dags" / "recovery.py").read_text(), re.MULTILINE | re.DOTALL)
    cells: tuple[tuple[str, int, int], ...] = ast.literal_eval(value)
    return cells


def test_eight_cells_come_to_the_jobs_and_tries_that_the_table_says(
    airflow_server: LocalAirflow, market: DlcEmulator
) -> None:
    assert cells_of_the_dag() == tuple(CAME_TO)
    for end, plan in PLANS.items():
        market.control.plan(plan, match={"display_name": f"cell-{end}"}, times=None)
    client = airflow_server.client
    client.wait_for_dag("recovery_cells")
    run_id = client.trigger("recovery_cells")
    assert client.wait_for_run("recovery_cells", run_id, PATIENCE_SECONDS) == "failed"
    jobs = Counter(job["Envs"]["AIRFLOW_CTX_TASK_ID"] for job in jobs_of(market, run_id))
    tries = {one["task_id"]: one["try_number"] for one in client.task_instances("recovery_cells", run_id)}
    came = {}
    for cell in CAME_TO:
        task_id = "-".join(map(str, cell))
        came[cell] = (jobs[task_id], tries[task_id])
    assert came == CAME_TO


def test_six_of_ten_trainings_lose_capacity_at_once_and_exactly_six_are_resubmitted(
    airflow_server: LocalAirflow, market: DlcEmulator
) -> None:
    market.control.plan(JobPlan(run_seconds=None), times=10)
    client = airflow_server.client
    client.wait_for_dag("ten_trainings")
    run_id = client.trigger("ten_trainings")
    wait_until(lambda: _statuses(market, run_id) == {"Running": 10}, "ten jobs run")
    first = {job["JobId"] for job in jobs_of(market, run_id)}
    market.control.set_price("ecs.gn6i-c4g1.xlarge", 0.7)
    wait_until(lambda: len(jobs_of(market, run_id)) >= 16, "the successors are there")
    for job in jobs_of(market, run_id):
        if job["JobId"] in first and job["Status"] == "Running":
            market.control.set_status(job["JobId"], "Succeeded")
    assert client.wait_for_run("ten_trainings", run_id, PATIENCE_SECONDS) == "success"
    jobs = jobs_of(market, run_id)
    lost = [job["Envs"]["AIRFLOW_CTX_MAP_INDEX"] for job in jobs if job["Status"] == "Failed"]
    again = [job["Envs"]["AIRFLOW_CTX_MAP_INDEX"] for job in jobs if job["JobId"] not in first]
    assert len(jobs) == 16
    assert sorted(lost) == sorted(again) == [str(index) for index in range(6)]
    assert {one["try_number"] for one in client.task_instances("ten_trainings", run_id)} == {1}


def _statuses(cloud: DlcEmulator, run_id: str) -> Counter[str]:
    return Counter(job["Status"] for job in jobs_of(cloud, run_id))
