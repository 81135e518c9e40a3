"""A try that dies leaves its job to the next one: every form of the task, with and without what was stored about it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_pai_spot.attempts.ledger import STORE_KEY
from airflow_provider_pai_spot.emulator import DlcEmulator
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator

FORMS: dict[str, dict[str, Any]] = {
    "deferrable": {},
    "in_worker": {"deferrable": False},
    "two_tasks": {"wait_for_completion": False},
}
DIES = ("submitted", "ended")
STORES = ("kept", "lost")
CELLS = {
    f"{form}-{dies}-{store}": {**arguments, "dies": dies, "store": store}
    for form, arguments in FORMS.items()
    for dies in DIES
    for store in STORES
}


class DiesOnce(SubmitSpotJobOperator):
    """
    Its first try dies; the next finds what is stored about it, or nothing.

    :param dies: `submitted`: once there is a job; `ended`: once its end, or its id, was acted upon.
    :param store: `kept` or `lost`.
    """

    def __init__(self, *, dies: str, store: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.dies, self.store = dies, store

    def execute(self, context: Any) -> Any:
        if self._is_first(context) and self.dies == "submitted":
            self._begin(context).jobs.begin()
            raise RuntimeError("the worker is gone")
        if not self._is_first(context) and self.store == "lost":
            context["task_state_store"].set(STORE_KEY, "")
        return self._unless_it_dies(context, super().execute(context))

    def execute_complete(self, context: Any, event: Mapping[str, Any]) -> Any:
        return self._unless_it_dies(context, super().execute_complete(context, event))

    def _unless_it_dies(self, context: Any, result: Any) -> Any:
        if self._is_first(context):
            raise RuntimeError("the worker is gone")
        return result

    def _is_first(self, context: Any) -> bool:
        return bool(context["ti"].try_number == 1)


@pytest.fixture(autouse=True)
def _named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only under a name that no other installation has are jobs known by their tags."""
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__NAMESPACE", "taking-over")


def new_dag() -> DAG:
    return DAG(f"dag_{uuid.uuid4().hex[:8]}", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC))


REQUEST: dict[str, Any] = {
    "image": "registry.example.com/train:1",
    "ecs_spec": "ecs.g7.xlarge",
    "spot_discount_limit": 0.6,
    "poll_interval": 0.1,
    "retries": 1,
    "retry_delay": timedelta(0),
}


def test_the_next_try_goes_on_with_the_one_job(emulator: DlcEmulator, run_dag: Any) -> None:
    with new_dag() as dag:
        for task_id, cell in CELLS.items():
            DiesOnce(task_id=task_id, user_command="python train.py", **REQUEST, **cell)
    run = run_dag(dag)
    assert run.task_states == dict.fromkeys(CELLS, "success")
    assert run.tries == dict.fromkeys(CELLS, 2)
    jobs = [(job["Envs"]["AIRFLOW_CTX_TASK_ID"], job["JobId"]) for job in emulator.control.jobs()]
    assert sorted(jobs) == sorted((task_id, run.xcom(task_id)) for task_id in CELLS)
    assert run.log.count("the state store knows no job, but DLC does") == len(CELLS) / 2


@pytest.mark.parametrize("store", STORES)
def test_each_mapped_task_goes_on_with_its_own_job(emulator: DlcEmulator, run_dag: Any, store: str) -> None:
    with new_dag() as dag:
        DiesOnce.partial(task_id="train", dies="submitted", store=store, **REQUEST).expand(
            user_command=["train 0", "train 1", "train 2"]
        )
    run = run_dag(dag)
    assert run.task_states == {f"train[{index}]": "success" for index in range(3)}
    jobs = {job["Envs"]["AIRFLOW_CTX_MAP_INDEX"]: job for job in emulator.control.jobs()}
    assert len(emulator.control.jobs()) == len(jobs) == 3
    for index in range(3):
        assert jobs[str(index)]["UserCommand"] == f"train {index}"
        assert run.xcom("train", map_index=index) == jobs[str(index)]["JobId"]


class Spoiled(SubmitSpotJobOperator):
    """A Variable in its bid's template changes while its job runs."""

    def execute_complete(self, context: Any, event: Mapping[str, Any]) -> Any:
        self.spot_discount_limit = 1.5
        return super().execute_complete(context, event)


def test_a_success_is_not_lost_to_a_bid_that_changed_meanwhile(emulator: DlcEmulator, run_dag: Any) -> None:
    with new_dag() as dag:
        Spoiled(task_id="train", user_command="python train.py", **REQUEST)
    run = run_dag(dag)
    assert (run.task_states, run.tries) == ({"train": "success"}, {"train": 1})
    assert [job["JobId"] for job in emulator.control.jobs()] == [run.xcom("train")]
