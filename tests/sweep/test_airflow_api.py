from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from airflow.sdk import Connection

from airflow_provider_pai_spot.sweep.airflow_address import AirflowAddress, AirflowApiError
from airflow_provider_pai_spot.sweep.airflow_api import AirflowApi
from airflow_provider_pai_spot.sweep.owners import OwnerState, Presence, RunRef, TaskRef, gone, run_state, task_state

DAG, RUN_ID = "nightly", "scheduled__2026-11-30T00:00:00+00:00"
RUN = RunRef(DAG, RUN_ID)
TASK = TaskRef(DAG, RUN_ID, "train")
ENDED, ENDED_AT = "2026-11-30T22:00:00.5Z", datetime(2026, 11, 30, 22, 0, 0, 500_000, tzinfo=UTC)


def of(api: AirflowApi, owner: RunRef | TaskRef) -> OwnerState:
    return api.owner_states([owner])[owner]


@pytest.mark.parametrize("state", [None, "deferred", "queued", "up_for_retry", "running"])
def test_a_task_instance_that_is_under_way(airflow: Any, api: AirflowApi, state: str | None) -> None:
    airflow.task(DAG, RUN_ID, "train", state)
    assert of(api, TASK) == task_state(state)


def test_a_finished_task_instance_and_when_it_ended(airflow: Any, api: AirflowApi) -> None:
    airflow.task(DAG, RUN_ID, "train", "failed", end_date=ENDED)
    assert of(api, TASK) == task_state("failed", ENDED_AT)


def test_a_finished_run_and_when_it_ended(airflow: Any, api: AirflowApi) -> None:
    airflow.run(DAG, RUN_ID, "success", ENDED)
    assert of(api, RUN) == run_state("success", ENDED_AT)


def test_what_exactly_is_gone(airflow: Any, api: AirflowApi) -> None:
    other = RunRef("deleted_dag", "manual__1")
    elsewhere = TaskRef(DAG, "manual__2", "train")
    assert api.owner_states([TASK, elsewhere, other]) == {
        TASK: gone("its task instance"),
        elsewhere: gone("its DAG run"),
        other: gone("its DAG"),
    }


def test_a_mapped_task_instance_is_not_mistaken_for_its_sibling(airflow: Any, api: AirflowApi) -> None:
    airflow.task(DAG, RUN_ID, "train", "running", map_index=0)
    airflow.task(DAG, RUN_ID, "train", "failed", map_index=1)
    refs = [TaskRef(DAG, RUN_ID, "train", index) for index in (0, 1, 2)]
    presences = [api.owner_states(refs)[ref].presence for ref in refs]
    assert presences == [Presence.ALIVE, Presence.FINISHED, Presence.GONE]
    assert of(api, TASK).presence is Presence.GONE


def test_many_task_instances_of_a_run_are_read_from_its_list(airflow: Any, api: AirflowApi) -> None:
    for index in range(250):
        airflow.task(DAG, RUN_ID, "train", "running", map_index=index)
    refs = [TaskRef(DAG, RUN_ID, "train", index) for index in range(251)]
    states = api.owner_states(refs)
    assert {states[ref].presence for ref in refs[:-1]} == {Presence.ALIVE}
    assert states[refs[-1]].presence is Presence.GONE, "one that the list does not show is asked for by itself"
    assert len(airflow.requests) == 3 + 2


def test_a_list_that_cannot_be_read_costs_no_job_its_life(airflow: Any, api: AirflowApi) -> None:
    refs = [TaskRef(DAG, RUN_ID, "train", index) for index in range(5)]
    for ref in refs:
        airflow.task(DAG, RUN_ID, "train", "running", map_index=ref.map_index)
    airflow.broken["/taskInstances"] = (503, {"detail": "busy"})
    assert {state.presence for state in api.owner_states(refs).values()} == {Presence.UNKNOWN}


