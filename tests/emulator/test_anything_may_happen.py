"""Whatever is sent and whatever happens in whatever order: the service stays in one piece."""

from __future__ import annotations

from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from airflow_provider_pai_spot.emulator import DlcEmulator, Phases
from airflow_provider_pai_spot.emulator.control import EmulatorControl
from airflow_provider_pai_spot.emulator.errors import DlcError
from airflow_provider_pai_spot.emulator.lifecycle import TERMINAL
from airflow_provider_pai_spot.emulator.plans import JobPlan
from airflow_provider_pai_spot.emulator.service import DlcService

GENERAL, LINGJUN = "ecs.g7.xlarge", "ml.gu7xf.8xlarge-gu108"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ROLE_KEYS = ("Type", "PodCount", "EcsSpec", "ResourceConfig", "SpotSpec", "ElasticSpotSpecs", "Image")
TOP_KEYS = ("DisplayName", "JobType", "UserCommand", "JobSpecs", "Settings", "Envs", "DataSources", "UserVpc")
TOP_KEYS += ("Priority", "JobMaxRunningTimeMinutes", "WorkspaceId", "ResourceId", "Accessibility", "Description")
SPOT_KEYS = ("SpotStrategy", "SpotDiscountLimit", "SpotPriceLimit")
SETTING_KEYS = ("Tags", "ErrorMonitoringArgs", "EnableErrorMonitoringInAIMaster", "JobReservedMinutes")
SETTING_KEYS += ("JobReservedPolicy", "TerminationGracePeriodSeconds", "EnableSanityCheck")

PLANS = st.builds(
    JobPlan,
    run_seconds=st.none() | st.floats(0, 50),
    exit_code=st.sampled_from([0, 1, 137]),
    revoke_after=st.none() | st.floats(0, 50),
    revoke_times=st.integers(1, 4),
    revoke_pods=st.none() | st.just(1),
    never_starts=st.booleans(),
    evicted=st.none() | st.booleans(),
    status=st.sampled_from([None, None, "FailedReserving", "SucceededReserving", "Failed"]),
)
MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.sampled_from([GENERAL, LINGJUN]), st.sampled_from([0.2, 0.5, None])),
        st.tuples(st.just("plan"), PLANS, st.none()),
        st.tuples(st.just("advance"), st.floats(0, 100), st.none()),
        st.tuples(st.just("revoke"), st.integers(0, 5), st.sampled_from([None, 1])),
        st.tuples(st.just("stop"), st.integers(0, 5), st.none()),
        st.tuples(st.just("price"), st.sampled_from([GENERAL, LINGJUN]), st.floats(0.1, 1)),
        st.tuples(st.just("stock"), st.sampled_from([GENERAL, LINGJUN]), st.none() | st.integers(0, 3)),
    ),
    max_size=25,
)


def new_service() -> DlcService:
    phases = Phases(creating=1, queuing=2, bidding=2, env_preparing=3, restarting=1, stopping=2, jitter=0.5)
    return DlcEmulator(clock="manual", phases=phases)._make_service(None)


def request(ecs_spec: str, bid: float | None) -> dict[str, Any]:
    role: dict[str, Any] = {"Type": "Worker", "PodCount": 2, "EcsSpec": ecs_spec}
    if bid is not None:
        role["SpotSpec"] = {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": bid}
    arguments = "--enable-job-restart True --job-execution-mode Async" if bid == 0.2 else "--enable-job-restart=True"
    return {
        "DisplayName": "x",
        "JobType": "PyTorchJob",
        "UserCommand": "x",
        "JobSpecs": [role],
        "JobMaxRunningTimeMinutes": 3,
        "Settings": {"EnableErrorMonitoringInAIMaster": True, "ErrorMonitoringArgs": arguments},
    }


def play(service: DlcService, control: EmulatorControl, move: tuple[str, Any, Any]) -> None:
    verb, first, second = move
    ids = [job.job_id for job in service.simulation.jobs]
    if verb == "create":
        service.create_job(request(first, second), "somebody")
    elif verb == "plan":
        control.plan(first)
    elif verb == "advance":
        control.advance(first)
    elif verb == "price":
        control.set_price(first, second)
    elif verb == "stock":
        control.set_stock(first, second)
    elif first < len(ids):
        try:
            control.revoke(ids[first], second) if verb == "revoke" else service.stop_job(ids[first])
        except (ValueError, DlcError):
            return  # it held nothing, or was over: a definite no


@settings(deadline=None, max_examples=150)
@given(MOVES)
def test_histories_have_no_gaps_ends_are_final_and_stock_is_never_overdrawn(moves: list[tuple[str, Any, Any]]) -> None:
    service = new_service()
    control = EmulatorControl(service)
    over: dict[str, str] = {}
    for move in moves:
        play(service, control, move)
        control.advance(0)
        for job in service.simulation.jobs:
            assert over.get(job.job_id, job.status) == job.status
            if job.status in TERMINAL:
                over[job.job_id] = job.status
                assert all(pod.finished_at is not None for pod in job.pods)
            for entry, following in zip(job.history, job.history[1:], strict=False):
                assert entry.ended_at == following.started_at
            assert job.history[-1].ended_at is None
        for instance_type in (GENERAL, LINGJUN):
            stock = service.simulation.market.stock(instance_type)
            holders = [job for job in service.simulation.jobs if job.holding and job.spot_roles]
            held = sum(role.count for job in holders for role in job.spot_roles if role.instance_type == instance_type)
            assert stock is None or held <= stock
    for job in list(service.simulation.jobs):
        service.get_job(job.job_id)
    service.list_jobs({"ShowOwn": "False"}, "somebody")


def changed(part: str, key: str, value: Any) -> dict[str, Any]:
    """A good request with one value of one of its parts replaced."""
    body = request(GENERAL, 0.4)
    role = body["JobSpecs"][0]
    where = {"top": body, "role": role, "spot": role["SpotSpec"], "settings": body["Settings"]}[part]
    where[key] = min(value, 3) if key == "PodCount" and isinstance(value, int) else value
    return body


@settings(deadline=None, max_examples=400)
@given(
    st.one_of(
        st.tuples(st.just("top"), st.sampled_from(TOP_KEYS), JSON),
        st.tuples(st.just("role"), st.sampled_from(ROLE_KEYS), JSON),
        st.tuples(st.just("spot"), st.sampled_from(SPOT_KEYS), JSON),
        st.tuples(st.just("settings"), st.sampled_from(SETTING_KEYS), JSON),
    )
)
def test_a_create_job_body_is_taken_or_refused_but_never_breaks_the_service(change: tuple[str, str, Any]) -> None:
    service = new_service()
    try:
        service.create_job(changed(*change), "somebody")
    except DlcError as refused:
        event(f"{change[0]} refused {refused.code}")
    EmulatorControl(service).advance(100)
    for job in list(service.simulation.jobs):
        service.get_job(job.job_id)
    service.list_jobs({}, "somebody")
