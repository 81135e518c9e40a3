"""One successor for one lost job, whoever asks for it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.identity import Owner, TaskIdentity
from airflow_provider_pai_spot.attempts.ledger import STORE_KEY, Attempt, AttemptLedger, MemoryStore
from airflow_provider_pai_spot.attempts.moment import TryMoment
from airflow_provider_pai_spot.attempts.report import Report
from airflow_provider_pai_spot.attempts.submission import Submitter
from airflow_provider_pai_spot.attempts.task_jobs import TaskJobs, Wanted
from airflow_provider_pai_spot.dlc.job_request import build_job_request
from airflow_provider_pai_spot.emulator import JobPlan
from airflow_provider_pai_spot.exceptions import SpotSubmissionRefused
from airflow_provider_pai_spot.recovery import SpotRecovery
from airflow_provider_pai_spot.sensors.successor import submit_successor

REQUEST = {
    "image": "registry.example.com/train:1",
    "user_command": "python train.py",
    "ecs_spec": "ecs.g7.xlarge",
    "spot_discount_limit": 0.9,
    "checkpoint_uri": "oss://bucket.oss-cn-hangzhou-internal.aliyuncs.com/nightly/",
    "workspace_id": "1",
    "display_name": "nightly-train",
}


class Work:
    """The submit task's work, which it and any number of sensors deal with, each with a store of its own."""

    def __init__(self, bench: Any, run_id: str, namespace: str) -> None:
        self.bench = bench
        self.identity = TaskIdentity(namespace=namespace, dag_id="nightly", run_id=run_id, task_id="submit")
        self.run_started_at: datetime = bench.clock.now()

    def dealt_with_by(self, store: MemoryStore, *, hook: Any = None, try_number: int = 2) -> TaskJobs:
        hook, clock, log = hook or self.bench.hook, self.bench.clock, self.bench.log
        ledger = AttemptLedger(store)
        return TaskJobs(
            hook=hook,
            submitter=Submitter(
                hook=hook,
                identity=self.identity,
                ledger=ledger,
                since=self.run_started_at,
                patience=120.0,
                clock=clock,
                log=log,
            ),
            ledger=ledger,
            wanted=Wanted(request=build_job_request(REQUEST), recovery=SpotRecovery(), owner=Owner.RUN),
            moment=TryMoment(
                try_number=try_number, max_tries=3, started_at=clock.now(), run_started_at=self.run_started_at
            ),
            report=Report(push=lambda *_: None, log=log, console_url=lambda job: f"https://c/{job}", console_key="c"),
            clock=clock,
            log=log,
        )

    def lost_job(self, **changes: Any) -> str:
        """A job that the submit task handed over and that then lost its capacity."""
        self.bench.control.plan(JobPlan(run_seconds=None, revoke_after=10))
        jobs = self.dealt_with_by(MemoryStore(), try_number=1)
        job_id = jobs.submit(**changes).job_id
        self.bench.clock.sleep(600)
        assert self.bench.control.job(job_id)["Status"] == "Failed"
        return job_id

    def jobs(self) -> list[dict[str, Any]]:
        return [job for job in self.bench.control.jobs() if _tags(job).get("airflow-ti") == self.identity.key]

    def live(self) -> list[str]:
        return [job["JobId"] for job in self.jobs() if job["Status"] not in ("Succeeded", "Failed", "Stopped")]


class WorkerGone(BaseException):
    """A worker process that dies."""


class DiesAfterwards:
    """The hook of a worker that submits a job and dies before it looks for another sensor's."""

    def __init__(self, hook: Any) -> None:
        self._hook, self._submitted = hook, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hook, name)

    def create_job(self, body: Any) -> str:
        self._submitted = True
        return str(self._hook.create_job(body))

    def list_jobs(self, **query: Any) -> Any:
        if self._submitted:
            raise WorkerGone
        return self._hook.list_jobs(**query)


def _tags(job: dict[str, Any]) -> dict[str, str]:
    return job.get("Settings", {}).get("Tags", {})


@pytest.fixture(params=["airflow.example.com", "localhost:8080"])
def work(bench: Any, request: pytest.FixtureRequest) -> Work:
    return Work(bench, request.node.name, request.param)


def test_two_sensors_on_one_submit_task_agree_on_one_successor(work: Work) -> None:
    lost = work.lost_job()
    first = submit_successor(work.dealt_with_by(MemoryStore()), lost, 1)
    assert submit_successor(work.dealt_with_by(MemoryStore()), lost, 1) == first
    assert work.live() == [first]


def test_a_successor_that_is_over_is_taken_too(work: Work) -> None:
    lost = work.lost_job()
    work.bench.control.plan(JobPlan(run_seconds=5))
    first = submit_successor(work.dealt_with_by(MemoryStore()), lost, 1)
    work.bench.clock.sleep(600)
    assert submit_successor(work.dealt_with_by(MemoryStore()), lost, 1) == first
    assert len(work.jobs()) == 2


