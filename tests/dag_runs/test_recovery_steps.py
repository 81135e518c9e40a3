"""What follows a loss or a pending timeout, through whole DAG runs: each step in the log and in the attempts."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

FIRST, SECOND, THIRD = "ecs.g7.xlarge", "ecs.g7.2xlarge", "ecs.c7.large"
IS_LOST = JobPlan(run_seconds=30, revoke_after=0.1)
LOST_AFTER_A_SECOND = JobPlan(run_seconds=30, revoke_after=1.1)
LONG = JobPlan(run_seconds=60)
REQUEST: dict[str, Any] = {
    "image": "registry.example.com/train:1",
    "user_command": "python train.py",
    "ecs_spec": FIRST,
    "spot_discount_limit": 0.4,
}


def one_task(**arguments: Any) -> DAG:
    defaults = {"task_id": "train", "poll_interval": 0.1, "retry_delay": timedelta(0), "retries": 0}
    with DAG(f"dag_{uuid.uuid4().hex[:8]}", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        SubmitSpotJobOperator(**(REQUEST | defaults | arguments))
    return dag


def attempts(run: Any, *keys: str) -> list[Any]:
    """Return these columns of the `attempts` XCom."""
    rows = [tuple(one[key] for key in keys) for one in run.xcom("train", "attempts")]
    return [row[0] for row in rows] if len(keys) == 1 else rows


def sent(emulator: DlcEmulator) -> list[tuple[str, float | None]]:
    """Return the type and the bid of each job, as DLC was sent them."""
    roles = [job["JobSpecs"][0] for job in emulator.control.jobs()]
    return [(role["EcsSpec"], role.get("SpotSpec", {}).get("SpotDiscountLimit")) for role in roles]


@pytest.fixture
def once_running(emulator: DlcEmulator, meanwhile: Any) -> Callable[[Callable[[], object]], None]:
    """Let something happen to the market as soon as the first job runs."""

    def act(action: Callable[[], object]) -> None:
        def when_it_runs() -> None:
            give_up_at = time.monotonic() + 300
            while time.monotonic() < give_up_at:
                if any(job["Status"] == "Running" for job in emulator.control.jobs()):
                    action()
                    return
                time.sleep(0.02)
            raise TimeoutError("no job runs")

        meanwhile(when_it_runs)

    return act


def test_a_market_that_stays_above_the_bid_is_followed_up_the_ladder_to_the_bid_that_wins(
    emulator: DlcEmulator, run_dag: Any, once_running: Any
) -> None:
    emulator.control.plan(LONG)
    once_running(lambda: emulator.control.set_price(FIRST, 0.8))
    recovery = {"spot_discount_ladder": [0.6, 0.7, 0.9], "on_pending_timeout": "raise_bid"}
    run = run_dag(one_task(recovery=recovery, pending_timeout=1))
    assert (run.task_states, run.tries) == ({"train": "success"}, {"train": 1})
    assert [bid for _, bid in sent(emulator)] == [0.4, 0.6, 0.7, 0.9]
    assert attempts(run, "verdict", "stop_reason") == [
        ("revoked", ""),
        ("stopped", "pending_timeout"),
        ("stopped", "pending_timeout"),
        ("succeeded", ""),
    ]
    assert attempts(run, "reason") == [
        "",
        "revocation 1 of 5: bids 0.6 of list price",
        "resubmission 2 of 5: bids 0.7 of list price",
        "resubmission 3 of 5: bids 0.9 of list price",
    ]
    assert "resubmitting: revocation 1 of 5, try 1 of 1: bids 0.6 of list price" in run.log
    assert "(pending_timeout); resubmitting: resubmission 3 of 5, try 1 of 1: bids 0.9 of list price" in run.log


@pytest.mark.parametrize("choose", ["in_order", "by_market"])
def test_the_next_type_is_taken_when_the_first_has_no_stock_left(
    emulator: DlcEmulator, run_dag: Any, once_running: Any, choose: str
) -> None:
    emulator.control.plan(LONG)
    emulator.control.set_stock(SECOND, 0 if choose == "by_market" else 5)
    once_running(lambda: emulator.control.set_stock(FIRST, 0))
    run = run_dag(one_task(recovery={"ecs_specs": [SECOND, THIRD], "choose_ecs_spec": choose}))
    assert run.task_states == {"train": "success"}
    taken = THIRD if choose == "by_market" else SECOND
    assert [ecs_spec for ecs_spec, _ in sent(emulator)] == attempts(run, "ecs_spec") == [FIRST, taken]
    why = " (in stock, 0.2 of list price now)" if choose == "by_market" else ""
    assert attempts(run, "reason")[1] == f"revocation 1 of 5: on {taken}{why}"
    assert f"resubmitting: revocation 1 of 5, try 1 of 1: on {taken}{why}" in run.log


def test_a_type_that_never_had_stock_is_left_at_pending_timeout(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.set_stock(FIRST, 0)
    recovery = {"ecs_specs": [SECOND], "on_pending_timeout": "next_ecs_spec"}
    run = run_dag(one_task(recovery=recovery, pending_timeout=1))
    assert run.task_states == {"train": "success"}
    assert sent(emulator) == [(FIRST, 0.4), (SECOND, 0.4)]
    assert f"no capacity for {attempts(run, 'job_id')[0]} in" in run.log
    assert f"(pending_timeout); resubmitting: resubmission 1 of 5, try 1 of 1: on {SECOND}" in run.log


def test_when_every_type_waited_in_vain_airflow_sees_the_pending_timeout(emulator: DlcEmulator, run_dag: Any) -> None:
    for ecs_spec in (FIRST, SECOND):
        emulator.control.set_stock(ecs_spec, 0)
    recovery = {"ecs_specs": [SECOND], "on_pending_timeout": "next_ecs_spec"}
    run = run_dag(one_task(recovery=recovery, pending_timeout=1))
    assert run.task_states == {"train": "failed"}
    assert [ecs_spec for ecs_spec, _ in sent(emulator)] == [FIRST, SECOND]
    assert "SpotPendingTimeout" in run.log
    assert f"none of {FIRST}, {SECOND} had capacity within pending_timeout" in run.log


def test_on_demand_comes_after_exactly_so_many_losses(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(IS_LOST, times=2)
    run = run_dag(one_task(recovery={"on_demand_after": 2, "spot_discount_ladder": [0.9]}))
    assert run.task_states == {"train": "success"}
    assert [bid for _, bid in sent(emulator)] == [0.4, 0.9, None]
    assert attempts(run, "on_demand") == [False, False, True]
    assert run.xcom("train", "outcome")["on_demand"] is True
    why = "on demand, at list price (2 losses in all, recovery.on_demand_after is 2)"
    assert f"resubmitting: revocation 2 of 5, try 1 of 1: {why}" in run.log
    assert f"submitted {run.xcom('train')} attempt 2, on demand, at list price, try 1 of 1" in run.log
    assert "does not run on the spot terms" not in run.log  # there were none to verify


def test_losses_of_earlier_tries_count_towards_on_demand(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(IS_LOST, times=2)
    run = run_dag(one_task(retries=3, recovery={"max_revocations": 0, "on_demand_after": 2}))
    assert (run.task_states, run.tries) == ({"train": "success"}, {"train": 3})
    assert [bid for _, bid in sent(emulator)] == [0.4, 0.4, None]


def test_a_job_on_demand_that_is_evicted_all_the_same_is_no_loss(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(IS_LOST)
    emulator.control.plan(JobPlan(run_seconds=0.1, exit_code=143, evicted=True))
    run = run_dag(one_task(recovery={"on_demand_after": 1}))
    assert run.task_states == {"train": "failed"}
    outcome = run.xcom("train", "outcome")
    assert (outcome["verdict"], outcome["rule"]) == ("unknown", "evicted_without_spot_terms")
    assert attempts(run, "verdict") == ["revoked", "unknown"]
    assert "SpotOutcomeUnknown" in run.log


def test_waiting_in_vain_may_be_answered_at_list_price(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.set_price(FIRST, 1.0)
    run = run_dag(one_task(recovery={"on_pending_timeout": "on_demand"}, pending_timeout=1))
    assert run.task_states == {"train": "success"}
    assert [bid for _, bid in sent(emulator)] == [0.4, None]
    assert "on demand, at list price (recovery.on_pending_timeout)" in run.log


STUCK = JobPlan(run_seconds=30, revoke_after=0.3, logs=('PAI_SPOT_PROGRESS {"step": 5}', "more"))


def test_two_losses_without_progress_stop_the_spending_for_good(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(STUCK, times=None)
    run = run_dag(one_task(retries=3))
    assert (run.task_states, run.tries) == ({"train": "failed"}, {"train": 1})
    assert attempts(run, "progressed") == [True, False, False]
    assert attempts(run, "progress") == [{"step": 5}] * 3
    assert "not resubmitting within this try: 2 losses without any progress" in run.log
    assert "SpotNoProgress" in run.log


def test_the_breaker_counts_over_tries(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(STUCK, times=None)
    run = run_dag(one_task(retries=5, recovery={"max_revocations": 0}))
    assert (run.task_states, run.tries) == ({"train": "failed"}, {"train": 3})


def test_a_job_that_comes_further_each_time_is_never_stopped(emulator: DlcEmulator, run_dag: Any) -> None:
    for step in range(1, 5):
        line = f'PAI_SPOT_PROGRESS {{"step": {step}}}'
        emulator.control.plan(JobPlan(run_seconds=30, revoke_after=0.2, logs=(line, "more")))
    run = run_dag(one_task())
    assert run.task_states == {"train": "success"}
    assert attempts(run, "progressed")[:4] == [True] * 4


def test_where_no_progress_can_be_seen_one_warning_says_so(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(LOST_AFTER_A_SECOND, times=3)
    run = run_dag(one_task())
    assert run.task_states == {"train": "success"}
    assert attempts(run, "progressed")[:3] == [None] * 3
    assert run.log.count("no progress can be seen, so recovery.max_losses_without_progress stops nothing") == 1


CHECKPOINTS = {"checkpoint_uri": "oss://bucket.oss-cn-hangzhou-internal.aliyuncs.com/nightly/"}


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Path]:
    """A folder that Airflow's object storage takes for the bucket, as it would with a provider for `oss`."""
    from airflow.sdk.io import attach, store
    from fsspec.implementations.dirfs import DirFileSystem
    from fsspec.implementations.local import LocalFileSystem

    store._STORE_CACHE.pop("oss", None)  # what an earlier look without such a provider left there
    attach("oss", fs=DirFileSystem(str(tmp_path), LocalFileSystem()))
    (tmp_path / "bucket").mkdir()  # a bucket that is not there tells nothing
    yield tmp_path / "bucket"
    del store._STORE_CACHE["oss"]


