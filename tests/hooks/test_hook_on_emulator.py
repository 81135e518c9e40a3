"""The hook against a whole DLC service: signed requests, a job's life, listings, faults."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Connection

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.exceptions import (
    PaiDlcNotFound,
    PaiDlcRefused,
    PaiDlcThrottled,
    PaiDlcUnavailable,
)
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

SPEC = "ecs.gn7i-c8g1.2xlarge"


def body(name: str = "job", **tags: str) -> dict[str, object]:
    role = {
        "Type": "Worker",
        "Image": "registry/pytorch",
        "PodCount": 1,
        "EcsSpec": SPEC,
        "SpotSpec": {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.9},
    }
    return {
        "DisplayName": name,
        "JobType": "PyTorchJob",
        "UserCommand": "python train.py",
        "JobSpecs": [role],
        "Settings": {"Tags": tags},
    }


@pytest.fixture(scope="module")
def running() -> Iterator[DlcEmulator]:
    with DlcEmulator(clock="manual", verify_signatures=True) as emulator:
        yield emulator


@pytest.fixture
def emulator(running: DlcEmulator) -> DlcEmulator:
    running.control.clear_faults()
    running.control.clear_plans()
    return running


@pytest.fixture
def on_emulator(emulator: Any, clock: Any) -> Any:
    def make(conn_id: str = "emulated", **extras: str) -> PaiDlcHook:
        clock.time = datetime.fromtimestamp(emulator.control.now(), UTC)
        connection = Connection.from_uri(emulator.connection_uri(**extras), conn_id=conn_id)
        return PaiDlcHook.from_connection(connection, clock=clock)

    return make


@pytest.fixture
def client(on_emulator: Any) -> PaiDlcHook:
    return on_emulator()


def test_the_emulators_connection_passes_the_test_button(client: Any, emulator: Any) -> None:
    ok, told = client.test_connection()
    assert ok, told
    assert emulator.endpoint in told


def test_a_wrong_secret_is_refused_and_the_field_named(emulator: Any) -> None:
    wrong = Connection.from_uri(emulator.connection_uri(), conn_id="wrong")
    wrong.password = "not-the-secret"
    ok, told = PaiDlcHook.from_connection(wrong).test_connection()
    assert not ok
    assert "AccessKey Secret" in told


def test_a_job_from_submission_to_success(client: Any, emulator: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=60, logs=("epoch 1", "epoch 2")))
    job_id = client.create_job(body("lifecycle"))
    emulator.control.advance(3_600)
    job = client.get_job(job_id)
    assert (job["JobId"], job["Status"], job["WorkspaceId"]) == (job_id, "Succeeded", "1")
    lines = client.get_pod_logs(job_id, job["Pods"][0]["PodId"])
    assert [line for line in lines if "epoch" in line][-1].endswith("epoch 2")
    assert client.get_job_events(job_id)
    assert isinstance(client.get_pod_events(job_id, job["Pods"][0]["PodId"]), list)
    assert len(client.get_job_events(job_id, max_events=1)) == 1


def test_a_job_nobody_knows_is_not_found(client: Any) -> None:
    for call in (client.get_job, client.stop_job, client.delete_job, client.get_job_events):
        with pytest.raises(PaiDlcNotFound):
            call("dlc000000000000")


def test_a_running_job_is_stopped_and_a_second_stop_is_no_error(client: Any, emulator: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=None))
    job_id = client.create_job(body("stopping"))
    emulator.control.advance(3_600)
    assert client.stop_job(job_id) is True
    emulator.control.advance(3_600)
    assert client.get_job(job_id)["Status"] == "Stopped"
    assert client.stop_job(job_id) is False


def test_a_stop_whose_answer_was_lost_is_still_accepted(client: Any, emulator: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=None))
    job_id = client.create_job(body("lost-stop"))
    emulator.control.advance(3_600)
    emulator.control.fault("StopJob", "lost_answer")
    assert client.stop_job(job_id) is True
    assert client.get_job(job_id)["Status"] == "Stopping"


def test_only_a_job_that_is_over_can_be_deleted(client: Any, emulator: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=None))
    job_id = client.create_job(body("deleting"))
    with pytest.raises(PaiDlcRefused):
        client.delete_job(job_id)
    client.stop_job(job_id)
    emulator.control.advance(3_600)
    client.delete_job(job_id)
    assert job_id not in [job["JobId"] for job in client.list_jobs(job_ids=[job_id])]


def test_a_refused_request_tells_what_dlc_said(client: Any) -> None:
    with pytest.raises(PaiDlcRefused, match="DisplayName") as raised:
        client.create_job(body("not a name"))
    assert raised.value.status_code == 400
    assert raised.value.request_id


def test_jobs_are_found_by_tag_name_id_and_status(client: Any, emulator: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=None), times=None)
    ours = client.create_job(body("find-ours", owner="a b/ü"))
    other = client.create_job(body("find-other", owner="c"))

    def found(**filters: Any) -> list[str]:
        return [job["JobId"] for job in client.list_jobs(**filters)]

    assert found(tags={"owner": "a b/ü"}) == [ours]
    assert found(display_name="FIND-O") == [other, ours]
    assert found(job_ids=[other, ours, "dlc-unknown"]) == [other, ours]
    assert ours in found(payment_type="Spot")
    assert ours not in found(payment_type="PostPaid")
    assert ours not in found(status="Succeeded")
    assert ours not in found(workspace_id="99")


def test_a_listing_is_complete_beyond_one_page(client: Any, emulator: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=None), times=None)
    created = [client.create_job(body("many", batch="complete")) for _ in range(205)]
    found = [job["JobId"] for job in client.list_jobs(tags={"batch": "complete"})]
    assert sorted(found) == sorted(created)
    assert {job["JobId"] for job in client.list_jobs(job_ids=created)} == set(created)


def test_a_job_older_than_dlcs_seven_days_is_still_found(on_emulator: Any, emulator: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=None))
    job_id = on_emulator().create_job(body("old", age="old"))
    emulator.control.advance(timedelta(days=20).total_seconds())
    later = on_emulator()
    assert [job["JobId"] for job in later.list_jobs(tags={"age": "old"})] == [job_id]
    recent = datetime.fromtimestamp(emulator.control.now(), UTC) - timedelta(days=7)
    assert later.list_jobs(tags={"age": "old"}, start_time=recent) == []


def test_jobs_of_another_identity_show_only_if_asked_for(client: Any, emulator: Any) -> None:
    other = emulator.control.add_identity()
    stranger = Connection.from_uri(emulator.connection_uri(), conn_id="stranger")
    stranger.login, stranger.password = other["access_key_id"], other["access_key_secret"]
    job_id = PaiDlcHook.from_connection(stranger).create_job(body("theirs", whose="theirs"))
    assert client.list_jobs(tags={"whose": "theirs"}) == []
    assert [job["JobId"] for job in client.list_jobs(tags={"whose": "theirs"}, show_own=False)] == [job_id]


def test_specs_tell_spot_stock_and_discount(client: Any, emulator: Any) -> None:
    emulator.control.set_price(SPEC, 0.3)
    (spec,) = client.list_ecs_specs([SPEC])
    assert spec["NonProtectSpotDiscount"] == pytest.approx(0.3)
    assert len(client.list_ecs_specs()) > 1


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "throttle"},
        {"kind": "throttle", "status": 400, "code": "Throttling.User"},
        {"kind": "throttle", "retry_after": 1_500},
        {"kind": "server_error"},
        {"kind": "server_error", "status": 500},
        {"kind": "html_error"},
        {"kind": "drop"},
        {"kind": "lost_answer"},
    ],
    ids=lambda fault: "-".join(map(str, fault.values())),
)
def test_reads_live_through_faults(client: Any, emulator: Any, fault: Any) -> None:
    job_id = client.create_job(body("faults"))
    emulator.control.fault("*", times=3, **fault)
    assert client.get_job(job_id)["JobId"] == job_id


@pytest.mark.parametrize(
    ("kind", "error", "created"),
    [
        ("throttle", PaiDlcThrottled, 0),
        ("drop", PaiDlcUnavailable, 0),
        ("html_error", PaiDlcUnavailable, 0),
        ("lost_answer", PaiDlcUnavailable, 1),
    ],
)
def test_create_job_is_never_sent_twice_and_says_whether_it_may_have_worked(
    client: Any, emulator: Any, kind: Any, error: Any, created: Any
) -> None:
    emulator.control.fault("CreateJob", kind)
    before = emulator.control.requests().get("CreateJob", 0)
    with pytest.raises(error) as raised:
        client.create_job(body("once", fault=kind))
    assert emulator.control.requests()["CreateJob"] == before + 1
    assert len(client.list_jobs(tags={"fault": kind})) == created
    assert getattr(raised.value, "ambiguous", False) is (error is PaiDlcUnavailable)


def test_raw_fields_that_the_vendors_models_drop_are_kept(client: Any, emulator: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=5, exit_code=137))
    job_id = client.create_job(body("exit-code"))
    emulator.control.advance(3_600)
    pods = client.get_job(job_id)["Pods"]
    assert [pod["StatusDetail"]["ExitCode"] for pod in pods] == [137]


def test_https_is_trusted_only_with_its_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    with DlcEmulator(tls=True, clock="manual") as emulator:
        given = Connection.from_uri(emulator.connection_uri(), conn_id="tls")
        with pytest.raises(PaiDlcUnavailable, match="SSLCertVerificationError") as raised:
            PaiDlcHook.from_connection(given).create_job(body("untrusted"))
        assert not raised.value.ambiguous
        assert emulator.control.requests() == {}

    with DlcEmulator(tls=True, clock="manual") as emulator:
        monkeypatch.setenv("SSL_CERT_FILE", str(emulator.ca_file))
        given = Connection.from_uri(emulator.connection_uri(), conn_id="tls")
        assert PaiDlcHook.from_connection(given).create_job(body("trusted"))


FROM_ENVIRONMENT = """
import os
from airflow.sdk import Connection
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

