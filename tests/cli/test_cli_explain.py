from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.judging import judge_with_events
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import JobOutcome
from airflow_provider_pai_spot.dlc.verdict import RULES, RULES_VERSION
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

Call = Callable[..., Any]
CORPUS = Path(__file__).parents[1] / "dlc" / "corpus"
endless = pytest.mark.dlc_emulator(default_plan=JobPlan(run_seconds=None))
lost = pytest.mark.dlc_emulator(default_plan=JobPlan(run_seconds=60, revoke_after=0.1))


def told(said: Any) -> dict[str, str]:
    """Read the lines `name  text`; further lines of evidence go with the first."""
    assert said.code == 0, said.err
    facts: dict[str, str] = {}
    for line in said.out.splitlines():
        name, text = line[:12].strip(), line[12:]
        facts[name or "evidence"] = f"{facts['evidence']}\n{text}" if not name else text
    return facts


def explain_file(pai_spot: Call, name: str, *options: str) -> Any:
    return pai_spot("explain", "--file", str(CORPUS / f"{name}.json"), *options)


@lost
def test_a_lost_job_is_explained_with_pod_machine_rule_and_what_follows(
    pai_spot: Call, cloud: DlcEmulator, submitted: Call
) -> None:
    job_id = submitted(pod_count=2)
    cloud.control.wait_for(job_id, "Failed")
    facts = told(pai_spot("explain", job_id))
    assert facts["job"] == f"{job_id}, Failed"
    assert (facts["verdict"], facts["cause"], facts["confidence"]) == ("revoked", "revoked", "documented")
    assert facts["rule"] == f"spot_pod_evicted, of {len(RULES)} in version {RULES_VERSION} of the table"
    assert facts["source"] == "GetJob reference, Pods.SubStatus"
    pods = {pod["PodId"].partition("-")[2]: pod["NodeName"] for pod in cloud.control.job(job_id)["Pods"]}
    assert facts["evidence"].splitlines() == [
        f"pod {name} on {node} Evicted, exit code 143" for name, node in pods.items()
    ]
    assert facts["next"].startswith("resubmit: another job in the same try")
    assert "SpotCapacityRevoked" in facts["next"]


@pytest.mark.dlc_emulator(behaviours={"echo_spot_spec": False}, default_plan=JobPlan(run_seconds=60, revoke_after=0.1))
def test_our_tag_says_that_it_bid_where_dlc_does_not(pai_spot: Call, cloud: DlcEmulator, submitted: Call) -> None:
    job_id = submitted()
    cloud.control.wait_for(job_id, "Failed")
    facts = told(pai_spot("explain", job_id))
    assert (facts["verdict"], facts["spot"]) == ("revoked", "yes")


@endless
def test_a_job_that_runs_is_not_judged(pai_spot: Call, cloud: DlcEmulator, submitted: Call) -> None:
    job_id = submitted()
    cloud.control.wait_for(job_id, "Running")
    facts = told(pai_spot("explain", job_id))
    assert (facts["verdict"], facts["cause"]) == ("unknown", "-")
    assert facts["next"] == "wait: the job is not over"


@pytest.mark.dlc_emulator(default_plan=JobPlan(pending_seconds=3600))
def test_a_job_that_waits_is_told_to_have_waited_until_now(pai_spot: Call, cloud: DlcEmulator, submitted: Call) -> None:
    job_id = submitted()
    cloud.control.wait_for(job_id, "Queuing")
    time.sleep(1.1)
    assert not told(pai_spot("explain", job_id))["went"].startswith("0 s pending")


EVENT_ONLY = JobPlan(run_seconds=60, revoke_after=0.1, evicted=False, reason_code="", reason_message="")


@pytest.mark.dlc_emulator(default_plan=EVENT_ONLY)
def test_events_are_read_where_nothing_else_tells(pai_spot: Call, cloud: DlcEmulator, submitted: Call) -> None:
    job_id = submitted()
    cloud.control.wait_for(job_id, "Failed")
    said = json.loads(pai_spot("explain", job_id, "--json").out)
    assert said["events_read"] > 0