def test_where_the_checkpoints_can_be_seen_two_losses_without_one_stop_the_spending(
    emulator: DlcEmulator, run_dag: Any, bucket: Path
) -> None:
    emulator.control.plan(IS_LOST, times=None)
    run = run_dag(one_task(**CHECKPOINTS))
    assert run.task_states == {"train": "failed"}
    assert attempts(run, "progressed", "checkpoint") == [(False, "")] * 2
    assert "SpotNoProgress" in run.log


def test_a_checkpoint_is_progress_once(emulator: DlcEmulator, run_dag: Any, bucket: Path, once_running: Any) -> None:
    def write() -> None:
        [job] = emulator.control.jobs()
        folder = bucket / "nightly" / job["Envs"]["PAI_SPOT_CHECKPOINT_DIR"].split("/checkpoints/")[1]
        folder.mkdir(parents=True)
        (folder / "step-60.pt").write_text("weights")

    emulator.control.plan(JobPlan(run_seconds=30, revoke_after=1.0), times=None)
    once_running(write)
    run = run_dag(one_task(**CHECKPOINTS))
    assert run.task_states == {"train": "failed"}
    assert attempts(run, "progressed") == [True, False, False]
    assert {one.rsplit("/", 1)[1] for one in attempts(run, "checkpoint")} == {"step-60.pt"}


