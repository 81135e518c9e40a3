"""
Ask Airflow's public REST API how owners stand.

Only two answers can cost a job its life: a finished state, and a 404 in which Airflow itself names what it looked for.
Everything else (an error, a login page, a redirect, another program's 404) is `unknown`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

from airflow_provider_pai_spot.attempts.report import XCOM_JOB_ID
from airflow_provider_pai_spot.dlc.wire import mappings_of, text_of, time_of
from airflow_provider_pai_spot.sweep.airflow_address import AirflowAddress, AirflowApiError
from airflow_provider_pai_spot.sweep.http_json import Answer, JsonHttp, NoAnswer
from airflow_provider_pai_spot.sweep.owners import (
    OwnerRef,
    OwnerState,
    Presence,
    RunRef,
    TaskRef,
    gone,
    run_state,
    task_state,
    unknown,
)

_PAGE_SIZE: Final = 100
_MAX_PAGES: Final = 50
_FEW: Final = 3
"""So many task instances of one run are asked for one by one; of more the run's list is read."""
_NOT_FOUND: Final = 404
_GONE_DAG: Final = "its DAG"


class AirflowApi:
    """
    A client of the few routes that a sweep needs. Use as a context manager.

    :param address: where Airflow is, and who asks.
    """

    def __init__(self, address: AirflowAddress) -> None:
        self.address = address
        self._http = JsonHttp(address)
        self._is_the_right_one = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close idle connections."""
        self._http.close()

    def require_run(self, run: RunRef) -> None:
        """
        Make sure that this is the Airflow which has this very run: another one would know none of our jobs' owners.

        :raises AirflowApiError: it does not, or gave no usable answer.
        """
        try:
            if self._run(run) is not None:
                return
        except NoAnswer as error:
            raise AirflowApiError(f"Airflow at {self.address.base_url} gave no usable answer: {error}") from None
        raise AirflowApiError(
            f"Airflow at {self.address.base_url} does not know run {run.run_id!r} of DAG {run.dag_id!r}, which asks: "
            "it is another Airflow. Correct the host of the connection."
        )

    def owner_states(self, owners: Iterable[OwnerRef]) -> dict[OwnerRef, OwnerState]:
        """Return how each owner stands; never raises: whatever went wrong is the `unknown` of those it concerns."""
        states: dict[OwnerRef, OwnerState] = {}
        self._http.forgive()
        for run, members in _by_run(owners):
            listed = self._listed(run, members)
            for member in members:
                states[member] = listed.get(member) or self._state(member)
        return states if self._is_the_right_one else {owner: _doubted(state) for owner, state in states.items()}

    def held_job(self, task: TaskRef) -> str:
        """Return the job that a task instance waits for or submitted last; '' where Airflow does not say."""
        path = f"{_run_path(task.run)}/taskInstances/{_part(task.task_id)}/xcomEntries/{XCOM_JOB_ID}"
        try:
            answer = self._http.get(path, {"map_index": task.map_index, "deserialize": True})
        except NoAnswer:
            return ""
        return text_of(answer.body.get("value")) if answer.ok else ""

    # --- one owner ------------------------------------------------------------------------------------

    def _state(self, owner: OwnerRef) -> OwnerState:
        try:
            return self._task_state(owner) if isinstance(owner, TaskRef) else self._run_state(owner)
        except NoAnswer as error:
            return unknown(str(error))

    def _task_state(self, task: TaskRef) -> OwnerState:
        # With its map index, -1 included: without, a task that is mapped by now answers 404 for another reason.
        path = f"{_run_path(task.run)}/taskInstances/{_part(task.task_id)}/{task.map_index}"
        answer = self._http.get(path)
        if answer.ok:
            return self._read_task(task, answer.body)
        _require_not_found(answer, task.dag_id, task.run_id, task.task_id)
        state = self._run_state(task.run)
        return state if state.presence is Presence.GONE else gone("its task instance")

    def _run_state(self, run: RunRef) -> OwnerState:
        body = self._run(run)
        if body is not None:
            return run_state(_state_in(body), time_of(body.get("end_date")))
        answer = self._http.get(f"/dags/{_part(run.dag_id)}")
        if answer.ok:
            self._is_the_right_one = True
            return gone("its DAG run")
        _require_not_found(answer, run.dag_id)
        return gone(_GONE_DAG)

    def _run(self, run: RunRef) -> dict[str, Any] | None:
        answer = self._http.get(_run_path(run))
        if not answer.ok:
            _require_not_found(answer, run.dag_id, run.run_id)
            return None
        if (answer.body.get("dag_id"), answer.body.get("dag_run_id")) != (run.dag_id, run.run_id):
            raise NoAnswer(f"asked for run {run.run_id!r}, it answered with something else")
        self._is_the_right_one = True
        return answer.body

    def _read_task(self, task: TaskRef, body: Mapping[str, Any]) -> OwnerState:
        if _task_ref(body) != task:
            raise NoAnswer(f"asked for task instance {task.task_id!r}, it answered with something else")
        self._is_the_right_one = True
        return task_state(_state_in(body), time_of(body.get("end_date")))

    # --- many task instances of one run -----------------------------------------------------------------

    def _listed(self, run: RunRef, members: Iterable[OwnerRef]) -> dict[OwnerRef, OwnerState]:
        """Return those that the run's list shows; the others are asked for one by one, so {} is no harm."""
        wanted = {member for member in members if isinstance(member, TaskRef)}
        if len(wanted) <= _FEW:
            return {}
        states: dict[OwnerRef, OwnerState] = {}
        try:
            for item in self._task_instances(run):
                task = _task_ref(item)
                if task in wanted:
                    states[task] = self._read_task(task, item)
        except NoAnswer:
            return states
        return states

    def _task_instances(self, run: RunRef) -> Iterator[dict[str, Any]]:
        for page in range(_MAX_PAGES):
            query = {"limit": _PAGE_SIZE, "offset": page * _PAGE_SIZE}
            answer = self._http.get(f"{_run_path(run)}/taskInstances", query)
            items = mappings_of(answer.body.get("task_instances")) if answer.ok else []
            yield from items
            if len(items) < _PAGE_SIZE:
                return