@pytest.mark.dlc_emulator(default_plan=JobPlan(run_seconds=1, exit_code=143))
def test_events_of_pods_are_read_where_those_of_the_job_do_not_tell(
    pai_spot: Call, cloud: DlcEmulator, submitted: Call
) -> None:
    job_id = submitted(pod_count=3)
    cloud.control.wait_for(job_id, "Failed")
    hook = PaiDlcHook()
    first_two = [pod["PodId"] for pod in cloud.control.job(job_id)["Pods"]][:2]
    lines = [*hook.get_job_events(job_id), *(line for pod in first_two for line in hook.get_pod_events(job_id, pod))]
    assert json.loads(pai_spot("explain", job_id, "--json").out)["events_read"] == len(lines)


NEXT = {
    "succeeded": ("succeed", ""),
    "exit-1": ("retry", "SpotJobFailed"),
    "exit-143-without-eviction": ("retry", "SpotOutcomeUnknown"),
    "stopped-by-user": ("no retry", "SpotJobStopped"),
    "max-running-time": ("retry", "SpotRunTimeout"),
    "stopped-at-its-max-running-time": ("retry", "SpotRunTimeout"),
    "one-of-sixteen-workers-evicted": ("resubmit", "SpotCapacityRevoked"),
    "idle-quota-taken-back": ("retry", "SpotJobFailed"),
    "deleted": ("wait", ""),
}


@pytest.mark.parametrize(("name", "action"), NEXT.items(), ids=NEXT)
def test_a_file_is_explained_offline_and_what_follows_is_derived(
    pai_spot: Call, name: str, action: tuple[str, str]
) -> None:
    said = json.loads(explain_file(pai_spot, name, "--json").out)
    assert (said["next"]["action"], said["next"]["exception"]) == action
    assert JobOutcome.from_dict(said["outcome"]).to_dict() == said["outcome"]
    assert said["rules_version"] == RULES_VERSION
    assert said["source"]


def test_events_in_the_file_carry_their_time_as_dlc_writes_it(pai_spot: Call, tmp_path: Path) -> None:
    raw = json.loads((CORPUS / "event-from-before-the-run.json").read_text())
    rules = []
    for china_time in ("2026-01-01 08:20:00", "2026-01-01 12:59:00"):
        path = tmp_path / "job.json"
        path.write_text(json.dumps({**raw, "Events": [f"{china_time} Pod worker-0 has been preempted"]}))
        rules.append(told(pai_spot("explain", "--file", str(path)))["rule"].split(",")[0])
    assert rules == ["possibly_reclaimed", "event_preempted"]


TOLD_APART_BY_EVENTS = {
    "a command that failed": ("exit-1", "2026-01-01T02:00:00Z Pod worker-0 has been preempted", 0),
    "a limit that passed": ("max-running-time", "2026-01-01T02:00:00Z Pod worker-0 has been preempted", 0),
    "an end that nothing tells": ("empty-reason-and-no-pods", "Pod worker-0 has been preempted", 1),
    "a pod that failed in place": ("pod-failed-in-place", "2026-01-01T02:00:00Z Pod has been preempted", 1),
}


@pytest.mark.parametrize(("name", "event", "read"), TOLD_APART_BY_EVENTS.values(), ids=TOLD_APART_BY_EVENTS)
def test_a_file_comes_to_the_verdict_of_the_task(
    pai_spot: Call, tmp_path: Path, name: str, event: str, read: int
) -> None:
    raw = json.loads((CORPUS / f"{name}.json").read_text()) | {"Events": [event]}
    path = tmp_path / "job.json"
    path.write_text(json.dumps(raw))
    said = json.loads(pai_spot("explain", "--file", str(path), "--json").out)
    assert said["outcome"] == of_the_task(raw).to_dict()
    assert said["events_read"] == read


