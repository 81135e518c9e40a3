from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from seams import EmulatedClock

from airflow_provider_pai_spot.cli import main as cli
from airflow_provider_pai_spot.cli import sweep
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan

Call = Callable[..., Any]
FAKE_AIRFLOW = Path(__file__).parents[1] / "sweep" / "fake_airflow.py"
NAMESPACE = "team-a"
pytestmark = pytest.mark.dlc_emulator(clock="manual", default_plan=JobPlan(run_seconds=None))


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The Airflow of `[api] base_url`, in which the DAG `nightly` exists."""
    spec = spec_from_file_location("fake_airflow", FAKE_AIRFLOW)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.FakeAirflow() as running:
        running.dags.add("nightly")
        monkeypatch.setenv("AIRFLOW__API__BASE_URL", running.url)
        yield running


@pytest.fixture
def swept(cloud: DlcEmulator, airflow: Any, pai_spot: Call, capsys: pytest.CaptureFixture[str]) -> Call:
    """Return a function that runs `pai-spot sweep` on the emulator's time."""

    def call(*arguments: str) -> tuple[int, str, str]:
        options = cli._parser("sweep").parse_args(["sweep", *arguments])
        capsys.readouterr()
        code = sweep.run(options, clock=EmulatedClock(cloud))
        return (code, *capsys.readouterr())

    return call


@pytest.fixture
def orphan(cloud: DlcEmulator, submitted: Call) -> str:
    """A job of a run that was deleted."""
    job_id: str = submitted()
    cloud.control.advance(3600)
    return job_id


def test_nothing_to_do_is_0(swept: Call) -> None:
    code, out, _ = swept()
    assert (code, out) == (0, "0 live jobs in namespace 'team-a', 0 orphans.\n")


def test_a_dry_run_that_finds_orphans_is_3_and_stops_nothing(swept: Call, cloud: DlcEmulator, orphan: str) -> None:
    code, out, err = swept()
    assert code == 3
    assert out.startswith(f"{orphan} Running, nightly / manual__1 / train, 1 h 1 min old, ")
    assert out.endswith("1 orphan. A dry run: nothing was stopped.\n")
    assert "looking again in 60 s" in err
    assert cloud.control.job(orphan)["Status"] == "Running"


def test_apply_stops_and_is_0(swept: Call, cloud: DlcEmulator, orphan: str) -> None:
    code, out, err = swept("--apply")
    assert code == 0
    assert "an orphan, stopped: its DAG run does not exist in Airflow any more" in out
    assert f"stopping {orphan}" in err
    assert cloud.control.job(orphan)["Status"] == "Stopped"


def test_a_task_that_submits_into_another_workspace_is_swept_there(
    swept: Call, cloud: DlcEmulator, submitted: Call
) -> None:
    elsewhere = submitted(workspace_id="42")
    cloud.control.advance(3600)
    assert swept()[1].startswith("0 live jobs")
    assert swept("--workspace-id", "42")[1].startswith(f"{elsewhere} Running")


def test_a_job_that_airflow_still_wants_is_left_and_that_is_0(swept: Call, airflow: Any, orphan: str) -> None:
    airflow.task("nightly", "manual__1", "train", "deferred")
    code, out, err = swept("--apply")
    assert (code, err) == (0, "")
    assert "left alone: its task instance is deferred" in out


def test_json_is_one_object_with_a_reason_for_each_job(swept: Call, orphan: str) -> None:
    code, out, _ = swept("--json")
    said = json.loads(out)
    assert (code, said["orphans"], said["applied"], said["namespace"]) == (3, 1, False, NAMESPACE)
    (job,) = said["jobs"]
    assert (job["job_id"], job["result"], job["reason"]) == (orphan, "would_stop", "owner_gone")
    assert job["costs"][0]["list_price_share_at_most"] == 0.4
    assert job["age_seconds"] == pytest.approx(3660)


def test_an_airflow_that_is_silent_is_1(swept: Call, airflow: Any, orphan: str) -> None:
    airflow.broken["/api/"] = (503, {"detail": "busy"})
    code, out, _ = swept("--apply")
    assert code == 1
    assert "Airflow gave no usable answer: GET /dags/nightly/" in out


def test_a_namespace_that_many_call_theirs_is_refused(
    pai_spot: Call, cloud: DlcEmulator, airflow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__NAMESPACE", "")
    said = pai_spot("sweep", "--apply")
    assert (said.code, said.out) == (1, "")
    assert "127.0.0.1" in said.err
    assert "nothing is stopped" in said.err
    assert cloud.control.requests() == {}


def test_naming_a_namespace_lifts_the_refusal_once_it_is_said_which_airflow_to_ask(
    swept: Call, airflow: Any, cloud: DlcEmulator, orphan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__NAMESPACE", "")
    assert swept("--apply", "--namespace", NAMESPACE, "--airflow-url", airflow.url)[0] == 0
    assert cloud.control.job(orphan)["Status"] == "Stopped"


def test_a_foreign_namespace_is_not_judged_by_this_airflow_unasked(pai_spot: Call, airflow: Any, orphan: str) -> None:
    said = pai_spot("sweep", "--apply", "--namespace", "airflow-prod")
    assert said.code == 1
    assert "add --airflow-url or --airflow-conn-id" in said.err


def test_a_namespace_without_jobs_of_ours_is_looked_at_alone(swept: Call, orphan: str) -> None:
    code, out, _ = swept("--namespace", "airflow-staging")
    assert (code, out) == (0, "0 live jobs in namespace 'airflow-staging', 0 orphans.\n")


@pytest.mark.parametrize("named", [(), ("--airflow-conn-id", "my_airflow")], ids=["by default", "by name"])
def test_login_and_password_come_from_an_airflow_connection(
    swept: Call, airflow: Any, orphan: str, named: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    airflow.needs_login = True
    assert swept()[0] == 1
    connection = {"conn_type": "http", "host": airflow.url, "login": "sweeper", "password": "planted-airflow-password"}
    conn_id = named[1] if named else "airflow_api_default"
    monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(connection))
    code, out, err = swept(*named)
    assert code == 3
    assert "planted" not in out + err


def test_a_token_comes_from_the_environment(
    swept: Call, airflow: Any, orphan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    airflow.needs_login = True
    monkeypatch.setenv(sweep.TOKEN_VARIABLE, "planted-access-token")
    assert swept()[0] == 3


def test_a_connection_that_does_not_exist_is_told(pai_spot: Call, cloud: DlcEmulator, airflow: Any) -> None:
    said = pai_spot("sweep", "--airflow-conn-id", "no_such")
    assert (said.code, said.out) == (1, "")
    assert "Airflow has no connection 'no_such'" in said.err


def test_an_airflow_without_an_address_is_told(
    pai_spot: Call, cloud: DlcEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "")
    said = pai_spot("sweep")
    assert said.code == 1
    assert "Set [api] base_url, the host of the connection, or --airflow-url" in said.err
