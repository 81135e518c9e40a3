"""An outcome survives JSON and stays small, whatever DLC put into it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_pai_spot.dlc.outcome import Cause, JobOutcome, StopReason, Verdict

TEXTS = st.text(max_size=80)
COUNTS = st.one_of(st.none(), st.integers(-(2**31), 2**31))


def pods(names: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"pod_id": names, "type": names, "status": names, "sub_status": names, "exit_code": COUNTS}
    )


def outcomes(texts: st.SearchStrategy[str], size: int) -> st.SearchStrategy[JobOutcome]:
    return st.builds(
        JobOutcome,
        job_id=texts.filter(bool),
        verdict=st.sampled_from(Verdict),
        status=texts,
        cause=st.one_of(st.none(), st.sampled_from(Cause)),
        reason_code=texts,
        reason_message=texts,
        rule=texts,
        confidence=texts,
        evidence=st.lists(texts, max_size=size).map(tuple),
        seconds_pending=st.floats(0, 1e9),
        seconds_running=st.floats(0, 1e9),
        restarts=st.integers(0, 10**6),
        timeline=st.lists(st.tuples(texts, texts, texts), max_size=size).map(tuple),
        pods=st.lists(pods(texts), max_size=size).map(tuple),
        progress=st.one_of(st.none(), st.dictionaries(texts, texts, max_size=size)),
        stop_reason=st.one_of(st.none(), st.sampled_from(StopReason)),
        reserving=st.booleans(),
    )


@given(outcomes(st.text("abcXYZ 0189-", max_size=30), size=3))
def test_an_ordinary_outcome_comes_back_from_json_as_it_was(outcome: JobOutcome) -> None:
    assert JobOutcome.from_dict(json.loads(json.dumps(outcome.to_dict()))) == outcome


@settings(max_examples=50)
@given(outcomes(st.text(max_size=200), size=20))
def test_writing_reading_and_writing_again_changes_nothing(outcome: JobOutcome) -> None:
    written = outcome.to_dict()
    assert JobOutcome.from_dict(json.loads(json.dumps(written))).to_dict() == written


def test_the_largest_outcome_is_below_ten_thousand_bytes() -> None:
    for character in ("a", "\x00", "漢", "😀", "\ud800", '"'):
        text = character * 20_000
        pod: dict[str, Any] = dict.fromkeys(("pod_id", "type", "status", "sub_status", "junk"), text)
        outcome = JobOutcome(
            job_id=text,
            verdict=Verdict.SUCCEEDED,
            status=text,
            reason_code=text,
            reason_message=text,
            rule=text,
            confidence=text,
            evidence=(text,) * 50 + ("short",) * 500,
            seconds_running=float("inf"),
            timeline=(("Running", "2026-01-01T00:00:00Z", ""),) * 500,
            pods=({**pod, "exit_code": -(10**17)}, *({"pod_id": "p", "exit_code": 1},) * 500),
            progress={"step": text},
            stop_reason=StopReason.EXECUTION_TIMEOUT,
        )
        assert len(json.dumps(outcome.to_dict(), allow_nan=False)) < 10_000


def test_the_latest_part_of_a_long_timeline_is_kept() -> None:
    timeline = tuple((f"Status{number}", "", "") for number in range(100))
    kept = JobOutcome(job_id="j", verdict=Verdict.FAILED, status="Failed", timeline=timeline).to_dict()["timeline"]
    assert kept[-1][0] == "Status99"
    assert len(kept) == 30


def test_progress_that_is_too_large_is_left_out_rather_than_cut() -> None:
    outcome = JobOutcome(job_id="j", verdict=Verdict.FAILED, status="Failed").with_progress({"note": "x" * 2_000})
    assert outcome.to_dict()["progress"] is None


def test_what_a_newer_release_wrote_is_read_without_success_being_invented() -> None:
    data = {
        "version": 9,
        "job_id": "dlc1",
        "status": "Failed",
        "verdict": "paused",
        "stop_reason": "moved",
        "cause": "meteorite",
        "colour": "red",
    }
    outcome = JobOutcome.from_dict(data)
    assert outcome.verdict is Verdict.UNKNOWN
    assert outcome.stop_reason is None
    assert outcome.cause is None


WIRE: dict[str, Any] = {
    "version": 1,
    "restarts": 0,
    "exit_code": None,
    "reserving": False,
    "on_demand": False,
    "verdict": "revoked",
    "cause": "revoked",
    "stop_reason": None,
    "job_id": "dlc1",
    "status": "Failed",
    "reason_code": "JobFailed",
    "rule": "spot_pod_evicted",
    "confidence": "documented",
    "reason_message": "gone",
    "evidence": ["pod worker-0 Evicted"],
    "seconds_pending": 60.0,
    "seconds_running": 3600.0,
    "timeline": [["Running", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"]],
    "pods": [
        {"pod_id": "dlc1-worker-0", "type": "worker", "status": "Failed", "sub_status": "Evicted", "exit_code": 143}
    ],
    "progress": {"step": 60},
}


def test_the_wire_format_is_the_one_that_other_releases_read() -> None:
    assert JobOutcome.from_dict(WIRE).to_dict() == WIRE


def test_an_outcome_of_an_older_release_is_read_and_its_cause_is_not_made_up() -> None:
    older = {key: value for key, value in WIRE.items() if key not in ("cause", "on_demand", "exit_code")}
    outcome = JobOutcome.from_dict(older)
    assert (outcome.verdict, outcome.cause) == (Verdict.REVOKED, None)
    assert outcome.to_dict() == older | {"cause": None, "on_demand": False, "exit_code": None}


@pytest.mark.parametrize(
    ("verdict", "reason", "cause"),
    [
        (Verdict.STOPPED, StopReason.RUN_TIMEOUT, Cause.TIMED_OUT),
        (Verdict.STOPPED, StopReason.PENDING_TIMEOUT, Cause.TIMED_OUT),
        (Verdict.UNKNOWN, StopReason.TOTAL_TIMEOUT, Cause.TIMED_OUT),
        (Verdict.STOPPED, StopReason.EXECUTION_TIMEOUT, Cause.TIMED_OUT),
        (Verdict.STOPPED, StopReason.KILLED, Cause.STOPPED),
        (Verdict.STOPPED, None, Cause.STOPPED),
        (Verdict.FAILED, StopReason.RUN_TIMEOUT, Cause.STOPPED),
    ],
)
def test_a_limit_of_ours_is_the_cause_of_a_stop(verdict: Verdict, reason: StopReason | None, cause: Cause) -> None:
    outcome = JobOutcome(job_id="j", verdict=verdict, status="Stopped", cause=Cause.STOPPED)
    assert outcome.with_stop_reason(reason).cause is cause


BARE: dict[str, Any] = {"job_id": "dlc1", "status": "Failed", "verdict": "failed"}
ODD_SHAPES: dict[str, tuple[dict[str, Any], str, Any]] = {
    "a timeline entry without times": ({"timeline": [["Running"]]}, "timeline", (("Running", "", ""),)),
    "a timeline entry of four": ({"timeline": [["Running", "a", "b", "c"]]}, "timeline", (("Running", "a", "b"),)),
    "timeline entries that are no lists": ({"timeline": ["Running", 5, None, [], {"a": 1}]}, "timeline", ()),
    "a timeline that is a text": ({"timeline": "Running"}, "timeline", ()),
    "a timeline that is a number": ({"timeline": 5}, "timeline", ()),
    "an entry of odd values": ({"timeline": [["Running", None, {}]]}, "timeline", (("Running", "", ""),)),
    "pods that are texts": ({"pods": ["x", None]}, "pods", ()),
    "pods that are a mapping": ({"pods": {"pod_id": "p"}}, "pods", ()),
    "a pod of odd values": (
        {"pods": [{"pod_id": ["p"], "status": None, "exit_code": "137", "node": "n"}]},
        "pods",
        ({"pod_id": "", "status": "", "exit_code": 137},),
    ),
    "evidence that is a text": ({"evidence": "one line"}, "evidence", ()),
    "evidence of odd values": ({"evidence": ["a line", None, ["x"], 5]}, "evidence", ("a line",)),
    "seconds in words": ({"seconds_running": "abc"}, "seconds_running", 0.0),
    "seconds missing": ({"seconds_pending": None}, "seconds_pending", 0.0),
    "seconds that are no number": ({"seconds_pending": float("nan")}, "seconds_pending", 0.0),
    "more seconds than a float holds": ({"seconds_running": 10**400}, "seconds_running", 0.0),
    "seconds that are a flag": ({"seconds_running": True}, "seconds_running", 0.0),
    "progress that is a list": ({"progress": [1, 2]}, "progress", None),
    "progress that is a text": ({"progress": "epoch 3"}, "progress", None),
    "restarts in words": ({"restarts": "two"}, "restarts", 0),
    "a status that is a list": ({"status": ["Failed"]}, "status", ""),
    "a reason that is a mapping": ({"reason_message": {"a": 1}}, "reason_message", ""),
    "a reason code that is missing": ({"reason_code": None}, "reason_code", ""),
    "reserving in words": ({"reserving": "false"}, "reserving", False),
    "on demand in words": ({"on_demand": "true"}, "on_demand", False),
    "a stop reason that is a list": ({"stop_reason": ["killed"]}, "stop_reason", None),
    "a cause that is a list": ({"cause": ["revoked"]}, "cause", None),
    "a verdict that is a list": ({"verdict": ["succeeded"]}, "verdict", Verdict.UNKNOWN),
}


@pytest.mark.parametrize(("odd", "name", "read"), ODD_SHAPES.values(), ids=ODD_SHAPES)
def test_what_has_an_odd_shape_reads_as_absent(odd: dict[str, Any], name: str, read: Any) -> None:
    outcome = JobOutcome.from_dict(BARE | odd)
    assert getattr(outcome, name) == read
    assert outcome.to_dict()["job_id"] == "dlc1"


def test_a_missing_status_reads_as_empty() -> None:
    assert not JobOutcome.from_dict({"job_id": "dlc1"}).status


@pytest.mark.parametrize(
    "data", [None, "success", 5, [], {}, {"verdict": "succeeded"}, {"job_id": None}, {"job_id": ""}, {"job_id": ["d"]}]
)
def test_what_names_no_job_is_no_outcome(data: Any) -> None:
    with pytest.raises(ValueError, match=r"^not a job's outcome: .*a mapping with a job_id"):
        JobOutcome.from_dict(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["job_id", "verdict", "status", "reason_code", "reason_message", "rule", "confidence", "evidence", "timeline"]
FIELDS += ["cause", "seconds_pending", "seconds_running", "restarts", "pods", "progress", "stop_reason", "reserving"]


@given(st.dictionaries(st.sampled_from(FIELDS), JSON).map(lambda odd: {"job_id": "dlc1"} | odd))
def test_whatever_json_is_read_can_be_written_again_or_is_refused(data: dict[str, Any]) -> None:
    try:
        outcome = JobOutcome.from_dict(data)
    except ValueError:
        return
    assert JobOutcome.from_dict(outcome.to_dict()).job_id == outcome.to_dict()["job_id"]
    hash((outcome.status, outcome.reason_code, outcome.timeline, outcome.evidence))
