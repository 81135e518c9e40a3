"""An emulated cloud and a tiny Airflow, both over HTTP; time is the cloud's and moves when somebody sleeps."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Connection

from airflow_provider_pai_spot.attempts.bodies import attempt_body
from airflow_provider_pai_spot.attempts.identity import Owner, TaskIdentity
from airflow_provider_pai_spot.attempts.ledger import Attempt
from airflow_provider_pai_spot.dlc.job_request import build_job_request
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.sweep.airflow_address import AirflowAddress
from airflow_provider_pai_spot.sweep.airflow_api import AirflowApi
from airflow_provider_pai_spot.sweep.sweeper import Sweeper

NAMESPACE = "airflow-prod"
DAG, RUN = "nightly", "scheduled__2026-11-30T00:00:00+00:00"


class CloudClock:
    """The emulator's time; whoever sleeps moves it, and what was planned for meanwhile happens."""

    def __init__(self, cloud: DlcEmulator) -> None:
        self._cloud = cloud
        self.slept: list[float] = []
        self.meanwhile: list[Callable[[], object]] = []

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._cloud.control.now(), UTC)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        while self.meanwhile:
            self.meanwhile.pop()()
        self._cloud.control.advance(seconds)

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)


@pytest.fixture(scope="session")
def fake_airflow_module() -> Any:
    spec = spec_from_file_location("fake_airflow", Path(__file__).parent / "fake_airflow.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def airflow(fake_airflow_module: Any) -> Iterator[Any]:
    with fake_airflow_module.FakeAirflow() as running:
        running.run(DAG, RUN)
        yield running


@pytest.fixture
def api(airflow: Any) -> Iterator[AirflowApi]:
    with AirflowApi(AirflowAddress(base_url=airflow.url)) as client:
        yield client


@pytest.fixture
def cloud() -> Iterator[DlcEmulator]:
    """Jobs run until they are stopped."""
    with DlcEmulator(clock="manual", default_plan=JobPlan(run_seconds=None)) as running:
        yield running


@pytest.fixture
def clock(cloud: DlcEmulator) -> CloudClock:
    return CloudClock(cloud)


@pytest.fixture
def hook_of(cloud: DlcEmulator, clock: CloudClock) -> Callable[..., PaiDlcHook]:
    """Return a function that makes a hook; with the keys of another identity if they are given."""

    def make(keys: dict[str, str] | None = None) -> PaiDlcHook:
        connection = Connection.from_uri(cloud.connection_uri(), conn_id="pai_dlc_default")
        if keys:
            connection.login, connection.password = keys["access_key_id"], keys["access_key_secret"]
        return PaiDlcHook.from_connection(connection, clock=clock)

    return make


@pytest.fixture
def submit(cloud: DlcEmulator, hook_of: Callable[..., PaiDlcHook]) -> Callable[..., str]:
    """Return a function that submits a job as operator and sensor do, and returns its id."""

    def make(
        task_id: str = "train",
        *,
        owner: Owner = Owner.TASK,
        namespace: str = NAMESPACE,
        run_id: str = RUN,
        map_index: int = -1,
        attempt: int = 0,
        keys: dict[str, str] | None = None,
        change: Callable[[dict[str, Any]], object] = lambda body: body,
        **arguments: Any,
    ) -> str:
        bid = {} if "spot_price_limit" in arguments else {"spot_discount_limit": 0.4}
        request = build_job_request(
            {
                "image": "registry.example.com/training:1",
                "user_command": "python train.py",
                "ecs_spec": "ecs.g7.xlarge",
                "workspace_id": "1",
                "display_name": task_id,
                **bid,
                **arguments,
            }
        )
        identity = TaskIdentity(namespace=namespace, dag_id=DAG, run_id=run_id, task_id=task_id, map_index=map_index)
        submission = Attempt(number=attempt, generation=0, request_hash=request.request_hash)
        body = attempt_body(request, identity, submission, owner=owner, resumes=False)
        change(body)
        return hook_of(keys).create_job(body)

    return make


@pytest.fixture
def sweeper(api: AirflowApi, clock: CloudClock, hook_of: Callable[..., PaiDlcHook]) -> Callable[..., Sweeper]:
    """Return a function that makes a sweeper; keywords replace its parts."""

    def make(**parts: Any) -> Sweeper:
        whole: dict[str, Any] = {
            "hook": hook_of(),
            "namespace": NAMESPACE,
            "owner_states": api.owner_states,
            "held_job": api.held_job,
            "clock": clock,
            "log": logging.getLogger("pai-spot-test"),
        }
        return Sweeper(**{**whole, **parts})

    return make


@pytest.fixture
def orphan(airflow: Any, cloud: DlcEmulator, submit: Callable[..., str]) -> str:
    """A job whose task failed while nobody listened, an hour ago."""
    job_id = submit()
    cloud.control.advance(3600)
    airflow.task(DAG, RUN, "train", "failed", end_date="2026-01-01T00:00:00Z")
    return job_id
