from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.ledger import AttemptLedger, MemoryStore
from airflow_provider_pai_spot.attempts.moment import TryMoment
from airflow_provider_pai_spot.attempts.report import Report
from airflow_provider_pai_spot.attempts.session import identity_from
from airflow_provider_pai_spot.attempts.submission import Submitter
from airflow_provider_pai_spot.attempts.task_jobs import TaskJobs
from airflow_provider_pai_spot.clock import SYSTEM_CLOCK
from airflow_provider_pai_spot.dlc.job_request import MAX_REQUEST_BYTES
from airflow_provider_pai_spot.emulator import DlcEmulator
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

Call = Callable[..., Any]
RUN = ("--run-id", "manual__1", "--logical-date", "2026-05-04T12:00:00Z")
SIMPLE = 'SubmitSpotJobOperator(task_id="train", **COMMON, spot_discount_limit=0.4, retries=2)'


@pytest.fixture
def plan(pai_spot: Call, dag_file: Call, cloud: DlcEmulator) -> Call:
    """Return a function that plans the task `train` of these tasks and returns the plan's JSON."""
    assert cloud.endpoint

    def make(tasks: str = SIMPLE, *options: str, dag: str = "") -> dict[str, Any]:
        path = dag_file(tasks, dag)
        said = pai_spot("plan", "dag_under_plan", "train", "--dag-file", str(path), *RUN, "--json", *options)
        assert said.code == 0, said.err
        return json.loads(said.out)

    return make


@pytest.fixture
def plan_text(pai_spot: Call, dag_file: Call, cloud: DlcEmulator) -> Call:
    """Return a function that plans the task `train` and returns what a person reads."""
    assert cloud.endpoint

    def make(tasks: str = SIMPLE, *options: str) -> str:
        path = dag_file(tasks)
        said = pai_spot("plan", "dag_under_plan", "train", "--dag-file", str(path), *RUN, *options)
        assert said.code == 0, said.err
        return str(said.out)

    return make


def _submit_first_attempt(dag_path: Path) -> str:
    """Submit as a task's first try does, with everything of this provider that takes part in it."""
    from airflow_provider_pai_spot.cli.plan.context import PlannedRun, plan_context
    from airflow_provider_pai_spot.cli.plan.dags import find_dag

    operator = find_dag("dag_under_plan", dag_path).get_task("train")
    date = datetime(2026, 5, 4, 12, tzinfo=UTC)
    context = plan_context(operator, PlannedRun(run_id="manual__1", logical_date=date, params={}), -1)
    operator.render_template_fields(context)
    hook, log = PaiDlcHook(), logging.getLogger("test")
    identity = identity_from(context, hook)
    moment = TryMoment(try_number=1, max_tries=operator.retries, started_at=SYSTEM_CLOCK.now(), run_started_at=date)
    ledger = AttemptLedger(MemoryStore())
    jobs = TaskJobs(
        hook=hook,
        submitter=Submitter(
            hook=hook, identity=identity, ledger=ledger, since=date, patience=0, clock=SYSTEM_CLOCK, log=log
        ),
        ledger=ledger,
        wanted=operator.wanted(identity, hook, moment),
        moment=moment,
        report=Report(push=lambda *_: None, log=log, console_url=str, console_key="link"),
        clock=SYSTEM_CLOCK,
        log=log,
    )
    return jobs.submit().job_id


def test_the_planned_body_is_what_the_first_attempt_really_sends(
    plan: Call, cloud: DlcEmulator, tmp_path: Path
) -> None:
    planned = plan(
        """
SubmitSpotJobOperator(
    task_id="train", **{**COMMON, "user_command": "python train.py --day {{ ds }}"}, spot_discount_limit=0.4,
    checkpoint_uri="oss://bucket.example.com/folder/", run_timeout=3600, retries=2,
)
"""
    )["request"]
    created = cloud.control.job(_submit_first_attempt(tmp_path / "dag_under_plan.py"))
    for key in ("DisplayName", "WorkspaceId", "JobType", "UserCommand", "JobSpecs", "Envs", "JobMaxRunningTimeMinutes"):
        assert planned[key] == created[key], key
    tags = dict(created["Settings"]["Tags"])
    assert planned["Settings"]["Tags"] == tags | {"airflow-ledger": "made-at-submission"}
    assert planned["Envs"]["PAI_SPOT_CHECKPOINT_DIR"].startswith("/mnt/pai_spot/checkpoints/dag_under_plan/train/")
    assert "--day 2026-05-04" in planned["UserCommand"]


def test_planning_submits_nothing_and_asks_dlc_nothing(plan: Call, cloud: DlcEmulator) -> None:
    plan()
    assert cloud.control.requests() == {}


