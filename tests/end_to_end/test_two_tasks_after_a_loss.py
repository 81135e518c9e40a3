import time

import pytest

from airflow_provider_pai_spot.cli.demo.airflow_processes import LocalAirflow
from airflow_provider_pai_spot.emulator import DlcEmulator

DAG_ID = "submit_then_sense"
PATIENCE_SECONDS = 240


def job_of(run_id: str, cloud: DlcEmulator) -> str:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        for job in cloud.control.jobs():
            if job["Envs"]["AIRFLOW_CTX_DAG_RUN_ID"] == run_id:
                return str(job["JobId"])
        time.sleep(0.2)
    pytest.fail("No job was submitted.")


def test_the_sensor_is_retried_and_everything_downstream_sees_the_successor(
    airflow_server: LocalAirflow, cloud: DlcEmulator
) -> None:
    client = airflow_server.client
    client.wait_for_dag(DAG_ID)
    run_id = client.trigger(DAG_ID)
    lost = job_of(run_id, cloud)
    cloud.control.wait_for(lost, "Running", timeout=PATIENCE_SECONDS)
    cloud.control.revoke(lost)

    assert client.wait_for_run(DAG_ID, run_id, PATIENCE_SECONDS) == "success", client.task_log(DAG_ID, run_id, "wait")
    successor = client.xcom(DAG_ID, run_id, "submit")
    tries = {task["task_id"]: task["try_number"] for task in client.task_instances(DAG_ID, run_id)}
    assert tries == {"submit": 1, "wait": 2, "announce": 1}
    assert successor != lost
    assert cloud.control.job(successor)["Status"] == "Succeeded"
    assert f"finished: {successor}" in client.task_log(DAG_ID, run_id, "announce")