@pytest.mark.parametrize(
    "broken",
    [
        (500, {"detail": "Internal Server Error"}),
        (503, "<html>busy</html>"),
        (403, {"detail": "Forbidden"}),
        (401, {"detail": "Not authenticated"}),
        (302, ""),
        (200, "<html>please log in</html>"),
        (200, []),
        (200, {}),
        (200, {"dag_id": "another", "dag_run_id": "one", "task_id": "train", "map_index": -1, "state": "failed"}),
        (200, {"dag_id": DAG, "dag_run_id": RUN_ID, "task_id": "train", "map_index": -1}),
        (200, {"dag_id": DAG, "dag_run_id": RUN_ID, "task_id": "train", "map_index": -1, "state": "hibernating"}),
        (404, {"detail": "Not Found"}),
        (404, "<html>no such page</html>"),
        (404, {}),
    ],
    ids=lambda answer: f"{answer[0]} {answer[1]}"[:60],
)
def test_anything_but_a_clear_answer_is_unknown(airflow: Any, api: AirflowApi, broken: tuple[int, Any]) -> None:
    airflow.broken["/dagRuns/"] = broken
    states = api.owner_states([TASK, RUN])
    assert {state.presence for state in states.values()} == {Presence.UNKNOWN}


def test_nobody_who_answers_is_unknown_and_not_asked_again_and_again(fake_airflow_module: Any) -> None:
    with fake_airflow_module.FakeAirflow() as airflow:
        address = AirflowAddress(base_url=airflow.url)
    owners = [TaskRef(DAG, f"manual__{number}", "train") for number in range(50)]
    with AirflowApi(address) as api:
        states = api.owner_states(owners)
    assert {state.presence for state in states.values()} == {Presence.UNKNOWN}
    assert all("ConnectError" in state.detail for state in states.values())


def test_an_airflow_that_was_silent_is_asked_again_at_the_next_look(airflow: Any, api: AirflowApi) -> None:
    airflow.task(DAG, RUN_ID, "train", "running")
    airflow.broken["/dagRuns/"] = (401, {"detail": "not yet"})
    assert of(api, TASK).presence is Presence.UNKNOWN
    airflow.broken.clear()
    assert of(api, TASK).presence is Presence.ALIVE


def test_an_airflow_that_knows_none_of_the_dags_may_be_another_one(airflow: Any, api: AirflowApi) -> None:
    strangers = [RunRef(f"dag_{number}", "manual__1") for number in range(3)]
    states = api.owner_states(strangers)
    assert {state.presence for state in states.values()} == {Presence.UNKNOWN}
    assert "another Airflow" in states[strangers[0]].detail


# --- the run that asks ----------------------------------------------------------------------------------------


def test_a_task_that_asks_makes_sure_that_it_is_known(airflow: Any, api: AirflowApi) -> None:
    api.require_run(RUN)
    with pytest.raises(AirflowApiError, match="another Airflow"):
        api.require_run(RunRef(DAG, "manual__2"))


def test_once_the_asking_run_is_known_a_deleted_dag_counts(airflow: Any, api: AirflowApi) -> None:
    api.require_run(RUN)
    assert of(api, RunRef("deleted_dag", "manual__1")) == gone("its DAG")


# --- which job a task instance waits for ------------------------------------------------------------------------


def test_the_job_that_a_task_instance_waits_for(airflow: Any, api: AirflowApi) -> None:
    airflow.xcoms[DAG, RUN_ID, "train", 3] = "dlc3"
    assert api.held_job(TaskRef(DAG, RUN_ID, "train", 3)) == "dlc3"
    assert api.held_job(TASK) == ""


def test_no_answer_names_no_job(airflow: Any, api: AirflowApi) -> None:
    airflow.broken["/xcomEntries/"] = (500, "<html>")
    assert api.held_job(TASK) == ""


# --- who asks -------------------------------------------------------------------------------------------------


