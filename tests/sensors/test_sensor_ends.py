"""Every way a job can end, under every form and mode of the sensor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSensorTimeout, AirflowSkipException, TaskDeferred
from virtual_time import in_virtual_time

from airflow_provider_pai_spot.attempts.identity import TAG_ON_DEMAND, TAG_TASK_INSTANCE
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.exceptions import PaiDlcUnavailable, SpotCapacityRevoked, SpotWatchEnded
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor
from airflow_provider_pai_spot.sensors.watch import open_watch


@dataclass(frozen=True)
class End:
    """
    One way to end.

    :param after_first_look: what happens to the job once it was seen alive.
    :param words: of the exception.
    """

    plan: JobPlan
    after_first_look: Callable[[Any, str], object] = lambda _bench, _job_id: None
    words: str = ""


ENDS = {
    "succeeded": End(JobPlan(run_seconds=300)),
    "failed": End(JobPlan(run_seconds=300, exit_code=1), words="failed after 5 min"),
    "revoked": End(JobPlan(run_seconds=None, revoke_after=300), words="lost its capacity after 5 min"),
    "stopped by hand": End(
        JobPlan(run_seconds=None), lambda bench, job_id: bench.hook.stop_job(job_id), "was stopped outside Airflow"
    ),
    "unknown": End(JobPlan(run_seconds=300, exit_code=143), words="ended in a way no rule explains"),
    "gone": End(
        JobPlan(run_seconds=300),
        lambda bench, job_id: (bench.clock.sleep(600), bench.hook.delete_job(job_id)),
        "DLC does not know the job",
    ),
}
FORMS = ["poke", "reschedule", "deferrable"]


class Watching:
    """A sensor from its first look to its end, as Airflow would run it in one of its forms."""

    def __init__(self, bench: Any, form: str, end: End, *, job: dict[str, Any] | None = None, **arguments: Any) -> None:
        self.bench, self.form, self.end, self.arguments = bench, form, end, arguments
        bench.control.plan(end.plan)
        self.job_id = bench.job(**job or {})

    def run(self) -> Any:
        return self._in_the_triggerer() if self.form == "deferrable" else self._in_the_worker()

    def _session(self) -> Any:
        return self.bench.session(self.job_id, deferrable=self.form == "deferrable", **self.arguments)

    def _in_the_worker(self) -> Any:
        flow = self._session()
        flow.begin()
        for look in range(60):
            done = flow.look()
            if done is not None:
                return done
            if look == 0:
                self.end.after_first_look(self.bench, self.job_id)
            self.bench.clock.sleep(30)
            flow = self._session() if self.form == "reschedule" else flow
        raise TimeoutError("the sensor goes on and on")

    def _in_the_triggerer(self) -> Any:
        flow = self._session()
        flow.begin()
        with pytest.raises(TaskDeferred) as deferral:
            flow.watch_deferred()
        self.end.after_first_look(self.bench, self.job_id)
        return self._session().resume(self.event_of(deferral.value.trigger))

    def event_of(self, trigger: Any) -> Any:
        return in_virtual_time(self._event(trigger), along=self.bench.control.advance)

    async def _event(self, trigger: Any) -> Any:
        trigger.clock = self.bench.clock
        [event] = [event.payload async for event in trigger.run()]
        return event


@pytest.fixture
def watching(bench: Any, emulator: DlcEmulator, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Watching]:
    monkeypatch.setenv("AIRFLOW_CONN_PAI_DLC_DEFAULT", emulator.connection_uri())
    return lambda form, end, **arguments: Watching(bench, form, end, **arguments)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("on_revoked", ["fail", "resubmit"])
@pytest.mark.parametrize("how", [name for name in ENDS if name != "succeeded"])
def test_what_did_not_succeed_ends_the_sensor_and_only_a_loss_may_be_retried(
    watching: Callable[..., Watching], form: str, on_revoked: str, how: str
) -> None:
    mode = {"on_revoked": on_revoked} | ({"submitted_by": "submit", "retries": 1} if on_revoked == "resubmit" else {})
    run = watching(form, ENDS[how], **mode)
    is_retried = (how, on_revoked) == ("revoked", "resubmit")
    with pytest.raises(SpotCapacityRevoked if is_retried else SpotWatchEnded) as raised:
        run.run()
    assert ("marked for retry" if is_retried else ENDS[how].words) in str(raised.value)
    assert isinstance(raised.value, AirflowFailException) is not is_retried
    watch = open_watch(run.bench.store, run.job_id, 3, run.bench.clock.now())
    assert (watch.lost, watch.losses) == (is_retried, int(is_retried))
    if how != "gone":
        assert run.bench.pushed["outcome"]["verdict"] == how.split(maxsplit=1)[0]


EVICTED = End(JobPlan(run_seconds=300, exit_code=143, evicted=True))
OURS = {TAG_TASK_INSTANCE: "0123456789abcdef"}
MADE = {
    "elsewhere, bidding": ({}, True, "revoked"),
    "elsewhere, on demand": ({"bids": False}, True, "unknown"),
    "elsewhere, on idle quota": (
        {"bids": False, "Settings": {"OversoldType": "ForceQuotaOverSold"}},
        True,
        "idle_quota_eviction",
    ),
    "by us, of a DLC that does not show the bid": ({"Settings": {"Tags": OURS}}, False, "revoked"),
    "by us, on demand": ({"bids": False, "Settings": {"Tags": {**OURS, TAG_ON_DEMAND: "1"}}}, True, "unknown"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("job", "bid_is_shown", "cause"), MADE.values(), ids=MADE)
def test_an_evicted_job_counts_as_lost_to_the_market_only_if_it_bid(
    watching: Callable[..., Watching], form: str, job: dict[str, Any], bid_is_shown: bool, cause: str
) -> None:
    run = watching(form, EVICTED, job=job)
    run.bench.control.switch("echo_spot_spec", bid_is_shown)
    try:
        with pytest.raises(SpotWatchEnded):
            run.run()
    finally:
        run.bench.control.switch("echo_spot_spec", True)
    assert run.bench.pushed["outcome"]["cause"] == cause


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", [{}, {"cancel_on_kill": True}, {"submitted_by": "submit", "retries": 1}], ids=str)
def test_a_success_returns_the_job_s_id_in_every_mode(
    watching: Callable[..., Watching], form: str, mode: dict[str, Any]
) -> None:
    run = watching(form, ENDS["succeeded"], **mode)
    assert run.run() == run.job_id
    assert run.bench.pushed["outcome"]["verdict"] == "succeeded"
    assert run.bench.control.journal("stop", run.job_id) == []


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cancel_on_kill", [False, True])
def test_the_timeout_ends_the_watch_and_the_job_only_if_asked_to(
    watching: Callable[..., Watching], form: str, cancel_on_kill: bool
) -> None:
    run = watching(form, End(JobPlan(run_seconds=None)), timeout=600, cancel_on_kill=cancel_on_kill)
    with pytest.raises(AirflowSensorTimeout, match="it was stopped" if cancel_on_kill else "it is left alone"):
        run.run()
    assert run.bench.status(run.job_id) == ("Stopped" if cancel_on_kill else "Running")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("cancel_on_kill", "is_over", "left"),
    [(True, True, "Stopped"), (True, False, "Running"), (False, True, "Running")],
    ids=["the sensor was ended", "it only moves, or was cleared", "cancel_on_kill=False"],
)
def test_a_kill_ends_the_job_only_if_asked_to_and_if_airflow_gave_the_sensor_up(
    watching: Callable[..., Watching], form: str, cancel_on_kill: bool, is_over: bool, left: str
) -> None:
    run = watching(form, End(JobPlan(run_seconds=None)), cancel_on_kill=cancel_on_kill)
    flow = run._session()
    flow.begin()
    if form == "deferrable":
        with pytest.raises(TaskDeferred) as deferral:
            flow.watch_deferred()
        trigger: Any = deferral.value.trigger
        trigger.clock, trigger.ask_airflow = run.bench.clock, lambda _identity: is_over
        trigger._task_instance = run.bench.context()["ti"]
        asyncio.run(trigger.on_kill())
    else:
        assert flow.look() is None
        flow.kill._is_over = lambda _identity: is_over
        flow.sensor._flow = flow
        flow.sensor.on_kill()
    assert run.bench.status(run.job_id) == left


@pytest.mark.parametrize("how", [name for name in ENDS if name != "succeeded"])
def test_soft_fail_skips_a_deferrable_sensor_whatever_its_trigger_tells(
    watching: Callable[..., Watching], how: str
) -> None:
    run = watching("deferrable", ENDS[how], on_revoked="fail")
    with pytest.raises(TaskDeferred) as deferral:
        run._session().watch_deferred()
    run.end.after_first_look(run.bench, run.job_id)
    event = run.event_of(deferral.value.trigger)
    sensor = SpotJobSensor(task_id="wait", job_id=run.job_id, on_revoked="fail", soft_fail=True)
    with pytest.raises(AirflowSkipException, match="soft_fail"):
        sensor.resume_execution("execute_complete", {"event": event}, run.bench.context())


@pytest.mark.parametrize("deferrable", [False, True], ids=["poke", "over before deferring"])
@pytest.mark.parametrize(
    ("events", "verdict"),
    [(["pod was preempted, token=planted"], "revoked"), (PaiDlcUnavailable("no answer"), "unknown")],
    ids=["told by an event", "events cannot be read"],
)
def test_a_loss_that_only_an_event_tells_of_is_one_on_a_worker_too(
    bench: Any, monkeypatch: pytest.MonkeyPatch, deferrable: bool, events: Any, verdict: str
) -> None:
    def answer(_hook: PaiDlcHook, _job_id: str) -> list[str]:
        if isinstance(events, Exception):
            raise events
        return list(events)

    monkeypatch.setattr(PaiDlcHook, "get_job_events", answer)
    bench.control.plan(JobPlan(run_seconds=60, exit_code=143))
    job_id = bench.job()
    bench.clock.sleep(600)
    flow = bench.session(job_id, deferrable=deferrable)
    flow.begin()
    with pytest.raises(SpotWatchEnded):
        flow.watch_deferred() if deferrable else flow.look()
    assert bench.pushed["outcome"]["verdict"] == verdict
    assert "planted" not in str(bench.pushed) + "".join(bench.log.lines)


@pytest.mark.parametrize("mode", ["poke", "reschedule"])
@pytest.mark.parametrize("try_number", [1, 2])
def test_wrong_rules_end_no_watching_that_has_begun(
    bench: Any, monkeypatch: pytest.MonkeyPatch, try_number: int, mode: str
) -> None:
    job_id = bench.job()
    bench.session(job_id, mode=mode).begin()
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__VERDICT_RULES", "no_such_package_at_all.RULES")
    assert bench.session(job_id, try_number=try_number, mode=mode).look() is None
