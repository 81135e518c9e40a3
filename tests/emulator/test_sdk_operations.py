"""The vendor's SDK, unmodified, over real HTTP: what each operation answers."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan


@pytest.mark.parametrize(
    "limit", [{"SpotDiscountLimit": 0.4}, {"SpotPriceLimit": 0.011}], ids=["bid by discount", "bid by price"]
)
def test_the_vendors_two_samples_run_to_success(sdk: Any, emulator: DlcEmulator, body: Any, limit: Any) -> None:
    request = body()
    request["JobSpecs"][0]["SpotSpec"] = {"SpotStrategy": "SpotWithPriceLimit", **limit}
    job_id = sdk.create(request)
    emulator.control.advance(60)
    job = sdk.get(job_id)
    assert (job["Status"], job["ReasonCode"]) == ("Succeeded", "JobSucceeded")
    assert limit.items() <= job["JobSpecs"][0]["SpotSpec"].items()


def test_a_job_id_is_dlc_and_13_base_36_characters(sdk: Any) -> None:
    job_id = sdk.create()
    assert job_id.startswith("dlc")
    assert len(job_id) == 16
    assert job_id.isalnum()
    assert job_id == job_id.lower()


def test_general_computing_walks_through_queuing_and_never_bids(sdk: Any, emulator: DlcEmulator) -> None:
    job_id = sdk.create()
    emulator.control.advance(60)
    history = [entry["Status"] for entry in sdk.get(job_id)["StatusHistory"]]
    assert history == ["Creating", "Queuing", "EnvPreparing", "Running", "Succeeded"]


def test_lingjun_bids_openly(sdk: Any, emulator: DlcEmulator, aimaster_body: Any) -> None:
    job_id = sdk.create(aimaster_body)
    emulator.control.advance(60)
    assert "Bidding" in [entry["Status"] for entry in sdk.get(job_id)["StatusHistory"]]


def test_only_the_times_of_what_happened_are_shown(sdk: Any, emulator: DlcEmulator) -> None:
    job_id = sdk.create()
    waiting = emulator.control.job(job_id)
    assert {key for key in waiting if key.startswith("Gmt")} == {"GmtCreateTime"}
    emulator.control.advance(60)
    finished = emulator.control.job(job_id)
    assert "GmtSuccessedTime" in finished
    assert "GmtFailedTime" not in finished
    assert "GmtStoppedTime" not in finished


def test_pods_have_a_lower_case_type_and_the_raw_answer_their_exit_code(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.plan(JobPlan(exit_code=3))
    job_id = sdk.create()
    emulator.control.advance(60)
    (pod,) = emulator.control.job(job_id)["Pods"]
    assert (pod["Type"], pod["PodId"]) == ("worker", f"{job_id}-worker-0")
    assert pod["StatusDetail"]["ExitCode"] == 3
    assert (pod["Status"], pod["SubStatus"]) == ("Failed", "Normal")


def test_a_failing_command_fails_the_job_in_the_controllers_words(sdk: Any, emulator: DlcEmulator, body: Any) -> None:
    emulator.control.plan(JobPlan(exit_code=1))
    job_id = sdk.create(body(pods=2))
    emulator.control.advance(60)
    job = sdk.get(job_id)
    assert (job["Status"], job["ReasonCode"]) == ("Failed", "JobFailed")
    assert job["ReasonMessage"] == f"PyTorchJob {job_id} is failed because 2 Worker replica(s) failed."


def test_stop_goes_through_stopping_to_stopped(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.plan(JobPlan(run_seconds=None))
    job_id = sdk.create()
    emulator.control.advance(10)
    sdk.stop(job_id)
    assert sdk.status(job_id) == "Stopping"
    emulator.control.advance(1)
    job = sdk.get(job_id)
    assert (job["Status"], job["ReasonCode"]) == ("Stopped", "JobStoppedByUser")


@pytest.mark.parametrize("status", ["Creating", "Queuing", "EnvPreparing", "Running", "Restarting", "Weird"])
def test_every_active_job_can_be_stopped(sdk: Any, emulator: DlcEmulator, status: Any) -> None:
    job_id = sdk.create()
    emulator.control.set_status(job_id, status)
    sdk.stop(job_id)
    emulator.control.advance(1)
    assert sdk.status(job_id) == "Stopped"


def test_a_finished_job_cannot_be_stopped(sdk: Any, emulator: DlcEmulator) -> None:
    job_id = sdk.create()
    sdk.stop(job_id)
    emulator.control.advance(1)
    with pytest.raises(Exception, match="Job can't be stopped, because it is Stopped") as refused:
        sdk.stop(job_id)
    assert refused.value.status_code == 400


@pytest.mark.parametrize("operation", ["get", "stop"])
def test_a_missing_job_is_not_found(sdk: Any, operation: Any) -> None:
    with pytest.raises(Exception, match="not found") as refused:
        getattr(sdk, operation)("dlc0000000000000")
    assert (refused.value.status_code, refused.value.code) == (404, "NotFound")


def test_only_a_finished_job_can_be_deleted(sdk: Any, emulator: DlcEmulator) -> None:
    job_id = sdk.create()
    with pytest.raises(Exception, match="can't be deleted"):
        sdk.client.delete_job(job_id)
    emulator.control.advance(60)
    sdk.client.delete_job(job_id)
    with pytest.raises(Exception, match="not found"):
        sdk.get(job_id)


def test_an_update_changes_the_description_and_silently_ignores_the_priority(sdk: Any) -> None:
    job_id = sdk.create()
    sdk.client.update_job(job_id, sdk.models.UpdateJobRequest(description="now said", priority=9))
    job = sdk.get(job_id)
    assert (job["Description"], job["Priority"]) == ("now said", 0)


def test_logs_appear_line_by_line_while_the_job_runs(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.plan(JobPlan(run_seconds=30, logs=("one", "two", "three")))
    job_id = sdk.create()
    emulator.control.advance(1)
    request = sdk.models.GetPodLogsRequest()
    counts = []
    for _ in range(4):
        counts.append(len(sdk.client.get_pod_logs(job_id, f"{job_id}-worker-0", request).body.logs))
        emulator.control.advance(10)
    assert counts == [1, 2, 3, 3]


def test_a_log_line_is_its_time_two_spaces_and_its_text(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.plan(JobPlan(logs=("My Job started.",)))
    job_id = sdk.create()
    emulator.control.advance(10)
    answer = sdk.client.get_pod_logs(job_id, f"{job_id}-worker-0", sdk.models.GetPodLogsRequest())
    (line,) = answer.body.logs
    assert line[10] == " "
    assert line[19:] == "  My Job started."


@pytest.mark.parametrize(("window", "kept"), [("tail", ["b", "c"]), ("head", ["a", "b"])])
def test_which_lines_max_lines_keeps_can_be_switched(sdk: Any, emulator: DlcEmulator, window: Any, kept: Any) -> None:
    emulator.control.switch("log_window", window)
    emulator.control.plan(JobPlan(logs=("a", "b", "c")))
    job_id = sdk.create()
    emulator.control.advance(10)
    request = sdk.models.GetPodLogsRequest(max_lines=2)
    logs = sdk.client.get_pod_logs(job_id, f"{job_id}-worker-0", request).body.logs
    assert [line[-1] for line in logs] == kept


@pytest.mark.parametrize(("end_belongs", "kept"), [(True, ["a", "b"]), (False, ["a"])])
def test_whether_a_window_contains_its_last_second_can_be_switched(
    sdk: Any, emulator: DlcEmulator, end_belongs: bool, kept: Any
) -> None:
    emulator.control.switch("log_end_belongs", end_belongs)
    emulator.control.plan(JobPlan(run_seconds=30, logs=("a", "b", "c")))
    job_id = sdk.create()
    emulator.control.advance(60)
    began = sdk.get(job_id)["Pods"][0]["GmtStartTime"]
    second = (datetime.fromisoformat(began) + timedelta(seconds=10)).strftime("%Y-%m-%dT%H:%M:%SZ")
    request = sdk.models.GetPodLogsRequest(start_time=began, end_time=second)
    logs = sdk.client.get_pod_logs(job_id, f"{job_id}-worker-0", request).body.logs
    assert [line[-1] for line in logs] == kept


def test_lines_can_show_late(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.switch("log_lag_seconds", 4.0)
    emulator.control.plan(JobPlan(run_seconds=20, logs=("a", "b")))
    job_id = sdk.create()
    while sdk.status(job_id) != "Running":
        emulator.control.advance(1)
    shown = []
    for _ in range(4):
        emulator.control.advance(3)
        request = sdk.models.GetPodLogsRequest()
        shown.append(len(sdk.client.get_pod_logs(job_id, f"{job_id}-worker-0", request).body.logs))
    assert shown == [0, 1, 1, 1]


def test_aimaster_s_pod_writes_a_log_of_its_own(sdk: Any, emulator: DlcEmulator, aimaster_body: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=10, logs=("a",), aimaster_logs=("watching",)))
    job_id = sdk.create(aimaster_body)
    emulator.control.advance(600)
    request = sdk.models.GetPodLogsRequest()
    logs = sdk.client.get_pod_logs(job_id, f"{job_id}-aimaster-0", request).body.logs
    assert [line.split("  ")[1] for line in logs] == ["watching"]


def test_a_pod_that_cannot_pull_its_image_says_so_and_stays_in_env_preparing(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.plan(JobPlan(never_starts=True))
    job_id = sdk.create()
    emulator.control.advance(3600)
    events = sdk.client.get_pod_events(job_id, f"{job_id}-worker-0", sdk.models.GetPodEventsRequest()).body.events
    assert sdk.status(job_id) == "EnvPreparing"
    assert any("ErrImagePull" in event for event in events)


def test_job_events_name_the_pods_that_were_created(sdk: Any, emulator: DlcEmulator) -> None:
    job_id = sdk.create()
    emulator.control.advance(10)
    events = sdk.client.get_job_events(job_id, sdk.models.GetJobEventsRequest()).body.events
    assert events[0].endswith(f"Created pod: {job_id}-worker-0")


def test_a_job_that_runs_too_long_is_ended(sdk: Any, emulator: DlcEmulator, body: Any) -> None:
    emulator.control.plan(JobPlan(run_seconds=None))
    job_id = sdk.create(body(JobMaxRunningTimeMinutes=2))
    emulator.control.advance(300)
    job = sdk.get(job_id)
    assert job["Status"] == "Failed"
    assert "maximum running time of 2 minutes" in job["ReasonMessage"]


def test_reserved_nodes_are_held_after_the_end(sdk: Any, emulator: DlcEmulator, body: Any) -> None:
    settings = {"JobReservedMinutes": 10, "JobReservedPolicy": "Always"}
    job_id = sdk.create(body(Settings=settings))
    emulator.control.advance(60)
    assert sdk.status(job_id) == "SucceededReserving"
    emulator.control.advance(600)
    assert sdk.status(job_id) == "Succeeded"


def test_the_response_spells_extended_cidrs_as_dlc_does(sdk: Any, emulator: DlcEmulator, body: Any) -> None:
    vpc = {"VpcId": "vpc-1", "SwitchId": "vsw-1", "SecurityGroupId": "sg-1", "ExtendedCIDRs": ["10.0.0.0/8"]}
    job_id = sdk.create(body(UserVpc=vpc))
    shown = emulator.control.job(job_id)["UserVpc"]
    assert shown["ExtendedCidrs"] == ["10.0.0.0/8"]
    assert "ExtendedCIDRs" not in shown


def test_spot_terms_can_be_left_out_of_answers(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.switch("echo_spot_spec", False)
    assert "SpotSpec" not in sdk.get(sdk.create())["JobSpecs"][0]


def test_ecs_specs_show_price_and_stock(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.set_price("ecs.g7.xlarge", 0.35)
    emulator.control.set_stock("ecs.g7.xlarge", 0)
    request = sdk.models.ListEcsSpecsRequest(instance_types="ecs.g7.xlarge")
    (spec,) = sdk.client.list_ecs_specs(request).body.ecs_specs
    assert (spec.non_protect_spot_discount, spec.spot_stock_status) == (0.35, "NoStock")


def test_an_operation_the_emulator_does_not_know_fails_loudly(sdk: Any) -> None:
    with pytest.raises(Exception, match="does not know GetToken") as refused:
        sdk.client.get_token(sdk.models.GetTokenRequest())
    assert (refused.value.status_code, refused.value.code) == (400, "UnsupportedOperation")


def test_a_request_beyond_the_limit_is_refused(sdk: Any, body: Any) -> None:
    with pytest.raises(Exception, match="65536") as refused:
        sdk.create(body(UserCommand="x" * 70_000))
    assert refused.value.status_code == 400


def test_tags_can_be_attached_and_taken_off(sdk: Any) -> None:
    job_id = sdk.create()
    tag = sdk.models.TagResourcesRequestTag(key="team", value="vision")
    sdk.client.tag_resources(
        sdk.models.TagResourcesRequest(region_id="cn-hangzhou", resource_id=[job_id], resource_type="Job", tag=[tag])
    )
    assert sdk.list(tags={"team": "vision"}) == [job_id]
    sdk.client.untag_resources(
        sdk.models.UntagResourcesRequest(resource_id=[job_id], resource_type="Job", tag_key=["team"])
    )
    assert sdk.list(tags={"team": "vision"}) == []