def test_storage_that_no_provider_knows_is_named_once_and_stops_nothing(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(LOST_AFTER_A_SECOND, times=3)
    run = run_dag(one_task(**CHECKPOINTS))
    assert run.task_states == {"train": "success"}
    assert run.log.count("Its checkpoints cannot be looked at: No filesystem registered for scheme oss") == 1


def test_restarts_of_dlc_itself_are_counted_and_two_layers_are_warned_of(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=0.4, revoke_after=0.1))
    settings = {"EnableErrorMonitoringInAIMaster": True, "ErrorMonitoringArgs": "--enable-job-restart=True"}
    vpc = {"VpcId": "vpc-1", "SwitchId": "vsw-1", "SecurityGroupId": "sg-1"}
    run = run_dag(one_task(ecs_spec="ml.gu7ef.8xlarge-gu100", user_vpc=vpc, settings=settings))
    assert run.task_states == {"train": "success"}
    assert attempts(run, "restarts") == [1]
    assert "two layers restart this work: DLC itself (AIMaster), up to 3 times a job" in run.log


def test_a_successor_of_the_two_task_form_follows_the_submit_task_s_policy(emulator: DlcEmulator, run_dag: Any) -> None:
    emulator.control.plan(IS_LOST, times=3)
    recovery = {"spot_discount_ladder": [0.6, 0.9], "ecs_specs": [SECOND], "on_demand_after": 3}
    with DAG(f"dag_{uuid.uuid4().hex[:8]}", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        submit = SubmitSpotJobOperator(task_id="submit", wait_for_completion=False, recovery=recovery, **REQUEST)
        SpotJobSensor(
            task_id="wait",
            job_id=submit.output,
            submitted_by=submit,
            retries=4,
            retry_delay=timedelta(0),
            poke_interval=0.1,
        )
    run = run_dag(dag)
    assert run.task_states == {"submit": "success", "wait": "success"}
    assert sent(emulator) == [(FIRST, 0.4), (SECOND, 0.6), (FIRST, 0.9), (FIRST, None)]
    assert run.xcom("wait", "outcome")["on_demand"] is True
    assert f"resubmitting after loss 1: bids 0.6 of list price on {SECOND}" in run.log