class Reader:
    """DLC with one job and its events."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw

    def get_job_events(self, _job_id: str) -> list[str]:
        return list(self.raw["Events"])

    def get_pod_events(self, _job_id: str, _pod_id: str) -> list[str]:
        return []


def of_the_task(raw: dict[str, Any]) -> JobOutcome:
    reader: Any = Reader(raw)
    return judge_with_events(Job(raw), reader)


def test_events_in_the_file_count(pai_spot: Call) -> None:
    assert told(explain_file(pai_spot, "event-says-preempted"))["rule"].startswith("event_preempted,")


def test_many_pods_are_a_few_lines(pai_spot: Call) -> None:
    evidence = told(explain_file(pai_spot, "nine-of-sixty-four-workers-evicted"))["evidence"].splitlines()
    assert evidence[-1] == "and 7 more"
    assert len(evidence) == 3


def test_a_secret_in_the_file_is_not_printed(pai_spot: Call) -> None:
    for options in ((), ("--json",)):
        said = explain_file(pai_spot, "secrets-in-the-reason", *options)
        assert said.code == 0
        assert "planted" not in said.out.casefold() + said.err.casefold()


def test_standard_input_may_be_an_answer_as_the_sdk_wraps_it(pai_spot: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    job = json.loads((CORPUS / "exit-1.json").read_text())
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"statusCode": 200, "body": job})))
    assert told(pai_spot("explain", "--file", "-"))["cause"] == "user_failure"


def test_held_nodes_are_noted(pai_spot: Call) -> None:
    assert "still held" in told(explain_file(pai_spot, "evicted-while-nodes-are-held"))["note"]


def test_the_table_of_rules_is_shown_alone_or_with_a_verdict(pai_spot: Call) -> None:
    said = pai_spot("explain", "--rules")
    title, header, *rows = said.out.splitlines()
    assert title.startswith(f"rules version {RULES_VERSION}: {len(RULES)}, asked in this order")
    assert header.split() == ["RULE", "VERDICT", "CAUSE", "CONFIDENCE", "READS", "SOURCE"]
    assert [row.split()[0] for row in rows] == [rule.name for rule in RULES]
    both = explain_file(pai_spot, "exit-1", "--rules").out
    assert both.endswith(said.out)
    assert both.startswith("job ")
    listed = json.loads(explain_file(pai_spot, "exit-1", "--rules", "--json").out)
    assert [rule["rule"] for rule in listed["rules"]] == [rule.name for rule in RULES]
    assert listed["outcome"]["rule"] == "command_failed"


BAD = {
    "is not there": (None, "cannot be read: No such file"),
    "is a folder": ("folder", "cannot be read: Is a directory"),
    "is no text": (b"\xff\xfe\x00", "it is no UTF-8 text"),
    "is no JSON": (b"Status: Failed", "is no JSON"),
    "is nested too deep": (b"[" * 100_000, "is no JSON"),
    "is a list": (b"[]", "holds no job"),
    "is another object": (b'{"Jobs": []}', "holds no job"),
}


@pytest.mark.parametrize(("content", "said"), BAD.values(), ids=BAD)
def test_a_file_that_holds_no_job_is_one_line(pai_spot: Call, tmp_path: Path, content: Any, said: str) -> None:
    path = tmp_path / "job.json"
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    result = pai_spot("explain", "--file", str(path))
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"pai-spot: '{path}' ")
    assert said in result.err
    assert result.err.count("\n") == 1


def test_a_job_that_dlc_does_not_know_is_an_error(pai_spot: Call, cloud: DlcEmulator) -> None:
    said = pai_spot("explain", "dlcnosuchjob00000")
    assert (said.code, said.out) == (1, "")
    assert cloud.control.jobs() == []


def test_wrong_rules_of_ones_own_are_one_line(pai_spot: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__VERDICT_RULES", "no_such_package_at_all.RULES")
    said = explain_file(pai_spot, "exit-1")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("pai-spot: [pai_spot] verdict_rules is 'no_such_package_at_all.RULES'")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [(), ("dlc1", "--file", "job.json"), ("--json",)], ids=str)
def test_it_wants_one_job_or_the_rules(pai_spot: Call, arguments: tuple[str, ...]) -> None:
    said = pai_spot("explain", *arguments)
    assert said.code == 2
    assert "usage: pai-spot explain" in said.err
