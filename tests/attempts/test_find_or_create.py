"""One CreateJob for one attempt, whatever gets lost: through the vendor SDK, on the emulator's manual clock."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.ledger import AttemptLedger, MemoryStore
from airflow_provider_pai_spot.attempts.task_jobs import Ended, Waiting
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import StopReason
from airflow_provider_pai_spot.dlc.terms import AS_REQUESTED
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.exceptions import PaiDlcError, SpotJobError, SpotSubmissionRefused

LAG = 20.0


def begin_until_it_holds(task: Any, tries: int = 12) -> Waiting | Ended:
    """Let Airflow retry, as it would, a try that an unreachable DLC failed."""
    for try_number in range(1, tries + 1):
        try:
            return task.begin(try_number, generation=tries).begin()
        except PaiDlcError:
            task.clock.sleep(60)
    raise AssertionError("no try held")


@pytest.mark.parametrize("seed", range(100))
def test_a_lost_answer_and_a_list_that_lags_still_make_one_job(emulator: DlcEmulator, new_task: Any, seed: int) -> None:
    rng = random.Random(seed)
    control = emulator.control
    control.switch("list_lag_seconds", LAG)
    control.fault("CreateJob", "lost_answer", times=rng.randint(1, 2))
    for _ in range(rng.randint(0, 3)):
        kind = rng.choice(["drop", "throttle", "server_error", "html_error"])
        control.fault(rng.choice(["CreateJob", "ListJobs", "GetJob"]), kind, times=rng.randint(1, 3))
    task = new_task(run_id=f"seed-{seed}")
    assert isinstance(begin_until_it_holds(task), Waiting)
    assert len(task.jobs()) == 1
    assert AttemptLedger(task.store).attempts[-1].job_id == task.jobs()[0]["JobId"]


def test_a_lost_answer_makes_one_job_in_a_workspace_that_is_not_the_connection_s(
    emulator: DlcEmulator, new_task: Any
) -> None:
    emulator.control.fault("CreateJob", "lost_answer")
    task = new_task(run_id="elsewhere", job_overrides={"WorkspaceId": "2"})
    step = task.begin().begin()
    assert [(job["JobId"], job["WorkspaceId"]) for job in task.jobs()] == [(step.job_id, "2")]


@pytest.mark.parametrize("seed", range(30))
def test_a_try_that_dies_while_submitting_leaves_one_job_to_the_next(
    emulator: DlcEmulator, kept_log: Any, new_task: Any, seed: int
) -> None:
    """kill -9 between CreateJob and storing its id: the intent is there, the id is not."""
    rng = random.Random(seed)
    emulator.control.switch("list_lag_seconds", rng.uniform(0, LAG))
    task = new_task(run_id=f"killed-{seed}")
    jobs = task.begin()
    jobs.ledger.put(jobs._next_attempt(AS_REQUESTED, False))
    if applied := rng.random() < 0.7:
        jobs.hook.create_job(jobs._body(jobs.ledger.attempts[-1], AS_REQUESTED))
    task.begin(2).begin()
    assert len(task.jobs()) == 1
    assert any("interrupted while it submitted" in line for line in kept_log.lines)
    assert any("submitted dlc" in line for line in kept_log.lines) is not applied


@pytest.mark.parametrize("settings_in_list", [True, False])
def test_a_lost_state_store_is_recovered_from_the_tags(
    emulator: DlcEmulator, new_task: Any, settings_in_list: bool
) -> None:
    emulator.control.switch("settings_in_list", settings_in_list)
    task = new_task(run_id=f"forgotten-{settings_in_list}")
    first = task.begin().begin()
    task.store = MemoryStore()
    assert task.begin(2).begin() == first
    assert len(task.jobs()) == 1
    [attempt] = AttemptLedger(task.store).attempts
    assert (attempt.number, attempt.generation, attempt.request_hash) == (0, 3, task.request.request_hash)


def test_a_job_of_a_deleted_run_with_the_same_id_is_stopped_first(emulator: DlcEmulator, new_task: Any) -> None:
    old = new_task(run_id="scheduled__2026-11-30")
    old.begin().begin()
    emulator.control.advance(600)
    new = new_task(run_id="scheduled__2026-11-30")
    new.begin().begin()
    assert new.jobs()[0]["Status"] == "Stopped"
    assert len(new.live()) == 1


def test_last_week_s_success_is_never_this_week_s(emulator: DlcEmulator, new_task: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=60))
    old = new_task(run_id="scheduled__again")
    old.begin().begin()
    emulator.control.advance(600)
    new = new_task(run_id="scheduled__again")
    assert isinstance(new.begin().begin(), Waiting)
    assert new.jobs()[0]["Status"] == "Succeeded"
    assert len(new.jobs()) == 2


@pytest.mark.parametrize(
    ("plan", "status"), [(JobPlan(run_seconds=60), "Succeeded"), (JobPlan(run_seconds=None), "Stopped")]
)
def test_clocks_that_differ_do_not_make_a_deleted_run_s_job_this_run_s(
    emulator: DlcEmulator, new_task: Any, plan: JobPlan, status: str
) -> None:
    """Airflow's clock is ten minutes behind DLC's, and the run is made anew within them."""
    emulator.control.plan(plan)
    old = new_task(run_id=f"behind-{status}")
    old.begin().begin()
    emulator.control.advance(300)
    new = new_task(run_id=f"behind-{status}")
    new.run_started_at = new.clock.now() - timedelta(minutes=10)
    assert isinstance(new.begin().begin(), Waiting)
    assert new.jobs()[0]["Status"] == status
    assert len(new.live()) == 1


def test_a_person_s_clear_after_editing_the_command_replaces_the_job_and_names_the_keys(
    emulator: DlcEmulator, kept_log: Any, new_task: Any
) -> None:
    task = new_task(run_id="edited")
    task.begin(generation=3).begin()
    task.edit(user_command="python train.py --lr 0.1")
    task.begin(2, generation=4).begin()
    assert task.jobs()[0]["Status"] == "Stopped"
    assert [job["UserCommand"] for job in task.live()] == ["python train.py --lr 0.1"]
    assert any("differs in: UserCommand" in line for line in kept_log.lines)


def test_a_person_s_clear_of_the_same_request_takes_the_job_over(emulator: DlcEmulator, new_task: Any) -> None:
    task = new_task(run_id="same")
    first = task.begin(generation=3).begin()
    assert task.begin(2, generation=4).begin() == first
    assert task.pushed["job_id"] == first.job_id  # type: ignore[union-attr]
    assert len(task.jobs()) == 1


def test_without_reattach_a_retry_stops_the_job_and_submits_another(emulator: DlcEmulator, new_task: Any) -> None:
    task = new_task(run_id="afresh")
    task.begin().begin()
    task.begin(2, reattach=False).begin()
    assert len(task.jobs()) == 2
    assert len(task.live()) == 1


def test_a_success_that_was_consumed_is_told_again_and_not_repeated(emulator: DlcEmulator, new_task: Any) -> None:
    """The worker died after consuming and before Airflow heard of it."""
    emulator.control.plan(JobPlan(run_seconds=60))
    task = new_task(run_id="green")
    task.begin().begin()
    emulator.control.advance(600)
    for try_number in (2, 3):
        jobs = task.begin(try_number)
        ended = jobs.begin()
        assert isinstance(ended, Ended)
        jobs.conclude(ended.outcome)
    assert len(task.jobs()) == 1


def test_a_failure_is_raised_once_and_then_tried_again(emulator: DlcEmulator, new_task: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=60, exit_code=1))
    task = new_task(run_id="red")
    task.begin().begin()
    emulator.control.advance(600)
    jobs = task.begin(2)
    ended = jobs.begin()
    assert isinstance(ended, Ended)
    with pytest.raises(SpotJobError):
        jobs.conclude(ended.outcome)
    assert isinstance(task.begin(3).begin(), Waiting)
    assert [one.number for one in AttemptLedger(task.store).attempts] == [0, 1]


def test_a_job_that_finished_while_nobody_looked_is_told_truthfully(emulator: DlcEmulator, new_task: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=60))
    task = new_task(run_id="asleep")
    task.begin().begin()
    emulator.control.advance(timedelta(hours=9).total_seconds())
    jobs = task.begin(2)
    ended = jobs.begin()
    assert isinstance(ended, Ended)
    assert jobs.conclude(ended.outcome).outcome.verdict.value == "succeeded"  # type: ignore[union-attr]
    assert len(task.jobs()) == 1


def test_a_refusal_leaves_nothing_behind(emulator: DlcEmulator, new_task: Any) -> None:
    emulator.control.fault("CreateJob", "server_error", times=1, status=400, code="InvalidParameter")
    task = new_task(run_id="refused")
    with pytest.raises(SpotSubmissionRefused):
        task.begin().begin()
    assert task.jobs() == []
    assert AttemptLedger(task.store).newest is None


def test_a_cleared_submit_task_finds_the_successors_that_its_sensor_submitted(
    emulator: DlcEmulator, new_task: Any
) -> None:
    task = new_task(run_id="two-tasks")
    jobs = task.begin()
    first = jobs.begin()
    assert isinstance(first, Waiting)
    jobs.hand_over(first.job_id)
    emulator.control.advance(60)
    emulator.control.revoke(first.job_id)
    by_sensor = new_task(run_id="two-tasks")
    by_sensor.run_started_at = task.run_started_at
    sensor_jobs = by_sensor.begin(2)
    sensor_jobs.ledger.adopt(jobs.ledger.ledger_id)
    sensor_jobs.ledger.put(sensor_jobs.finder.attempt_of(Job(sensor_jobs.hook.get_job(first.job_id))))
    successor = sensor_jobs.submit()
    assert task.begin(2, generation=4).begin() == successor
    assert [job["JobId"] for job in task.live()] == [successor.job_id]


def test_clocks_that_differ_do_not_hide_a_job_of_ours(emulator: DlcEmulator, new_task: Any) -> None:
    """Airflow's clock is half a minute ahead of DLC's, and an answer is lost."""
    emulator.control.fault("CreateJob", "lost_answer")
    task = new_task(run_id="skewed")
    task.run_started_at = task.clock.now() + timedelta(seconds=30)
    task.begin().begin()
    assert len(task.jobs()) == 1


def test_a_cleared_run_that_starts_anew_still_knows_an_interrupted_submission(
    emulator: DlcEmulator, new_task: Any
) -> None:
    """Airflow gives a finished run another start date when a person clears it."""
    task = new_task(run_id="started-anew")
    jobs = task.begin()
    jobs.ledger.put(jobs._next_attempt(AS_REQUESTED, False))
    jobs.hook.create_job(jobs._body(jobs.ledger.attempts[-1], AS_REQUESTED))
    emulator.control.advance(3600)
    task.run_started_at = task.clock.now()
    task.begin(2, generation=4).begin()
    assert len(task.jobs()) == 1


@pytest.mark.parametrize("namespace", ["localhost", "localhost:8080", "0.0.0.0:8080", "127.0.0.2:8080"])
def test_under_a_name_that_everybody_has_no_job_of_another_installation_is_touched(
    emulator: DlcEmulator, new_task: Any, namespace: str
) -> None:
    run_id = f"scheduled__{namespace}"
    production = new_task(run_id=run_id, namespace=namespace)
    production.begin().begin()
    emulator.control.advance(5)
    staging = new_task(run_id=run_id, namespace=namespace)
    staging.begin().begin()
    staging.begin(2).begin()
    assert [job["Status"] for job in production.jobs()].count("Stopped") == 0
    assert len(production.live()) == 2


def test_a_success_after_a_clear_is_told_again_to_the_retry_of_that_clear(emulator: DlcEmulator, new_task: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=600))
    task = new_task(run_id="cleared-then-green")
    task.begin(generation=2).begin()
    task.begin(2, generation=3).begin()
    emulator.control.advance(3600)
    for try_number in (2, 3):
        jobs = task.begin(try_number, generation=3)
        ended = jobs.begin()
        assert isinstance(ended, Ended)
        jobs.conclude(ended.outcome)
    assert len(task.jobs()) == 1


def test_of_two_jobs_of_one_attempt_the_one_that_lives_counts(emulator: DlcEmulator, new_task: Any) -> None:
    task = new_task(run_id="twins")
    jobs = task.begin()
    jobs.ledger.put(jobs._next_attempt(AS_REQUESTED, False))
    body = jobs._body(jobs.ledger.attempts[-1], AS_REQUESTED)
    older = jobs.hook.create_job(body)
    jobs.hook.stop_job(older)
    emulator.control.advance(60)
    younger = jobs.hook.create_job(body)
    assert task.begin(2).begin() == Waiting(younger)


def test_a_wait_that_dlc_asks_for_is_obeyed_within_reason(emulator: DlcEmulator, new_task: Any) -> None:
    emulator.control.fault("CreateJob", "throttle", retry_after=86_400_000)
    task = new_task(run_id="patient")
    began = task.clock.now()
    task.begin().begin()
    assert task.clock.now() - began < timedelta(minutes=3)


def test_a_minute_of_trouble_before_anything_was_submitted_costs_no_try(emulator: DlcEmulator, new_task: Any) -> None:
    emulator.control.fault("ListJobs", "server_error", times=25)
    task = new_task(run_id="troubled")
    assert isinstance(task.begin(2).begin(), Waiting)


def test_a_job_that_was_deleted_while_its_stop_was_awaited_is_over(emulator: DlcEmulator, new_task: Any) -> None:
    task = new_task(run_id="deleted")
    jobs = task.begin()
    first = jobs.begin()
    assert isinstance(first, Waiting)
    emulator.control.fault("GetJob", "server_error", times=None, status=404, code="NotFound")
    outcome = jobs.stop(jobs.ledger.attempts[-1], first.job_id, StopReason.REPLACED)
    assert outcome.rule == "job_gone"


class DeadSupervisor(MemoryStore):
    """Airflow's store, as a task process sees it whose supervisor was killed after the first request."""

    def __init__(self, is_dead: Callable[[], bool]) -> None:
        super().__init__()
        self._is_dead = is_dead

    def set(self, key: str, value: Any) -> None:
        if self._is_dead():
            raise EOFError("Request socket closed")
        super().set(key, value)


def test_a_worker_that_airflow_has_given_up_sends_nothing_more(emulator: DlcEmulator, new_task: Any) -> None:
    """Another try may be under way: who can store no intent must not submit."""

    def sent() -> int:
        return int(emulator.control.requests().get("CreateJob", 0))

    emulator.control.fault("CreateJob", "drop", times=3)
    task = new_task(run_id="given-up")
    before = sent()
    task.store = DeadSupervisor(lambda: sent() > before)
    with pytest.raises(EOFError):
        task.begin().begin()
    assert sent() == before + 1
    assert task.jobs() == []
