"""What the hook sends, how often, and what it makes of odd answers; a whole service is in `test_hook_on_emulator`."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from airflow_provider_pai_spot.exceptions import (
    PaiDlcNotFound,
    PaiDlcRefused,
    PaiDlcThrottled,
    PaiDlcUnavailable,
)
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.hooks.retrying import RetryRules

MOMENT = datetime(2026, 5, 1, 8, 30, tzinfo=timezone(timedelta(hours=8)))

RETRIABLE = [
    pytest.param({"status": 429, "body": {"Code": "Throttling"}}, id="429"),
    pytest.param({"status": 400, "body": {"Code": "Throttling.User"}}, id="Throttling as 400"),
    pytest.param({"status": 503, "body": {"Code": "ServiceUnavailable"}}, id="503"),
    pytest.param({"status": 500, "body": b"<html>"}, id="500 html"),
    pytest.param({"body": b"null"}, id="200 null"),
    pytest.param({"body": b"[]"}, id="200 list"),
    pytest.param({"hang_up": True}, id="broken connection"),
    pytest.param({"announce_more": 9}, id="truncated"),
]


# --- reads -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("failing", RETRIABLE)
def test_a_read_is_repeated_until_it_is_answered(hook: Any, dlc: Any, clock: Any, failing: Any) -> None:
    dlc.script(dlc.answer(**failing), dlc.answer(**failing), dlc.answer(body={"JobId": "dlc1", "Status": "Running"}))
    assert hook().get_job("dlc1")["Status"] == "Running"
    assert len(dlc.seen) == 3
    assert len(clock.slept) == 2


def test_a_read_gives_up_after_five_attempts(hook: Any, dlc: Any) -> None:
    dlc.script(dlc.answer(503, {"Code": "ServiceUnavailable"}))
    with pytest.raises(PaiDlcUnavailable):
        hook().get_job("dlc1")
    assert len(dlc.seen) == 5


def test_a_caller_that_polls_anyway_can_have_one_attempt(hook: Any, dlc: Any) -> None:
    dlc.script(dlc.answer(503, {}))
    with pytest.raises(PaiDlcUnavailable):
        hook(retry_rules=RetryRules(attempts=1)).get_job("dlc1")
    assert len(dlc.seen) == 1


def test_the_wait_dlc_asks_for_is_kept(hook: Any, dlc: Any, clock: Any) -> None:
    dlc.script(dlc.answer(429, {}, {"x-acs-retry-after": "12000"}), dlc.answer(body={"JobId": "dlc1"}))
    hook().get_job("dlc1")
    assert clock.slept[0] >= 12


@pytest.mark.parametrize("status", [400, 403, 404])
def test_a_definite_no_is_asked_once(hook: Any, dlc: Any, status: Any) -> None:
    dlc.script(dlc.answer(status, {"Code": "X"}))
    with pytest.raises(PaiDlcRefused):
        hook().get_job("dlc1")
    assert len(dlc.seen) == 1


# --- writes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("failing", RETRIABLE)
def test_create_job_is_sent_exactly_once(hook: Any, dlc: Any, failing: Any) -> None:
    dlc.script(dlc.answer(**failing), dlc.answer(body={"JobId": "dlc2"}))
    with pytest.raises((PaiDlcThrottled, PaiDlcUnavailable)):
        hook().create_job({"DisplayName": "job"})
    assert len(dlc.seen) == 1


@pytest.mark.parametrize("job_id", [None, "", 5, {}, ["dlc1"]])
def test_an_accepted_job_without_an_id_is_ambiguous(hook: Any, dlc: Any, job_id: Any) -> None:
    dlc.script(dlc.answer(body={"JobId": job_id, "RequestId": "R"}))
    with pytest.raises(PaiDlcUnavailable, match="JobId is") as raised:
        hook().create_job({"DisplayName": "job"})
    assert raised.value.ambiguous


def test_the_body_goes_out_as_it_is(hook: Any, dlc: Any) -> None:
    """Keys the vendor's models do not know would vanish in them."""
    dlc.script(dlc.answer(body={"JobId": "dlc1"}))
    body = {"DisplayName": "Übung", "WorkspaceId": "3", "BrandNewKey": {"a": [1, None, 0.4]}, "Envs": {}}
    assert hook().create_job(body) == "dlc1"
    assert json.loads(dlc.seen[0].body) == body
    assert dlc.seen[0].headers["content-type"] == "application/json; charset=utf-8"