def test_the_plan_says_how_much_of_the_limit_the_request_takes(plan: Call) -> None:
    planned = plan()
    exact = json.dumps(planned["request"], separators=(",", ":"), ensure_ascii=False).encode()
    assert planned["request_bytes"] == len(exact)  # nothing in it is masked
    assert planned["request_bytes_limit"] == MAX_REQUEST_BYTES


def test_the_plan_says_where_the_job_would_go(plan: Call, cloud: DlcEmulator) -> None:
    assert plan()["connection"] == {
        "conn_id": "pai_dlc_default",
        "endpoint": cloud.endpoint,
        "region_id": "cn-hangzhou",
        "workspace_id": "1",
        "namespace": "team-a",
        "problem": None,
    }


def test_params_reach_the_templates(plan: Call) -> None:
    task = 'SubmitSpotJobOperator(task_id="train", **COMMON, spot_discount_limit="{{ params.bid }}")'
    dag = "params={'bid': 0.4}"
    assert plan(task, dag=dag)["bids"][0]["value"] == "0.4"
    assert plan(task, "--params", '{"bid": 0.7}', dag=dag)["bids"][0]["value"] == "0.7"


@pytest.mark.parametrize(
    ("bid", "expected"),
    [
        ("spot_discount_limit=0.4", "at most 0.4 of list price (a fraction: 0.4 is 40 %); charged is the market price"),
        (
            "spot_price_limit=0.011",
            "at most 0.011 CNY per minute, which is 0.66 CNY per hour; charged is the market price",
        ),
    ],
    ids=["discount", "price"],
)
def test_bids_are_shown_with_their_units(plan_text: Call, bid: str, expected: str) -> None:
    assert expected in plan_text(f'SubmitSpotJobOperator(task_id="train", **COMMON, {bid})')


@pytest.mark.parametrize(
    ("arguments", "jobs"),
    [
        ("retries=0, recovery=SpotRecovery(max_revocations=0)", 1),
        ("retries=2, recovery=SpotRecovery(max_revocations=0)", 3),
        ("retries=0, recovery=SpotRecovery(max_revocations=5)", 6),
        ("retries=2, recovery=dict(max_revocations=5)", 18),
        ("retries=2, wait_for_completion=False", 1),
    ],
    ids=["neither", "retries only", "revocations only", "both multiply", "nobody waits"],
)
def test_the_most_jobs_a_task_can_come_to(plan: Call, arguments: str, jobs: int) -> None:
    task = f'SubmitSpotJobOperator(task_id="train", **COMMON, spot_discount_limit=0.4, {arguments})'
    assert plan(task)["arithmetic"]["jobs_at_most"] == jobs


TWO_TASKS = """
train = SubmitSpotJobOperator(
    task_id="train", **COMMON, spot_discount_limit=0.4, wait_for_completion=False, recovery={recovery}
)
{sensor}
"""
MAPPED_TASKS = """
train = SubmitSpotJobOperator.partial(
    task_id="train", **COMMON, wait_for_completion=False
).expand(spot_discount_limit=[0.4, 0.5])
{sensor}
"""
PLAIN = 'SpotJobSensor(task_id="wait", job_id=train.output, {arguments})'
MAPPED = 'SpotJobSensor.partial(task_id="wait", {arguments}).expand(job_id=train.output)'


def two_tasks(sensor: str, arguments: str, recovery: str = "None") -> str:
    form = MAPPED_TASKS if sensor is MAPPED else TWO_TASKS
    return form.format(sensor=sensor.format(arguments=arguments), recovery=recovery)


@pytest.mark.parametrize("sensor", [PLAIN, MAPPED], ids=["plain", "mapped"])
@pytest.mark.parametrize(
    ("arguments", "dag", "sensors"),
    [
        ("submitted_by=train, retries=4", "", {"wait": 4}),
        ('submitted_by="train", retries=4', "", {"wait": 4}),
        ("submitted_by=train", "default_args={'retries': 4}", {"wait": 4}),
        ('submitted_by=train, retries=4, on_revoked="resubmit"', "", {"wait": 4}),
        ('submitted_by=train, retries=4, on_revoked="fail"', "", {}),
        ("retries=4", "", {}),
    ],
    ids=["by task", "by task id", "retries of the DAG", "said so", "fails", "watches only"],
)
def test_a_sensor_that_submits_successors_adds_its_retries(
    plan: Call, sensor: str, arguments: str, dag: str, sensors: dict[str, int]
) -> None:
    planned = plan(two_tasks(sensor, arguments), dag=dag)
    assert planned["arithmetic"]["sensor_retries"] == sensors
    assert planned["arithmetic"]["jobs_at_most"] == 1 + sum(sensors.values())


