"""Losing machines: what general computing and Lingjun jobs look like afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan

FOREVER = JobPlan(run_seconds=None)


@pytest.fixture
def running(sdk: Any, emulator: Any, body: Any) -> Any:
    emulator.control.plan(FOREVER, times=None)
    job_id = sdk.create(body(pods=2))
    emulator.control.advance(60)
    return job_id


def test_a_revoked_job_fails_with_evicted_pods_exit_143_and_preempted_in_its_message(
    emulator: DlcEmulator, running: Any
) -> None:
    emulator.control.revoke(running)
    job = emulator.control.job(running)
    assert (job["Status"], job["ReasonCode"]) == ("Failed", "JobFailed")
    assert "preempted" in job["ReasonMessage"]
    assert [(pod["Status"], pod["SubStatus"]) for pod in job["Pods"]] == [("Failed", "Evicted")] * 2
    assert {pod["StatusDetail"]["ExitCode"] for pod in job["Pods"]} == {143}


def test_losing_one_node_ends_the_job_and_only_that_pod_is_evicted(emulator: DlcEmulator, running: Any) -> None:
    emulator.control.revoke(running, nodes=1)
    job = emulator.control.job(running)
    assert job["Status"] == "Failed"
    assert sorted(pod["SubStatus"] for pod in job["Pods"]) == ["Evicted", "Normal"]


@pytest.mark.parametrize(
    ("switch", "field", "spelling"),
    [
        ("reclaim_reason_code", "ReasonCode", ""),
        ("reclaim_reason_code", "ReasonCode", "SpotInstanceReleased"),
        ("reclaim_reason_message", "ReasonMessage", ""),
    ],
)
def test_how_a_reclaim_is_spelled_can_be_switched(
    emulator: DlcEmulator, running: Any, switch: Any, field: Any, spelling: Any
) -> None:
    emulator.control.switch(switch, spelling)
    emulator.control.revoke(running)
    assert emulator.control.job(running)[field] == spelling


def test_a_plan_can_leave_exit_143_as_the_only_evidence(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.plan(JobPlan(revoke_after=5, run_seconds=60, evicted=False, reason_code="", reason_message=""))
    job_id = sdk.create()
    emulator.control.advance(60)
    job = emulator.control.job(job_id)
    assert (job["Status"], job["ReasonCode"], job["ReasonMessage"]) == ("Failed", "", "")
    assert job["Pods"][0]["SubStatus"] == "Normal"
    assert job["Pods"][0]["StatusDetail"]["ExitCode"] == 143


def test_what_holds_no_machines_cannot_be_revoked(sdk: Any, emulator: DlcEmulator) -> None:
    job_id = sdk.create()
    with pytest.raises(ValueError, match="Creating and holds no machines"):
        emulator.control.revoke(job_id)


def test_a_price_above_the_bid_takes_the_machines_back(sdk: Any, emulator: DlcEmulator, running: Any) -> None:
    emulator.control.set_price("ecs.g7.xlarge", 0.4)
    assert sdk.status(running) == "Running"
    emulator.control.set_price("ecs.g7.xlarge", 0.41)
    assert sdk.status(running) == "Failed"


def test_a_bid_below_the_price_waits_and_says_why_until_the_price_falls(
    sdk: Any, emulator: DlcEmulator, body: Any
) -> None:
    emulator.control.set_price("ecs.g7.xlarge", 0.8)
    job_id = sdk.create(body(bid=0.5))
    emulator.control.advance(86_400)
    events = sdk.client.get_job_events(job_id, sdk.models.GetJobEventsRequest()).body.events
    assert sdk.status(job_id) == "Queuing"
    assert any("spot bid too low" in event for event in events)
    emulator.control.set_price("ecs.g7.xlarge", 0.5)
    assert sdk.status(job_id) == "EnvPreparing"


def test_stock_goes_to_the_highest_bid_and_a_freed_machine_to_the_next(
    sdk: Any, emulator: DlcEmulator, body: Any
) -> None:
    emulator.control.plan(FOREVER, times=None)
    emulator.control.set_stock("ecs.g7.xlarge", 0)
    low, high = sdk.create(body(bid=0.3)), sdk.create(body(bid=0.6))
    emulator.control.advance(10)
    emulator.control.set_stock("ecs.g7.xlarge", 1)
    emulator.control.advance(10)
    assert (sdk.status(low), sdk.status(high)) == ("Queuing", "Running")
    sdk.stop(high)
    emulator.control.advance(10)
    assert sdk.status(low) == "Running"


def test_a_shrinking_stock_takes_from_the_lowest_bid(sdk: Any, emulator: DlcEmulator, body: Any) -> None:
    emulator.control.plan(FOREVER, times=None)
    low, high = sdk.create(body(bid=0.3)), sdk.create(body(bid=0.6))
    emulator.control.advance(10)
    emulator.control.set_stock("ecs.g7.xlarge", 1)
    assert (sdk.status(low), sdk.status(high)) == ("Failed", "Running")


def test_a_replayed_trace_of_stock_gives_and_takes(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.plan(FOREVER)
    emulator.control.replay_stock("ecs.g7.xlarge", [0, 0, 1, 1, 0], gap_seconds=30)
    job_id = sdk.create()
    emulator.control.advance(59)
    assert sdk.status(job_id) == "Queuing"
    emulator.control.advance(11)
    assert sdk.status(job_id) == "Running"
    emulator.control.advance(60)
    assert sdk.status(job_id) == "Failed"


def test_replayed_prices_are_followed(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.plan(FOREVER)
    emulator.control.replay_prices("ecs.g7.xlarge", [(0, 0.9), (60, 0.2), (120, 0.9)])
    job_id = sdk.create()
    seen = []
    for _ in range(3):
        emulator.control.advance(50)
        seen.append(sdk.status(job_id))
    assert seen == ["Queuing", "Running", "Failed"]


def test_on_demand_jobs_do_not_care_about_the_market(sdk: Any, emulator: DlcEmulator, body: Any) -> None:
    emulator.control.plan(FOREVER)
    emulator.control.set_stock("ecs.g7.xlarge", 0)
    emulator.control.set_price("ecs.g7.xlarge", 1.0)
    job_id = sdk.create(body(bid=None))
    emulator.control.advance(10)
    assert sdk.status(job_id) == "Running"


def test_aimaster_brings_a_lingjun_job_back_with_its_history(
    sdk: Any, emulator: DlcEmulator, aimaster_body: Any
) -> None:
    emulator.control.plan(FOREVER)
    job_id = sdk.create(aimaster_body)
    emulator.control.advance(10)
    before = {pod["PodId"]: pod["PodUid"] for pod in emulator.control.job(job_id)["Pods"]}
    emulator.control.revoke(job_id)
    assert (sdk.status(job_id), sdk.get(job_id)["SubStatus"]) == ("Restarting", "Restarting")
    emulator.control.advance(10)
    job = emulator.control.job(job_id)
    assert (job["Status"], job["SubStatus"], job["RestartTimes"]) == ("Running", "", "1/2")
    walked = [entry["Status"] for entry in job["StatusHistory"]][3:]
    assert walked == ["Running", "Restarting", "Bidding", "EnvPreparing", "Running"]
    workers = [pod for pod in job["Pods"] if pod["Type"] == "worker"]
    for pod in workers:
        (former,) = pod["HistoryPods"]
        assert former["PodUid"] == before[pod["PodId"]] != pod["PodUid"]
        assert former["SubStatus"] == "Evicted"
    (record,) = job["RestartRecord"]
    assert (record["JobRestartCount"], record["RestartLevelType"]) == (1, "Job")


def test_beyond_its_restarts_a_job_fails(sdk: Any, emulator: DlcEmulator, aimaster_body: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=None, revoke_after=5, revoke_times=10))
    job_id = sdk.create(aimaster_body)
    emulator.control.advance(600)
    job = sdk.get(job_id)
    ran = [entry["Status"] for entry in job["StatusHistory"]].count("Running")
    assert (job["Status"], job["RestartTimes"], ran) == ("Failed", "2/2", 3)
    assert "preempted" in job["ReasonMessage"]


def test_list_jobs_shows_restarts_as_a_plain_number(sdk: Any, emulator: DlcEmulator, aimaster_body: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=None, revoke_after=5))
    sdk.create(aimaster_body)
    emulator.control.advance(60)
    (job,) = sdk.client.list_jobs(sdk.models.ListJobsRequest()).body.jobs
    assert job.restart_times == "1"


def test_in_async_mode_only_the_lost_pods_start_again(sdk: Any, emulator: DlcEmulator, body: Any) -> None:
    arguments = "--job-execution-mode Async --enable-job-restart True"
    settings = {"EnableErrorMonitoringInAIMaster": True, "ErrorMonitoringArgs": arguments}
    emulator.control.plan(FOREVER)
    job_id = sdk.create(body(ecs_spec="ml.gu7xf.8xlarge-gu108", pods=2, Settings=settings))
    emulator.control.advance(10)
    emulator.control.revoke(job_id, nodes=[f"{job_id}-worker-1"])
    emulator.control.advance(10)
    job = emulator.control.job(job_id)
    again = {pod["PodId"]: bool(pod["HistoryPods"]) for pod in job["Pods"] if pod["Type"] == "worker"}
    assert again == {f"{job_id}-worker-0": False, f"{job_id}-worker-1": True}
    assert (job["Status"], job["RestartTimes"]) == ("Running", "1/3")


def test_logs_of_a_former_incarnation_are_found_by_its_uid(sdk: Any, emulator: DlcEmulator, aimaster_body: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=100, logs=("a", "b", "c", "d"), revoke_after=30))
    job_id = sdk.create(aimaster_body)
    emulator.control.advance(35)
    pod = emulator.control.job(job_id)["Pods"][0]
    former = pod["HistoryPods"][0]["PodUid"]
    logs = [
        len(sdk.client.get_pod_logs(job_id, pod["PodId"], sdk.models.GetPodLogsRequest(pod_uid=uid)).body.logs)
        for uid in (None, former)
    ]
    assert logs == [1, 2]


def test_lingjun_is_judged_by_the_average_price(sdk: Any, emulator: DlcEmulator, body: Any) -> None:
    emulator.control.plan(FOREVER)
    job_id = sdk.create(body(ecs_spec="ml.gu7xf.8xlarge-gu108", bid=0.4))
    emulator.control.advance(3600)
    emulator.control.set_price("ml.gu7xf.8xlarge-gu108", 0.6)
    assert sdk.status(job_id) == "Running"
    emulator.control.advance(1500)
    assert sdk.status(job_id) == "Running"
    emulator.control.advance(600)
    assert sdk.status(job_id) == "Failed"


def test_whether_general_spot_shows_bidding_can_be_switched(sdk_for: Any) -> None:
    with DlcEmulator(clock="manual", behaviours={"general_spot_bidding": True}) as emulator:
        sdk = sdk_for(emulator)
        job_id = sdk.create()
        emulator.control.advance(0.15)
        assert sdk.status(job_id) == "Bidding"


def test_the_journal_tells_everything_that_happened_to_a_job(emulator: DlcEmulator, running: Any) -> None:
    emulator.control.revoke(running)
    kinds = [entry["kind"] for entry in emulator.control.journal(job_id=running)]
    assert kinds[0] == "created"
    assert {"bid", "status", "revoked"} <= set(kinds)
    (created,) = emulator.control.journal("created")
    assert created["detail"]["bids"] == [{"instance_type": "ecs.g7.xlarge", "kind": "discount", "limit": 0.4}]


def test_plans_are_used_in_order_by_the_jobs_they_match(sdk: Any, emulator: DlcEmulator, body: Any) -> None:
    emulator.control.plan(JobPlan(exit_code=7), {"tags": {"a": "1"}})
    emulator.control.plan(JobPlan(exit_code=8), {"display_name": "other"})
    emulator.control.plan(JobPlan(exit_code=9))
    emulator.control.plan(JobPlan(exit_code=10))
    jobs = [
        sdk.create(body()),
        sdk.create(body(DisplayName="the-other")),
        sdk.create(body()),
        sdk.create(body(Settings={"Tags": {"a": "1"}})),
        sdk.create(body()),
    ]
    emulator.control.advance(60)
    codes = [emulator.control.job(job_id)["Pods"][0]["StatusDetail"]["ExitCode"] for job_id in jobs]
    assert codes == [9, 8, 10, 7, 0]