@pytest.mark.parametrize("given", [{}, {"WorkspaceId": ""}, {"WorkspaceId": None}])
def test_the_workspace_of_the_connection_fills_a_body_that_names_none(hook: Any, dlc: Any, given: Any) -> None:
    dlc.script(dlc.answer(body={"JobId": "dlc1"}))
    hook().create_job({"DisplayName": "job", **given})
    assert json.loads(dlc.seen[0].body)["WorkspaceId"] == "7"


def test_another_workspace_is_listed_by_a_hook_of_its_own(hook: Any, dlc: Any) -> None:
    dlc.script(dlc.answer(body={"Jobs": [], "TotalCount": 0}))
    here = hook(retry_rules=RetryRules(attempts=1))
    there = here.in_workspace("8")
    assert there.list_page(["dlc1"]) == []
    assert dlc.seen[0].query["WorkspaceId"] == "8"
    assert (here.workspace_id, there.workspace_id) == ("7", "8")
    assert here.fingerprint != there.fingerprint == here.in_workspace("8").fingerprint


@pytest.mark.parametrize("failing", RETRIABLE)
def test_delete_job_is_sent_exactly_once(hook: Any, dlc: Any, failing: Any) -> None:
    dlc.script(dlc.answer(**failing))
    with pytest.raises((PaiDlcThrottled, PaiDlcUnavailable)):
        hook().delete_job("dlc1")
    assert [(seen.method, seen.path) for seen in dlc.seen] == [("DELETE", "/api/v1/jobs/dlc1")]


@pytest.mark.parametrize("failing", RETRIABLE)
def test_stop_job_is_repeated_because_stopping_twice_is_stopping_once(hook: Any, dlc: Any, failing: Any) -> None:
    dlc.script(dlc.answer(**failing), dlc.answer(body={"JobId": "dlc1"}))
    assert hook().stop_job("dlc1") is True
    assert [seen.path for seen in dlc.seen] == ["/api/v1/jobs/dlc1/stop"] * 2


@pytest.mark.parametrize("refusal", [400, 409])
@pytest.mark.parametrize(
    ("status", "accepted"),
    [("Succeeded", False), ("Failed", False), ("Stopped", False), ("Stopping", True)],
)
def test_a_refused_stop_is_settled_by_reading_the_job(
    hook: Any, dlc: Any, refusal: Any, status: Any, accepted: Any
) -> None:
    """Stopping: an earlier StopJob whose answer was lost did it."""
    dlc.script(
        dlc.answer(refusal, {"Code": "BadRequest", "Message": f"Job can't be stopped, because it is {status}"}),
        dlc.answer(body={"JobId": "dlc1", "Status": status}),
    )
    assert hook().stop_job("dlc1") is accepted
    assert [seen.method for seen in dlc.seen] == ["POST", "GET"]


@pytest.mark.parametrize("status", ["Running", "SucceededReserving", "SomethingNew", None])
def test_a_refused_stop_of_a_live_job_is_an_error(hook: Any, dlc: Any, status: Any) -> None:
    dlc.script(dlc.answer(400, {"Code": "BadRequest", "Message": "no"}), dlc.answer(body={"Status": status}))
    with pytest.raises(PaiDlcRefused, match="BadRequest"):
        hook().stop_job("dlc1")


@pytest.mark.parametrize(("status", "expected"), [(404, PaiDlcNotFound), (403, PaiDlcRefused)])
def test_other_refusals_of_a_stop_come_out_as_they_are(hook: Any, dlc: Any, status: Any, expected: Any) -> None:
    dlc.script(dlc.answer(status, {"Code": ""}))
    with pytest.raises(expected):
        hook().stop_job("dlc1")
    assert len(dlc.seen) == 1


# --- listings --------------------------------------------------------------------------------------


def test_a_listing_always_says_how_far_it_looks_back(hook: Any, dlc: Any) -> None:
    """DLC hides jobs older than 7 days from a listing that does not."""
    dlc.script(dlc.answer(body={"Jobs": [], "TotalCount": 0}))
    client = hook()
    client.list_jobs()
    client.list_jobs(start_time=MOMENT)
    assert [seen.query["StartTime"] for seen in dlc.seen] == ["2026-04-04T12:00:00Z", "2026-05-01T00:30:00Z"]


def test_filters_travel_in_dlcs_names(hook: Any, dlc: Any) -> None:
    dlc.script(dlc.answer(body={"Jobs": []}))
    hook().list_jobs(
        tags={"airflow-ti": "ab", "ü": "x y"},
        show_own=False,
        payment_type="Spot",
        display_name="nightly",
        status="Running",
        workspace_id="9",
        start_time=MOMENT,
    )
    assert dlc.seen[0].query == {
        "WorkspaceId": "9",
        "Tags": '{"airflow-ti":"ab","ü":"x y"}',
        "StartTime": "2026-05-01T00:30:00Z",
        "ShowOwn": "False",
        "PaymentType": "Spot",
        "DisplayName": "nightly",
        "Status": "Running",
        "SortBy": "GmtCreateTime",
        "Order": "desc",
        "PageNumber": "1",
        "PageSize": "100",
    }