@pytest.mark.parametrize(
    ("retries", "max_revocations", "expected"),
    [(1, 5, ["0.4", "0.6"]), (4, 5, ["0.4", "0.6", "0.9"]), (4, 0, ["0.4", "0.6", "0.9"])],
    ids=["fewer retries than steps", "more", "the try's own budget does not count"],
)
def test_a_sensor_bids_the_ladder_as_far_as_its_retries_go(
    plan: Call, plan_text: Call, retries: int, max_revocations: int, expected: list[str]
) -> None:
    recovery = f'dict(max_revocations={max_revocations}, spot_discount_ladder=["0.6", "0.9"])'
    tasks = two_tasks(PLAIN, f"submitted_by=train, retries={retries}", recovery)
    bids = [f"{bid} of list price" for bid in expected]
    planned = plan(tasks)
    assert planned["arithmetic"]["bids"] == bids
    assert not any("never used" in warning for warning in planned["warnings"])
    assert f"bids {', then '.join(bids)} (repeats)" in " ".join(plan_text(tasks).split())


def test_nobody_bids_the_ladder_where_no_sensor_submits(plan: Call) -> None:
    tasks = two_tasks(PLAIN, "retries=4", 'dict(spot_discount_ladder=["0.6"])')
    assert plan(tasks)["arithmetic"]["bids"] == ["0.4 of list price"]


@pytest.mark.parametrize(
    ("recovery", "expected"),
    [
        ("SpotRecovery()", ["0.4"]),
        ('SpotRecovery(spot_discount_ladder=("0.6", "0.9"))', ["0.4", "0.6", "0.9"]),
        ('SpotRecovery(max_revocations=1, spot_discount_ladder=("0.6", "0.9"))', ["0.4", "0.6"]),
    ],
    ids=["same again", "ladder", "ladder longer than the budget"],
)
def test_bids_of_a_try_come_in_the_order_of_the_ladder(plan: Call, recovery: str, expected: list[str]) -> None:
    task = f'SubmitSpotJobOperator(task_id="train", **COMMON, spot_discount_limit=0.4, recovery={recovery})'
    assert plan(task)["arithmetic"]["bids"] == [f"{bid} of list price" for bid in expected]


def test_the_steps_of_recovery_are_shown_with_what_they_may_cost(plan: Call, plan_text: Call) -> None:
    task = """
SubmitSpotJobOperator(
    task_id="train", **COMMON, spot_discount_limit=0.4, retries=2, pending_timeout=60,
    settings={"EnableErrorMonitoringInAIMaster": True, "ErrorMonitoringArgs": "--enable-job-restart=True"},
    recovery=dict(ecs_specs=["ecs.g7.2xlarge"], on_demand_after=3, on_pending_timeout="next_ecs_spec"),
)
"""
    planned = plan(task)
    shown = {key: planned["arithmetic"][key] for key in ("ecs_specs", "on_demand_after", "runs_at_most", "by_market")}
    own = planned["request"]["JobSpecs"][0]["EcsSpec"]
    assert shown == {
        "ecs_specs": [own, "ecs.g7.2xlarge"],
        "on_demand_after": 3,
        "runs_at_most": 18 * 4,
        "by_market": False,
    }
    assert any("billed at list price, whatever the bid" in warning for warning in planned["warnings"])
    assert any("two layers restart this work" in warning for warning in planned["warnings"])
    text = " ".join(plan_text(task).split())
    for line in (
        f"types {own}, then ecs.g7.2xlarge; and around again",
        "on demand from 3 losses on: at list price, until a clear",
        "runs at most 72: DLC itself (AIMaster) may restart each job",
        "pending_timeout is answered by next_ecs_spec, counted as a revocation",
        "no progress 2 losses without any, if it can be seen, end the task without a retry",
    ):
        assert line in text


def test_limits_are_in_seconds_and_dlc_s_own_in_minutes(plan: Call) -> None:
    task = """
SubmitSpotJobOperator(
    task_id="train", **COMMON, spot_discount_limit=0.4,
    pending_timeout=timedelta(hours=2), run_timeout=5400, execution_timeout=timedelta(days=1),
)
"""
    assert plan(task)["limits"] == {
        "pending_timeout": 7200.0,
        "run_timeout": 5400.0,
        "total_timeout": 604_800.0,
        "execution_timeout": 86_400.0,
        "job_max_running_time_minutes": 90,
    }


