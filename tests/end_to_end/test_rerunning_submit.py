"""The README's recipe: clear the submit task and its sensor through Airflow's API, and what then becomes of the job."""

from __future__ import annotations

import json
import re
import shlex
import uuid
from pathlib import Path
from typing import Any

from airflow_provider_pai_spot.cli.demo.airflow_processes import LocalAirflow
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan

README = Path(__file__).parents[2] / "README.md"
PATIENCE_SECONDS = 240


def recipe() -> tuple[str, dict[str, Any]]:
    """Return path and body of the call that the page shows."""
    [command] = re.findall(r"^\$ (curl .*?[^\\])$", README.read_text(), re.MULTILINE | re.DOTALL)
    words = shlex.split(command.replace("\\\n", " "))
    [address] = [word for word in words if "/api/v2" in word]
    return "/api/v2" + address.split("/api/v2", 1)[1], json.loads(words[words.index("-d") + 1])


def clear_as_the_page_says(airflow: LocalAirflow, dag_id: str, run_id: str) -> None:
    path, body = recipe()
    assert path.startswith("/api/v2/dags/two_tasks/")
    own_path = path.removeprefix("/api/v2").replace("/two_tasks/", f"/{dag_id}/")
    airflow.client._call("POST", own_path, repeatable=True, json=body | {"dag_run_id": run_id})


def jobs_of(run_id: str, cloud: DlcEmulator) -> list[dict[str, Any]]:
    return [job for job in cloud.control.jobs() if job["DisplayName"] == run_id]


def started(airflow: LocalAirflow, dag_id: str, cloud: DlcEmulator, *plans: JobPlan) -> str:
    """Start a run whose jobs follow these plans, and let it fail."""
    run_id = f"rerun-{uuid.uuid4().hex[:8]}"
    for plan in plans:
        cloud.control.plan(plan, match={"display_name": run_id})
    airflow.client.wait_for_dag(dag_id)
    airflow.client.trigger(dag_id, run_id=run_id)
    assert airflow.client.wait_for_run(dag_id, run_id, PATIENCE_SECONDS) == "failed"
    return run_id


def test_after_a_loss_submit_submits_again_in_the_same_checkpoint_folder(
    airflow_server: LocalAirflow, scripted_cloud: DlcEmulator
) -> None:
    dag_id, client = "rerun_after_a_loss", airflow_server.client
    lost, good = JobPlan(run_seconds=None, revoke_after=1), JobPlan(run_seconds=1)
    run_id = started(airflow_server, dag_id, scripted_cloud, lost, good)
    clear_as_the_page_says(airflow_server, dag_id, run_id)
    assert client.wait_for_run(dag_id, run_id, PATIENCE_SECONDS) == "success"
    first, second = jobs_of(run_id, scripted_cloud)
    assert (first["Status"], second["Status"]) == ("Failed", "Succeeded")
    assert client.xcom(dag_id, run_id, "submit") == client.xcom(dag_id, run_id, "wait") == second["JobId"]
    assert {job["Envs"]["PAI_SPOT_CHECKPOINT_DIR"] for job in (first, second)} == {
        first["Envs"]["PAI_SPOT_CHECKPOINT_DIR"]
    }
    assert [job["Envs"]["PAI_SPOT_ATTEMPT"] for job in (first, second)] == ["0", "1"]
    assert second["Envs"]["PAI_SPOT_RESUME"] == "1"


def test_a_job_that_is_still_alive_is_taken_over(airflow_server: LocalAirflow, scripted_cloud: DlcEmulator) -> None:
    dag_id, client = "rerun_beside_a_live_job", airflow_server.client
    run_id = started(airflow_server, dag_id, scripted_cloud, JobPlan(run_seconds=None))
    [job] = jobs_of(run_id, scripted_cloud)
    assert job["Status"] == "Running"
    clear_as_the_page_says(airflow_server, dag_id, run_id)
    client.wait_for_task(dag_id, run_id, "submit", {"success"}, timeout=PATIENCE_SECONDS)
    scripted_cloud.control.set_status(job["JobId"], "Succeeded")
    assert client.wait_for_run(dag_id, run_id, PATIENCE_SECONDS) == "success"
    assert [one["JobId"] for one in jobs_of(run_id, scripted_cloud)] == [job["JobId"]]
    assert f"re-attached to {job['JobId']}" in client.task_log(dag_id, run_id, "submit", try_number=2)