@pytest.fixture
def locked(fake_airflow_module: Any) -> Any:
    with fake_airflow_module.FakeAirflow(needs_login=True) as running:
        running.task(DAG, RUN_ID, "train", "running")
        yield running


@pytest.fixture
def asked(locked: Any) -> Callable[..., OwnerState]:
    def ask(**credential: str) -> OwnerState:
        with AirflowApi(AirflowAddress(base_url=locked.url, **credential)) as api:
            return of(api, TASK)

    return ask


def test_login_and_password_are_exchanged_for_a_token_once(
    locked: Any, fake_airflow_module: Any, asked: Callable[..., OwnerState]
) -> None:
    state = asked(login=fake_airflow_module.LOGIN, password=fake_airflow_module.PASSWORD)
    assert state.presence is Presence.ALIVE
    assert locked.requests.count("POST /auth/token") == 1


def test_a_token_that_is_given_is_used(locked: Any, fake_airflow_module: Any, asked: Callable[..., OwnerState]) -> None:
    assert asked(token=fake_airflow_module.TOKEN).presence is Presence.ALIVE
    assert "POST /auth/token" not in locked.requests


@pytest.mark.parametrize(
    ("credential", "words"),
    [
        ({}, "no login and no access token"),
        ({"token": "planted-stale-token"}, "the access token is not accepted"),
        ({"login": "somebody", "password": "planted-wrong-password"}, "login 'somebody' was refused"),
    ],
    ids=["nothing", "a stale token", "a wrong password"],
)
def test_a_credential_that_is_not_accepted_is_told_and_not_shown(
    asked: Callable[..., OwnerState], credential: dict[str, str], words: str
) -> None:
    state = asked(**credential)
    assert state.presence is Presence.UNKNOWN
    assert words in state.detail
    assert "planted" not in state.detail


@pytest.mark.parametrize(
    ("connection", "url"),
    [
        ({"host": "airflow.example.com"}, "http://airflow.example.com"),
        ({"host": "airflow.example.com", "schema": "https", "port": 8443}, "https://airflow.example.com:8443"),
        ({"host": "https://airflow.example.com/prod/"}, "https://airflow.example.com/prod"),
        ({"host": "https://airflow.example.com/api/v2"}, "https://airflow.example.com"),
        ({"host": "http://airflow-api-server", "port": 8080}, "http://airflow-api-server:8080"),
        ({}, "https://configured.example.com"),
    ],
    ids=["host", "schema and port", "URL with a path", "URL of the API", "URL and port", "no host: base_url"],
)
def test_a_connection_leads_to(connection: dict[str, Any], url: str) -> None:
    found = Connection(conn_id="airflow_api_default", conn_type="http", **connection)
    built = AirflowAddress.build(connection=found, fallback="https://configured.example.com")
    assert built.base_url == url


def test_what_is_said_explicitly_goes_before_the_connection() -> None:
    found = Connection(conn_id="a", conn_type="http", host="elsewhere", login="me", password="planted")
    built = AirflowAddress.build(url="http://here", connection=found, token="planted-token", fallback="")
    assert (built.base_url, built.login, built.token) == ("http://here", "", "planted-token")


def test_a_password_without_a_login_is_an_access_token() -> None:
    found = Connection(conn_id="a", conn_type="http", host="here", password="planted-token")
    built = AirflowAddress.build(connection=found, fallback="")
    assert (built.login, built.token) == ("", "planted-token")
    assert "planted" not in repr(built)


@pytest.mark.parametrize("url", ["", "airflow.example.com", "ftp://airflow.example.com", "http://"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(AirflowApiError, match="expected one such as https://"):
        AirflowAddress(base_url=url)


def test_a_password_in_the_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(AirflowApiError, match="holds a login") as refused:
        AirflowAddress(base_url="https://me:planted-secret@airflow.example.com")
    assert "planted-secret" not in str(refused.value)
