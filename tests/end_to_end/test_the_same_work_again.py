"""
The same work asked for again, on a real Airflow: when that is one job, and when it is another.

Everything runs under both kinds of namespace: `localhost`, where jobs are known by the task's own store only, and a
name, under which DLC's tags are believed too.
"""

from __future__ import annotations

import os
import signal
from typing import Any

import httpx
import pytest

NAMESPACES = ("localhost", "named")
FORMS = ("held", "held_in_worker")


@pytest.fixture(scope="module")
def held(new_work: Any) -> dict[tuple[str, str], Any]:
    """Runs that go on beside the other tests until they are asked for."""
    return {
        (namespace, form): new_work(f"same_work_{namespace}_{form}", "consumed")
        for namespace in NAMESPACES
        for form in FORMS
    }


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_a_run_that_is_made_anew_gets_a_new_job_and_never_last_week_s_success(
    new_work: Any, held: Any, namespace: str
) -> None:
    work = new_work(f"same_work_{namespace}", "anew")
    work.waits_for("Running")
    work.succeeds_with(work.jobs()[0]["JobId"])
    work.client.delete_run(work.dag_id, work.run_id)
    work.start()
    work.waits_for("Succeeded", "Running")
    work.succeeds_with(work.jobs()[1]["JobId"])
    assert len({job["Settings"]["Tags"]["airflow-ti"] for job in work.jobs()}) == 1
    assert len({job["Settings"]["Tags"]["airflow-ledger"] for job in work.jobs()}) == 2


@pytest.mark.parametrize(("namespace", "older"), [("localhost", "Running"), ("named", "Stopped")])
def test_a_job_that_a_deleted_run_left_running_is_stopped_first_if_it_can_be_told_to_be_ours(
    new_work: Any, eventually: Any, namespace: str, older: str
) -> None:
    work = new_work(f"same_work_{namespace}_left_alone", "left")
    work.waits_for("Running")
    work.client.set_run_state(work.dag_id, work.run_id, "failed")
    assert eventually(lambda: work.state() == "failed")
    work.client.delete_run(work.dag_id, work.run_id)
    work.start()
    work.waits_for(older, "Running")
    work.succeeds_with(work.jobs()[1]["JobId"])


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_a_task_that_is_marked_failed_and_then_cleared_gets_a_new_job(
    new_work: Any, eventually: Any, namespace: str
) -> None:
    work = new_work(f"same_work_{namespace}", "marked")
    work.waits_for("Running")
    work.client.set_task_state(work.dag_id, work.run_id, "train", "failed")
    assert eventually(lambda: work.statuses() == ["Stopped"]), work.log()
    work.clear()
    work.waits_for("Stopped", "Running")
    work.succeeds_with(work.jobs()[1]["JobId"])


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_a_success_that_a_person_clears_is_another_job_in_another_checkpoint_folder(
    new_work: Any, namespace: str
) -> None:
    work = new_work(f"same_work_{namespace}", "once-more")
    work.waits_for("Running")
    work.succeeds_with(work.jobs()[0]["JobId"])
    work.clear()
    work.waits_for("Succeeded", "Running")
    work.succeeds_with(work.jobs()[1]["JobId"])


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_clearing_a_waiting_task_whose_command_was_edited_replaces_the_job_and_says_what_differs(
    new_work: Any, namespace: str
) -> None:
    work = new_work(f"same_work_{namespace}", "edited")
    work.waits_for("Running")
    variable = {"key": f"command_of_{work.display_name}", "value": "python train.py --lr 0.1"}
    url = f"{work.airflow.base_url}/api/v2/variables"
    httpx.post(url, json=variable, trust_env=False, timeout=60).raise_for_status()
    work.clear()
    work.waits_for("Stopped", "Running")
    assert [job["UserCommand"] for job in work.jobs()] == ["python train.py", "python train.py --lr 0.1"]
    assert "the task now asks for another job (differs in: UserCommand)" in work.log(2)
    work.succeeds_with(work.jobs()[1]["JobId"])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("namespace", NAMESPACES)
def test_a_success_that_airflow_never_heard_of_is_told_again_without_a_second_job(
    held: Any, eventually: Any, namespace: str, form: str
) -> None:
    work = held[namespace, form]
    assert eventually(lambda: work.statuses() == ["Running"]), work.log()
    [job] = work.jobs()
    work.cloud.control.set_status(job["JobId"], "Succeeded")
    process = work.airflow.home.parent / "held" / f"{work.dag_id}-{work.run_id}"
    assert eventually(process.exists), work.log()
    assert f"succeeded: {job['JobId']}" in work.log()
    os.kill(int(process.read_text()), signal.SIGKILL)
    assert work.client.wait_for_run(work.dag_id, work.run_id, work.patience) == "success", work.log(2)
    assert [one["JobId"] for one in work.jobs()] == [job["JobId"]]
    assert work.client.task_instance(work.dag_id, work.run_id, "train")["try_number"] == 2
    assert work.client.xcom(work.dag_id, work.run_id, "train") == job["JobId"]