def test_the_execution_timeout_of_a_task_that_only_submits_is_not_planned_as_a_limit_of_the_job(plan: Call) -> None:
    task = """
SubmitSpotJobOperator(
    task_id="train", **COMMON, spot_discount_limit=0.4,
    wait_for_completion=False, execution_timeout=timedelta(minutes=5),
)
"""
    planned = plan(task)
    assert planned["limits"]["job_max_running_time_minutes"] is None
    assert "JobMaxRunningTimeMinutes" not in planned["request"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", "no checkpoint_uri"),
        ('job_type="MPIJob"', "job_type is 'MPIJob'"),
        ('recovery=dict(max_revocations=0, spot_discount_ladder=["0.6"])', "spot_discount_ladder is never used"),
        ("recovery=dict(on_demand_after=2)", "recovery may go on demand"),
    ],
    ids=["no checkpoints", "of the request", "useless ladder", "list price"],
)
def test_warnings_come_before_money_is_spent(plan: Call, arguments: str, expected: str) -> None:
    task = f'SubmitSpotJobOperator(task_id="train", **COMMON, spot_discount_limit=0.4, {arguments})'
    assert any(expected in warning for warning in plan(task)["warnings"])


def test_the_text_has_every_section(plan_text: Call) -> None:
    text = plan_text()
    titles = [line for line in text.splitlines() if line and line[0] not in ' {}"']
    assert [title.split(",")[0] for title in titles] == [
        "Task",
        "Connection",
        "CreateJob",
        "Bids",
        "Limits",
        "Retries",
        "Warnings",
        "Nothing was submitted",
    ]
    assert "at most (retries 2 + 1) x (max_revocations 5 + 1) = 18" in text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("dag_under_plam", "train"), "did you mean 'dag_under_plan'?"),
        (("dag_under_plan", "tain"), "has no task 'tain'; its spot jobs: train"),
        (("dag_under_plan", "other"), "'other' is a _PythonDecoratedOperator, which submits no spot jobs"),
        (("dag_under_plan", "wait"), "'wait' watches jobs that 'train' submits: plan that task"),
        (("dag_under_plan", "waits"), "'waits' watches jobs that 'train' submits: plan that task"),
        (("dag_under_plan", "train", "--map-index", "1"), "'train' is not mapped"),
    ],
    ids=["no such DAG", "no such task", "another kind of task", "its sensor", "its mapped sensor", "not mapped"],
)
def test_what_cannot_be_planned_is_told_in_one_line(
    pai_spot: Call, dag_file: Call, arguments: tuple[str, ...], expected: str
) -> None:
    path = dag_file(
        """
train = SubmitSpotJobOperator(task_id="train", **COMMON, spot_discount_limit=0.4, wait_for_completion=False)
SpotJobSensor(task_id="wait", job_id=train.output, submitted_by=train, retries=1)
SpotJobSensor.partial(task_id="waits", submitted_by=train, retries=1).expand(job_id=["dlc1", "dlc2"])
choose.override(task_id="other")()
"""
    )
    said = pai_spot("plan", *arguments, "--dag-file", str(path))
    assert (said.code, said.out) == (1, "")
    assert expected in said.err
    assert said.err.count("\n") == 1


def test_a_file_that_cannot_be_imported_says_why(pai_spot: Call, dag_file: Call) -> None:
    path = dag_file('SubmitSpotJobOperator(task_id="train", **COMMON, spot_discount_limit=4)')
    said = pai_spot("plan", "dag_under_plan", "train", "--dag-file", str(path))
    assert said.code == 1
    assert "spot_discount_limit is 4" in said.err


def test_params_that_the_dag_does_not_allow_are_refused(pai_spot: Call, dag_file: Call, cloud: DlcEmulator) -> None:
    assert cloud.endpoint
    path = dag_file(SIMPLE, 'params={"n": Param(1, type="integer")}')
    said = pai_spot("plan", "dag_under_plan", "train", "--dag-file", str(path), "--params", '{"n": "many"}')
    assert said.code == 1
    assert "The params are not what DAG 'dag_under_plan' allows" in said.err


def test_what_a_dag_file_prints_does_not_spoil_the_json(plan: Call) -> None:
    assert plan(f'print("hello from the DAG file")\n{SIMPLE}')["task_id"] == "train"


def test_dags_are_found_in_the_configured_bundles(
    pai_spot: Call, dag_file: Call, cloud: DlcEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cloud.endpoint
    folder = {"name": "mine", "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle"}
    bundles = [{**folder, "kwargs": {"path": str(dag_file(SIMPLE).parent)}}]
    monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST", json.dumps(bundles))
    monkeypatch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
    said = pai_spot("plan", "dag_under_plan", "train", "--json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["request"]["DisplayName"].startswith("dag_under_plan-train-")
