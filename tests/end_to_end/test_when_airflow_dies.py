"""
Airflow goes away, in part or as a whole, while DLC goes on: what it says when it is back, and what nobody sends.

Last in its folder, because it leaves the one Airflow of all these tests restarted.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_pai_spot.cli.demo.airflow_processes import LocalAirflow
from airflow_provider_pai_spot.emulator import DlcEmulator

COMPONENTS = ("scheduler", "triggerer", "dag-processor", "api-server")
BELIEVED_ALIVE_SECONDS = 30
"""How long after its last heartbeat a new scheduler takes an old one for alive, and leaves its tasks to it."""

END_OF_JOB: dict[str, Callable[[DlcEmulator, str], None]] = {
    "succeeds": lambda cloud, job_id: cloud.control.set_status(job_id, "Succeeded"),
    "fails": lambda cloud, job_id: cloud.control.set_status(job_id, "Failed"),
    "is revoked": lambda cloud, job_id: cloud.control.revoke(job_id),
}
# how a job ends -> (the jobs' statuses when the next one runs, the try it runs in); a success has no next one
GOES_ON = {"fails": (["Failed", "Running"], 2), "is revoked": (["Failed", "Running"], 1)}


def test_a_process_whose_supervisor_died_sends_no_second_createjob(
    airflow_server: LocalAirflow, scripted_cloud: DlcEmulator, new_work: Any, eventually: Any
) -> None:
    """Airflow may begin another try by then; a process that cannot note what it sends must not send."""

    def sent() -> int:
        return int(scripted_cloud.control.requests().get("CreateJob", 0))

    airflow_server.client.wait_for_dag("same_work_given_up")
    before = sent()
    scripted_cloud.control.fault("CreateJob", "throttle", times=None, retry_after=20_000)
    try:
        work = new_work("same_work_given_up", "orphaned")
        assert eventually(lambda: sent() == before + 1), work.log()
        note = airflow_server.home.parent / "held" / f"{work.dag_id}-{work.run_id}"
        os.kill(int(note.read_text()), signal.SIGKILL)
        end = note.with_name(f"{note.name}.end")
        assert eventually(end.exists)
        assert "_store_intent" in end.read_text()
        assert (sent(), work.jobs()) == (before + 1, [])
    finally:
        scripted_cloud.control.clear_faults()
    work.client.set_task_state(work.dag_id, work.run_id, "train", "failed")


@pytest.fixture(scope="module")
def outlived(airflow_server: LocalAirflow, scripted_cloud: DlcEmulator, new_work: Any) -> dict[tuple[str, str], Any]:
    """Works whose jobs end, each in its way, while no process of Airflow is alive."""
    cells = {(end, "same_work_named") for end in END_OF_JOB} | {("succeeds", "same_work_named_in_worker")}
    works = {(end, dag_id): new_work(dag_id, end.replace(" ", "_")) for end, dag_id in sorted(cells)}
    for (_, dag_id), work in works.items():
        work.waits_for("Running", state="running" if dag_id.endswith("in_worker") else "deferred")
        work.began = work.start_date()
    for name in COMPONENTS:
        airflow_server.kill_component(name)
    for (end, _), work in works.items():
        END_OF_JOB[end](scripted_cloud, work.jobs()[0]["JobId"])
    time.sleep(BELIEVED_ALIVE_SECONDS + 1)
    airflow_server.start()
    return works


@pytest.mark.parametrize("dag_id", ["same_work_named", "same_work_named_in_worker"])
def test_a_success_while_nobody_was_alive_is_a_success(outlived: Any, dag_id: str) -> None:
    work = outlived["succeeds", dag_id]
    assert work.client.wait_for_run(work.dag_id, work.run_id, work.patience) == "success", work.log()
    assert work.statuses() == ["Succeeded"]
    assert work.client.xcom(work.dag_id, work.run_id, "train") == work.jobs()[0]["JobId"]


@pytest.mark.parametrize("end", GOES_ON)
def test_another_end_while_nobody_was_alive_is_paid_from_its_own_budget(outlived: Any, end: str) -> None:
    work = outlived[end, "same_work_named"]
    statuses, tries = GOES_ON[end]
    work.waits_for(*statuses)
    assert work.tries() == tries
    assert (work.start_date() == work.began) is (tries == 1)  # what the limits of a try count from
    work.succeeds_with(work.jobs()[1]["JobId"])
    verdicts = [one["verdict"] for one in work.client.xcom(work.dag_id, work.run_id, "train", "attempts")]
    assert verdicts == ["revoked" if end == "is revoked" else "failed", "succeeded"]
