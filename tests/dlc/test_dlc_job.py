"""A job is read from raw JSON, in whichever of its shapes it comes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.dlc.job import Job, Restarts
from airflow_provider_pai_spot.dlc.status import JobStatus, Phase

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(minutes: float) -> str:
    return (START + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def now(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def entry(status: str, start: float, end: float | str | None = None) -> dict[str, Any]:
    item: dict[str, Any] = {"Status": status, "StartTime": at(start)}
    if end is not None:
        item["EndTime"] = end if isinstance(end, str) else at(end)
    return item


TWICE_RUN = [
    entry("Creating", 0, 1),
    entry("Queuing", 1, 10),
    entry("EnvPreparing", 10, 12),
    entry("Running", 12, 32),
    entry("Restarting", 32, 33),
    entry("Bidding", 33, 60),
    entry("Running", 60, ""),
]


def job(**raw: Any) -> Job:
    return Job({"JobId": "dlc1", "GmtCreateTime": at(0), **raw})


@pytest.mark.parametrize("history", [TWICE_RUN, TWICE_RUN[::-1]], ids=["oldest first", "newest first"])
def test_running_time_is_the_sum_of_its_stretches_in_either_order(history: list[dict[str, Any]]) -> None:
    running = job(Status="Running", StatusHistory=history, Duration=99_999)
    assert running.seconds_running(now(70)) == (20 + 10) * 60
    assert running.seconds_pending(now(70)) == (12 + 28) * 60
    assert running.running_since == now(60)
    assert [stretch.status for stretch in running.timeline] == [item["Status"] for item in TWICE_RUN]


def test_equal_seconds_keep_their_order_when_the_newest_comes_first() -> None:
    history = [entry("Running", 5), entry("EnvPreparing", 1, 5), entry("Queuing", 1, 1), entry("Creating", 0, 1)]
    timeline = job(StatusHistory=history).timeline
    assert [stretch.status for stretch in timeline] == ["Creating", "Queuing", "EnvPreparing", "Running"]


def test_an_open_stretch_ends_when_the_job_did() -> None:
    finished = job(Status="Failed", GmtFinishTime=at(90), StatusHistory=TWICE_RUN)
    assert finished.seconds_running() == (20 + 30) * 60
    assert finished.seconds_running(now(500)) == (20 + 30) * 60
    assert finished.finished_at == now(90)


@pytest.mark.parametrize("end", [None, "", "never"], ids=["absent", "empty", "unreadable"])
def test_a_missing_end_is_the_start_of_the_next_entry(end: str | None) -> None:
    history = [entry("Queuing", 0, end), entry("Running", 10, end), entry("Failed", 30, end)]
    ended = job(Status="Failed", StatusHistory=history)
    assert ended.seconds_running() == 20 * 60
    assert ended.finished_at == now(30)


def test_without_a_history_the_time_fields_speak() -> None:
    fields = {"GmtRunningTime": at(10), "GmtFinishTime": at(25), "Duration": 1_500}
    finished = job(Status="Succeeded", **fields)
    assert finished.seconds_running() == 15 * 60
    assert finished.seconds_pending() == 10 * 60


@pytest.mark.parametrize("field", ["GmtFinishTime", "GmtSuccessedTime", "GmtFailedTime", "GmtStoppedTime"])
def test_any_of_dlcs_end_times_will_do(field: str) -> None:
    assert job(Status="Stopped", **{field: at(7)}).finished_at == now(7)


def test_a_live_job_is_not_finished_whatever_time_fields_an_earlier_failure_left() -> None:
    assert job(Status="Bidding", GmtFailedTime=at(7)).finished_at is None


PENDING: dict[str, tuple[dict[str, Any], float | None]] = {
    "the first wait counts from creation": (
        {"Status": "Queuing", "StatusHistory": [entry("Creating", 1, 2), entry("Queuing", 2)]},
        0,
    ),
    "also without a history": ({"Status": "Queuing"}, 0),
    "after a restart from the restart": ({"Status": "Bidding", "StatusHistory": TWICE_RUN[:-1]}, 32),
    "a status nobody knows does not interrupt it": (
        {"Status": "Bidding", "StatusHistory": [*TWICE_RUN[:5], entry("Pausing", 33, 34), entry("Bidding", 34)]},
        32,
    ),
    "a wait the history does not show yet begins now": ({"Status": "Restarting", "StatusHistory": TWICE_RUN}, 100),
    "a second wait without a history begins now": ({"Status": "Bidding", "GmtRunningTime": at(5)}, 100),
    "a job from the future waits from now": ({"Status": "Queuing", "GmtCreateTime": at(200)}, 100),
    "a job without a creation time waits from now": ({"Status": "Queuing", "GmtCreateTime": ""}, 100),
    "a running job does not wait": ({"Status": "Running", "StatusHistory": TWICE_RUN}, None),
    "a finished job does not wait": ({"Status": "Failed"}, None),
    "a status nobody knows is not called waiting": ({"Status": "Pausing"}, None),
}


@pytest.mark.parametrize(("raw", "since"), PENDING.values(), ids=PENDING)
def test_pending_since(raw: dict[str, Any], since: float | None) -> None:
    assert job(**raw).pending_since(now(100)) == (None if since is None else now(since))


@pytest.mark.parametrize(
    ("value", "expected"),
    [("0/10", (0, 10)), ("3/10", (3, 10)), ("1", (1, None)), (2, (2, None)), ("", (0, None)), (None, (0, None))],
    ids=repr,
)
def test_restart_times_in_both_their_forms(value: object, expected: tuple[int, int | None]) -> None:
    assert job(RestartTimes=value).restart_times == Restarts(*expected)


def test_spot_terms_are_what_is_echoed_and_their_absence_is_no_claim() -> None:
    echoed = {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.4}
    assert job(JobSpecs=[{"Type": "Worker", "SpotSpec": echoed}, {"Type": "PS"}]).spot_specs == [echoed]
    for roles in ([{"Type": "Worker", "SpotSpec": {}}], [], None, {"Type": "Worker"}):
        assert job(JobSpecs=roles).spot_specs is None
        assert not job(JobSpecs=roles).is_spot


def test_environment_is_read_from_both_places_dlc_shows_it_in() -> None:
    custom = [{"Key": "B", "Value": "2", "Visible": "public"}, {"Key": "A", "Value": "old"}, "odd"]
    assert job(Envs={"A": "1"}, CustomEnvs=custom).envs == {"A": "1", "B": "2"}


def test_tags_are_read_from_the_settings() -> None:
    assert job(Settings={"Tags": {"airflow-ti": "ab", "odd": 3}}).tags == {"airflow-ti": "ab"}


def test_exit_codes_and_earlier_incarnations_are_kept() -> None:
    pods = [
        {
            "PodId": "dlc1-master-0",
            "Type": "master",
            "Status": "Failed",
            "SubStatus": "Normal",
            "StatusDetail": {"ExitCode": "1", "Reason": "Error"},
            "HistoryPods": [{"PodId": "dlc1-master-0", "PodUid": "u0", "SubStatus": "Evicted"}],
        }
    ]
    read = job(Pods=pods)
    assert (read.pods[0].short_id, read.pods[0].exit_code, read.pods[0].reason) == ("master-0", 1, "Error")
    assert read.history_pods[0].is_evicted
    assert read.history_pods[0].exit_code is None


def test_a_reason_may_be_a_document() -> None:
    assert job(ReasonMessage='{"reason": "128"}').reason_document == {"reason": "128"}
    assert job(ReasonMessage={"reason": "128"}).reason_message == '{"reason": "128"}'
    assert job(ReasonMessage="128").reason_document is None


def test_of_a_very_long_reason_the_beginning_is_read_and_a_document_as_a_whole() -> None:
    document = {"reason": "128", "message": "x" * 1_000_000}
    assert len(job(ReasonMessage=document).reason_message) < 10_000
    assert job(ReasonMessage=document).reason_document == document


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"Settings": {"OversoldType": "AcceptQuotaOverSold"}}, True),
        ({"JobSpecs": [{"OversoldType": "ForceQuotaOverSold"}]}, True),
        ({"UseOversoldResource": True}, True),
        ({"Settings": {"OversoldType": "ForbiddenQuotaOverSold"}}, False),
        ({}, False),
    ],
    ids=["by settings", "by role", "by ListJobs", "forbidden", "not said"],
)
def test_idle_quota_is_recognised(raw: dict[str, Any], expected: bool) -> None:
    assert job(**raw).uses_idle_quota is expected


def test_no_limit_is_zero_minutes() -> None:
    assert job(JobMaxRunningTimeMinutes=0).max_running_seconds is None
    assert job(JobMaxRunningTimeMinutes=2).max_running_seconds == 120


def test_a_representation_holds_no_secrets() -> None:
    assert repr(job(Status="Running", Envs={"A": "hunter2"})) == "Job('dlc1', 'Running')"


KEYS = [
    *("JobId", "Status", "StatusHistory", "Pods", "JobSpecs", "Settings", "Envs", "CustomEnvs", "RestartTimes"),
    *("GmtCreateTime", "GmtRunningTime", "GmtFinishTime", "ReasonMessage", "JobMaxRunningTimeMinutes"),
    *("SpotSpec", "StatusDetail", "HistoryPods", "StartTime", "EndTime", "Tags", "ExitCode"),
]
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**6),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(JobStatus).map(str),
    st.datetimes().map(lambda moment: f"{moment.isoformat(timespec='seconds')}Z"),
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)),
    max_leaves=15,
)


@given(st.one_of(JSON, st.dictionaries(st.sampled_from(KEYS), JSON)))
def test_no_shape_makes_reading_fail(raw: Any) -> None:
    read = Job(raw)
    values = [getattr(read, name) for name in dir(type(read)) if not name.startswith("_")]
    assert values
    assert read.seconds_running(START) >= 0
    assert read.seconds_pending(START) >= 0
    since = read.pending_since(START)
    assert (since is None) == (read.phase is not Phase.PENDING)
    assert since is None or since <= START


HISTORIES = st.lists(
    st.tuples(st.sampled_from(JobStatus).map(str), st.integers(0, 500), st.one_of(st.none(), st.integers(0, 500))),
    max_size=8,
)


@given(HISTORIES, st.integers(500, 600))
def test_no_second_is_counted_twice(history: list[tuple[str, int, int | None]], end: int) -> None:
    read = job(Status="Running", StatusHistory=[entry(*item) for item in history])
    total = read.seconds_running(now(end)) + read.seconds_pending(now(end))
    assert total <= end * 60
    assert all(stretch.end is None or stretch.start <= stretch.end for stretch in read.timeline)