def _by_run(owners: Iterable[OwnerRef]) -> list[tuple[RunRef, list[OwnerRef]]]:
    groups: dict[RunRef, list[OwnerRef]] = {}
    for owner in dict.fromkeys(owners):
        groups.setdefault(owner.run, []).append(owner)
    return list(groups.items())


def _require_not_found(answer: Answer, *names: str) -> None:
    """A 404 counts if it tells what was looked for: a proxy's, or that of another program, does not."""
    detail = text_of(answer.body.get("detail"))
    if answer.status != _NOT_FOUND or not all(name in detail for name in names):
        raise NoAnswer(answer.summary)


def _doubted(state: OwnerState) -> OwnerState:
    """Without a single DAG in common, the Airflow that was asked may be another one."""
    if state.presence is Presence.GONE and state.detail == _GONE_DAG:
        return unknown("it knows neither the job's DAG nor that of any other job, so it may be another Airflow")
    return state


def _state_in(body: Mapping[str, Any]) -> str | None:
    """None is a state; a missing or odd one is not."""
    state = body.get("state", False)
    if state is not None and not isinstance(state, str):
        raise NoAnswer("its answer shows no state")
    return state


def _task_ref(body: Mapping[str, Any]) -> TaskRef | None:
    map_index = body.get("map_index")
    dag_id, run_id, task_id = (text_of(body.get(key)) for key in ("dag_id", "dag_run_id", "task_id"))
    return TaskRef(dag_id, run_id, task_id, map_index) if isinstance(map_index, int) else None


def _run_path(run: RunRef) -> str:
    return f"/dags/{_part(run.dag_id)}/dagRuns/{_part(run.run_id)}"


def _part(name: str) -> str:
    return quote(name, safe="")