def test_many_ids_are_asked_for_a_hundred_at_a_time(hook: Any, dlc: Any) -> None:
    dlc.script(dlc.answer(body={"Jobs": []}))
    hook().list_jobs(job_ids=[f"dlc{n}" for n in range(250)])
    assert [len(seen.query["JobIds"].split(",")) for seen in dlc.seen] == [100, 100, 50]


def test_no_ids_is_no_request(hook: Any, dlc: Any) -> None:
    assert hook().list_jobs(job_ids=[]) == []
    assert dlc.seen == []


def test_ids_refused_as_too_long_are_split(hook: Any, dlc: Any) -> None:
    dlc.script(
        dlc.answer(414, {"Code": "URITooLong"}),
        dlc.answer(body={"Jobs": [{"JobId": "a"}]}),
        dlc.answer(body={"Jobs": [{"JobId": "b"}]}),
    )
    assert [job["JobId"] for job in hook().list_jobs(job_ids=["a", "b"])] == ["a", "b"]


def test_jobs_of_others_are_left_out_where_the_caller_may_not_see_them(
    hook: Any, dlc: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    forbidden = dlc.answer(403, {"Code": "Forbidden", "Message": "no"})
    own = dlc.answer(body={"Jobs": [{"JobId": "mine"}]})
    dlc.script(forbidden, own, forbidden, own)
    client = hook(workspace_id="show-own-test")
    for _ in range(2):
        assert [job["JobId"] for job in client.list_jobs(show_own=False)] == ["mine"]
    assert ["ShowOwn" in seen.query for seen in dlc.seen] == [True, False, True, False]
    assert capsys.readouterr().out.count("caller's own jobs") == 1


def test_a_page_of_jobs_by_id_is_one_request_and_is_handed_over_as_it_came(hook: Any, dlc: Any) -> None:
    items = [{"JobId": f"dlc{n}"} for n in range(98)] + [None, "odd"]
    dlc.script(dlc.answer(body={"Jobs": items, "TotalCount": 100}))
    assert hook().list_page([f"dlc{n}" for n in range(100)]) == items
    [seen] = dlc.seen
    assert len(seen.query["JobIds"].split(",")) == 100
    asked = {key: value for key, value in seen.query.items() if key != "JobIds"}
    assert asked == {
        "WorkspaceId": "7",
        "StartTime": "2026-04-04T12:00:00Z",
        "ShowOwn": "False",
        "PageNumber": "1",
        "PageSize": "100",
    }


def test_a_caller_who_may_see_only_its_own_jobs_is_refused_once_not_for_each_page(hook: Any, dlc: Any) -> None:
    forbidden = dlc.answer(403, {"Code": "Forbidden"})
    dlc.script(forbidden, dlc.answer(body={"Jobs": [{"JobId": "mine"}]}))
    client = hook(workspace_id="page-of-own-test")
    for _ in range(3):
        assert client.list_page(["mine"]) == [{"JobId": "mine"}]
    assert ["ShowOwn" in seen.query for seen in dlc.seen] == [True, False, False, False]


def test_a_page_that_is_refused_either_way_is_refused(hook: Any, dlc: Any) -> None:
    dlc.script(dlc.answer(403, {"Code": "Forbidden"}))
    with pytest.raises(PaiDlcRefused):
        hook(workspace_id="page-refused-test").list_page(["dlc1"])


@pytest.mark.parametrize("show_own", [None, True])
def test_a_refusal_that_is_not_about_others_stays_a_refusal(hook: Any, dlc: Any, show_own: Any) -> None:
    dlc.script(dlc.answer(403, {"Code": "Forbidden"}))
    with pytest.raises(PaiDlcRefused):
        hook().list_jobs(show_own=show_own)
    assert len(dlc.seen) == 1


def test_a_listing_that_is_cut_says_so(hook: Any, dlc: Any, capsys: pytest.CaptureFixture[str]) -> None:
    dlc.script(dlc.answer(body={"Jobs": [{"JobId": f"dlc{n}"} for n in range(100)], "TotalCount": 999}))
    assert len(hook().list_jobs(max_pages=2)) == 100
    assert "more than 2 pages" in capsys.readouterr().out


@pytest.mark.parametrize("jobs", [{}, "text", 5, True])
def test_a_listing_without_a_list_is_no_answer(hook: Any, dlc: Any, jobs: Any) -> None:
    dlc.script(dlc.answer(body={"Jobs": jobs}))
    with pytest.raises(PaiDlcUnavailable, match="Jobs is a JSON"):
        hook(retry_rules=RetryRules(attempts=1)).list_jobs()


@pytest.mark.parametrize("body", [{"Jobs": None}, {}], ids=["null", "absent"])
def test_no_jobs_may_be_null_or_absent(hook: Any, dlc: Any, body: Any) -> None:
    dlc.script(dlc.answer(body=body))
    assert hook().list_jobs() == []


# --- paths, logs, events, specs ------------------------------------------------------------------------


def test_ids_are_encoded_in_the_path(hook: Any, dlc: Any) -> None:
    dlc.script(dlc.answer(body={"Logs": ["a"]}))
    hook().get_pod_logs("dlc/1 ü", "pod?x=1", max_lines=5, start_time=MOMENT, pod_uid="u")
    assert dlc.seen[0].path == "/api/v1/jobs/dlc%2F1%20%C3%BC/pods/pod%3Fx%3D1/logs"
    assert dlc.seen[0].query == {"MaxLines": "5", "StartTime": "2026-05-01T00:30:00Z", "PodUid": "u"}


@pytest.mark.parametrize("empty", ["", "  ", None])
@pytest.mark.parametrize(
    "call",
    [
        PaiDlcHook.get_job,
        PaiDlcHook.stop_job,
        PaiDlcHook.delete_job,
        PaiDlcHook.get_job_events,
        lambda hook, one: hook.get_pod_logs("dlc1", one),
        lambda hook, one: hook.get_pod_events(one, "pod"),
    ],
    ids=["get", "stop", "delete", "events", "pod logs", "pod events"],
)
def test_an_empty_id_is_refused_before_it_becomes_another_operation(hook: Any, dlc: Any, call: Any, empty: Any) -> None:
    with pytest.raises(PaiDlcRefused, match="was not sent: it needs ids"):
        call(hook(), empty)
    assert dlc.seen == []


LINES = [
    pytest.param(lambda hook: hook.get_job_events("dlc1", max_events=9), {"MaxEventsNum": "9"}, id="job events"),
    pytest.param(lambda hook: hook.get_pod_events("dlc1", "pod", pod_uid="u"), {"PodUid": "u"}, id="pod events"),
    pytest.param(lambda hook: hook.get_pod_logs("dlc1", "pod"), {}, id="pod logs"),
]


@pytest.mark.parametrize(("call", "query"), LINES)
def test_lines_come_out_as_text(hook: Any, dlc: Any, call: Any, query: Any) -> None:
    dlc.script(dlc.answer(body={"Events": ["a", 5], "Logs": ["a", 5]}))
    assert call(hook()) == ["a", "5"]
    assert dlc.seen[0].query == query


@pytest.mark.parametrize("none", [{}, {"Events": None, "Logs": None}, {"Events": [], "Logs": []}], ids=str)
@pytest.mark.parametrize(("call", "query"), LINES)
def test_no_lines_may_be_null_or_absent(hook: Any, dlc: Any, call: Any, query: Any, none: Any) -> None:
    dlc.script(dlc.answer(body=none))
    assert call(hook()) == []
    assert dlc.seen[0].query == query


def test_specs_are_read_without_sorting_which_dlc_refuses(hook: Any, dlc: Any) -> None:
    dlc.script(dlc.answer(body={"EcsSpecs": [{"InstanceType": "ecs.a"}], "TotalCount": 1}))
    specs = hook().list_ecs_specs(["ecs.a", "ecs.b"], accelerator_type="GPU", resource_type="ECS")
    assert specs == [{"InstanceType": "ecs.a"}]
    assert dlc.seen[0].query == {
        "InstanceTypes": "ecs.a,ecs.b",
        "AcceleratorType": "GPU",
        "ResourceType": "ECS",
        "PageNumber": "1",
        "PageSize": "100",
    }


# --- small things ---------------------------------------------------------------------------------


def test_requests_name_this_provider(hook: Any, dlc: Any) -> None:
    hook().get_job("dlc1")
    assert "airflow-provider-pai-spot/" in dlc.seen[0].headers["user-agent"]


def test_timestamps_are_utc(hook: Any, dlc: Any) -> None:
    dlc.script(dlc.answer(body={"Jobs": []}))
    hook().list_jobs(start_time=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert dlc.seen[0].query["StartTime"] == "2026-01-02T03:04:05Z"