hook = PaiDlcHook.from_connection(Connection.from_uri(os.environ["EMULATED"], conn_id="environment"))
print(hook.test_connection())
"""


@pytest.mark.parametrize(
    ("secret", "expected"),
    [(None, "(True, "), ("", "accessKeySecret cannot be empty")],
    ids=["a key", "nothing anywhere"],
)
def test_credentials_come_from_the_environment_where_the_connection_has_none(
    emulator: Any, tmp_path: Path, secret: Any, expected: Any
) -> None:
    """In a process of its own: the SDK reads these variables when it is imported."""
    uri = emulator.connection_uri().replace(f"{emulator.access_key_id}:{emulator.access_key_secret}@", "")
    variables = {
        "EMULATED": uri,
        "HOME": str(tmp_path),
        "ALIBABA_CLOUD_ACCESS_KEY_ID": emulator.access_key_id,
        "ALIBABA_CLOUD_ACCESS_KEY_SECRET": emulator.access_key_secret if secret is None else secret,
        "ALIBABA_CLOUD_ECS_METADATA_DISABLED": "true",
    }
    kept = {key: os.environ[key] for key in ("AIRFLOW_HOME", "PATH") if key in os.environ}
    run = subprocess.run(
        [sys.executable, "-c", FROM_ENVIRONMENT], env={**kept, **variables}, capture_output=True, text=True, check=True
    )
    assert expected in run.stdout
    assert "Traceback" not in run.stderr