def test_a_deleted_ledger_does_not_give_a_second_successor(work: Work) -> None:
    lost, store = work.lost_job(), MemoryStore()
    first = submit_successor(work.dealt_with_by(store), lost, 1)
    store.set(STORE_KEY, None)
    assert submit_successor(work.dealt_with_by(store), lost, 1) == first
    assert work.live() == [first]


@pytest.mark.parametrize("lag", [0.0, 20.0, 90.0])
def test_two_sensors_that_look_at_the_same_moment_keep_the_older_job(work: Work, lag: float) -> None:
    """DLC's list shows neither job to the other sensor before both are submitted."""
    lost = work.lost_job()
    work.bench.control.switch("list_lag_seconds", lag)
    rival: list[str] = []

    class MeanwhileAnother:
        """Between the look and the submission of one sensor, the other one submits."""

        def __getattr__(self, name: str) -> Any:
            return getattr(work.bench.hook, name)

        def create_job(self, body: Any) -> str:
            with pytest.raises(WorkerGone):
                submit_successor(work.dealt_with_by(rival_store, hook=DiesAfterwards(work.bench.hook)), lost, 1)
            rival.append(str(AttemptLedger(rival_store).attempts[-1].job_id))
            work.bench.clock.sleep(1)
            return str(work.bench.hook.create_job(body))

    store, rival_store = MemoryStore(), MemoryStore()
    assert [submit_successor(work.dealt_with_by(store, hook=MeanwhileAnother()), lost, 1)] == rival
    assert submit_successor(work.dealt_with_by(rival_store, try_number=3), lost, 1) == rival[0]
    work.bench.clock.sleep(60)
    assert work.live() == rival
    assert [AttemptLedger(one).attempts[-1].job_id for one in (store, rival_store)] == rival * 2


@pytest.mark.parametrize("applied", [True, False])
def test_an_interrupted_submission_is_found_again(work: Work, applied: bool) -> None:
    lost, store = work.lost_job(), MemoryStore()
    first = submit_successor(work.dealt_with_by(store), lost, 1) if applied else None
    ledger = AttemptLedger(store)
    if applied:
        ledger.change(1, job_id=None)
    else:
        ledger.adopt("l")
        ledger.put(Attempt(number=0, generation=3, request_hash="h", job_id=lost, consumed=True, verdict="revoked"))
        ledger.put(Attempt(number=1, generation=3, request_hash="h", submitting_at=work.bench.clock.now().isoformat()))
    second = submit_successor(work.dealt_with_by(store), lost, 1)
    assert work.live() == [second]
    assert first in (None, second)


def test_the_successor_of_a_successor_counts_on(work: Work) -> None:
    lost, store = work.lost_job(), MemoryStore()
    work.bench.control.plan(JobPlan(run_seconds=None, revoke_after=10))
    first = submit_successor(work.dealt_with_by(store), lost, 1)
    work.bench.clock.sleep(600)
    second = submit_successor(work.dealt_with_by(store), first, 2)
    assert [job["Settings"]["Tags"]["airflow-attempt"] for job in work.jobs()] == ["0", "1", "2"]
    assert work.live() == [second]
    assert len({job["Settings"]["Tags"]["airflow-ledger"] for job in work.jobs()}) == 1


def test_the_successor_goes_on_in_the_lost_job_s_checkpoint_folder(work: Work) -> None:
    lost = work.lost_job(new_folder=True)
    submit_successor(work.dealt_with_by(MemoryStore()), lost, 1)
    folders = {job["Envs"]["PAI_SPOT_CHECKPOINT_DIR"] for job in work.jobs()}
    assert len(folders) == 1
    assert folders.pop().endswith("g2")
    assert [job["Envs"]["PAI_SPOT_RESUME"] for job in work.jobs()] == ["0", "1"]


def test_an_outage_of_a_minute_does_not_cost_a_try(work: Work) -> None:
    lost = work.lost_job()
    for operation in ("GetJob", "ListJobs"):
        work.bench.control.fault(operation, "server_error", times=3)
    assert work.live() == [] != [submit_successor(work.dealt_with_by(MemoryStore()), lost, 1)]


def test_a_job_made_elsewhere_has_no_successor(work: Work, bench: Any) -> None:
    by_hand = bench.job()
    with pytest.raises(SpotSubmissionRefused, match=f"{by_hand}.*airflow-ti is None.*on_revoked='fail'"):
        submit_successor(work.dealt_with_by(MemoryStore()), by_hand, 1)
    assert work.jobs() == []


def test_another_task_s_job_has_no_successor_here(work: Work, bench: Any) -> None:
    other = Work(bench, "another-run", "airflow.example.com").lost_job()
    with pytest.raises(SpotSubmissionRefused, match="no successor is submitted"):
        submit_successor(work.dealt_with_by(MemoryStore()), other, 1)
    assert work.jobs() == []
