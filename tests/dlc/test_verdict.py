"""How a job ended is told from what DLC says, and doubt is never called a revocation."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import Cause, Verdict
from airflow_provider_pai_spot.dlc.status import JobStatus
from airflow_provider_pai_spot.dlc.verdict import RULES, RULES_VERSION, Rule, classify, rules_with, source_of

SPOT = [{"Type": "Worker", "SpotSpec": {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.4}}]
IDLE = {"OversoldType": "ForceQuotaOverSold"}
REPLICA_FAILED = "PyTorchJob dlc1 is failed because 1 Worker replica(s) failed."
RUN_ONCE = [
    {"Status": "Queuing", "StartTime": "2026-01-01T00:00:00Z", "EndTime": "2026-01-01T01:00:00Z"},
    {"Status": "Running", "StartTime": "2026-01-01T01:00:00Z", "EndTime": "2026-01-01T02:00:00Z"},
    {"Status": "Failed", "StartTime": "2026-01-01T02:00:00Z", "EndTime": ""},
]
RUN_TWICE = [
    *RUN_ONCE[:2],
    {"Status": "Bidding", "StartTime": "2026-01-01T02:00:00Z"},
    {"Status": "Running", "StartTime": "2026-01-01T03:00:00Z"},
    {"Status": "Failed", "StartTime": "2026-01-01T04:00:00Z"},
]


def pod(
    number: int = 0,
    exit_code: int | None = None,
    sub_status: str = "",
    *,
    end: str = "",
    start: str = "",
    history: list[dict[str, Any]] | None = None,
    status: str = "Failed",
    role: str = "worker",
    **detail: str,
) -> dict[str, Any]:
    raw: dict[str, Any] = {"PodId": f"dlc1-{role}-{number}", "Type": role, "Status": status, "SubStatus": sub_status}
    if exit_code is not None or detail:
        raw["StatusDetail"] = {"ExitCode": exit_code, **detail}
    return {**raw, "GmtStartTime": start, "GmtFinishTime": end, "HistoryPods": history or []}


def failed(*pods: dict[str, Any], spot: bool = True, **raw: Any) -> dict[str, Any]:
    return {
        "JobId": "dlc1",
        "Status": "Failed",
        "ReasonCode": "JobFailed",
        "ReasonMessage": REPLICA_FAILED,
        "JobSpecs": SPOT if spot else [],
        "Pods": list(pods),
        "StatusHistory": RUN_ONCE,
        **raw,
    }


EVICTED = pod(0, 143, "Evicted")
AT_TWO = "2026-01-01T02:00:00Z"
PREEMPTED = "PyTorchJob dlc1 is failed: 1 Worker replica(s) were preempted."

CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "a job that runs": ({"Status": "Running", "JobSpecs": SPOT}, "unknown", "not_over"),
    "a job with a status nobody knows": ({"Status": "Deleted"}, "unknown", "not_over"),
    "a job without a status": ({}, "unknown", "not_over"),
    "a success": ({"Status": "Succeeded"}, "succeeded", "succeeded"),
    "a success that holds its nodes": ({"Status": "SucceededReserving"}, "succeeded", "succeeded"),
    "a success after an eviction": (
        failed(pod(0, 0, history=[EVICTED], status="Succeeded"), Status="Succeeded"),
        "succeeded",
        "succeeded",
    ),
    "a stop": (failed(pod(0, 143), Status="Stopped", ReasonCode="JobStoppedByUser"), "stopped", "stopped"),
    "a stop while pods were evicted": (failed(EVICTED, Status="Stopped"), "stopped", "stopped"),
    "an evicted pod": (failed(EVICTED), "revoked", "spot_pod_evicted"),
    "an evicted pod of a job that holds nodes": (
        failed(EVICTED, Status="FailedReserving"),
        "revoked",
        "spot_pod_evicted",
    ),
    "an evicted pod whose peers lost their connection": (
        failed(EVICTED, pod(1, 1), pod(2, 245)),
        "revoked",
        "spot_pod_evicted",
    ),
    "an evicted pod beside an empty reason": (
        failed(EVICTED, ReasonCode="", ReasonMessage=""),
        "revoked",
        "spot_pod_evicted",
    ),
    "an eviction that no run followed": (
        failed(pod(0, None, status="Pending", history=[pod(0, 143, "Evicted", end="2026-01-01T02:00:00Z")])),
        "revoked",
        "spot_pod_evicted_before",
    ),
    "an eviction the job got over, then a bug": (
        failed(
            pod(0, 1, history=[pod(0, 143, "Evicted", end="2026-01-01T02:00:00Z")]),
            StatusHistory=RUN_TWICE,
        ),
        "failed",
        "command_failed",
    ),
    "an eviction of unknown time, then a bug in the same pod": (
        failed(pod(0, 1, history=[EVICTED])),
        "failed",
        "command_failed",
    ),
    "an eviction the job got over, then no word": (
        failed(pod(0, history=[pod(0, 143, "Evicted", end="2026-01-01T02:00:00Z")]), StatusHistory=RUN_TWICE),
        "unknown",
        "no_rule",
    ),
    "idle quota taken back": (failed(EVICTED, spot=False, Settings=IDLE), "failed", "idle_quota_evicted"),
    "idle quota taken back from an earlier incarnation": (
        failed(pod(history=[EVICTED]), spot=False, Settings=IDLE),
        "failed",
        "idle_quota_evicted",
    ),
    "an eviction nothing explains": (failed(EVICTED, spot=False), "unknown", "evicted_without_spot_terms"),
    "a request that cannot work": (
        failed(ReasonCode="InvalidParameter", ReasonMessage="ResourceConfig is invalid."),
        "failed",
        "reason_code",
    ),
    "resources that cannot be allocated": (
        failed(ReasonCode="ResourceAllocateFailed"),
        "failed",
        "resources_not_allocated",
    ),
    "memory": (failed(pod(0, 137, Reason="OOMKilled")), "failed", "out_of_memory"),
    "a failing command, its peers killed afterwards": (
        failed(pod(0, 1, end="2026-01-01T02:00:00Z"), pod(1, 143, end="2026-01-01T02:00:05Z")),
        "failed",
        "command_failed",
    ),
    "a killed pod, its peers failing afterwards": (
        failed(pod(0, 143, end="2026-01-01T02:00:00Z"), pod(1, 1, end="2026-01-01T02:00:05Z")),
        "unknown",
        "possibly_reclaimed",
    ),
    "a preempted pod without a sub-status, its peers failing afterwards": (
        failed(
            pod(0, 143, end="2026-01-01T02:00:00Z"),
            pod(1, 1, end="2026-01-01T02:00:05Z"),
            ReasonMessage=PREEMPTED,
        ),
        "revoked",
        "message_preempted",
    ),
    "an image that cannot be pulled": (
        failed(pod(0, Reason="ImagePullBackOff", status="Pending")),
        "failed",
        "image_pull",
    ),
    "an image DLC says cannot be pulled": (
        failed(ReasonMessage="Failed to pull image x: manifest unknown"),
        "failed",
        "image_pull",
    ),
    "a registry that does not let us in": (
        failed(ReasonMessage="pull access denied: unauthorized"),
        "failed",
        "image_pull",
    ),
    "KubeDL's reason code": (failed(ReasonCode="JobEvicted", ReasonMessage=""), "revoked", "reason_evicted"),
    "DLC's word for it": (failed(pod(0, 143), ReasonMessage=PREEMPTED), "revoked", "message_preempted"),
    "DLC's other word for it": (
        failed(ReasonMessage="Job failed because pod dlc1-worker-0 was evicted"),
        "revoked",
        "message_preempted",
    ),
    "a released spot instance": (
        failed(ReasonMessage="The spot instance was released."),
        "revoked",
        "message_preempted",
    ),
    "the same words without spot terms": (failed(spot=False, ReasonMessage=PREEMPTED), "unknown", "no_rule"),
    "what spot capacity is called": (
        failed(ReasonMessage="preemptible job failed because 1 Worker replica(s) failed."),
        "unknown",
        "no_rule",
    ),
    "the scheduler's small talk": (
        failed(ReasonMessage="0/5 nodes are available: preemption: No preemption victims found"),
        "unknown",
        "no_rule",
    ),
    "no eviction, in so many words": (failed(ReasonMessage="The pod was not evicted."), "unknown", "no_rule"),
    "a pod that filled its disk": (
        failed(ReasonMessage="Pod evicted: the node was low on resource: ephemeral-storage"),
        "failed",
        "node_pressure",
    ),
    "a failed mount": (
        failed(ReasonMessage='{"reason": "128", "message": "context deadline exceeded"}'),
        "failed",
        "platform_fault",
    ),
    "a job that ran as long as it may": (
        failed(pod(0, 143), JobMaxRunningTimeMinutes=60),
        "failed",
        "max_running_time",
    ),
    "SIGTERM from nobody knows": (failed(pod(0, 143)), "unknown", "possibly_reclaimed"),
    "SIGKILL from nobody knows": (failed(pod(0, 137)), "unknown", "possibly_reclaimed"),
    "a signal without spot terms": (failed(pod(0, 143), spot=False), "unknown", "possibly_reclaimed"),
    "a pod that failed without having been evicted": (
        failed(pod(0, None, "Normal"), pod(1, 0, "Normal", status="Succeeded")),
        "failed",
        "pod_failed_in_place",
    ),
    "no word at all": (failed(), "unknown", "no_rule"),
    "a word the program left behind": (
        failed(pod(0, None, Message="cache entry evicted, spot released, preempted")),
        "unknown",
        "no_rule",
    ),
    "DLC's own helper failing": (failed(pod(0, 1, role="aimaster")), "unknown", "no_rule"),
}


@pytest.mark.parametrize(("raw", "verdict", "rule"), CASES.values(), ids=CASES)
def test_each_end_is_told_by_its_rule(raw: dict[str, Any], verdict: str, rule: str) -> None:
    outcome = classify(Job(raw))
    assert (outcome.verdict, outcome.rule) == (verdict, rule)
    assert outcome.evidence
    assert outcome.confidence in ("documented", "observed", "assumed")


@pytest.mark.parametrize("exit_code", [1, 2, 126, 127, 128, 139, 245, 255])
def test_a_program_that_failed_by_itself_is_a_failure(exit_code: int) -> None:
    outcome = classify(Job(failed(pod(0, exit_code, "Normal"))))
    assert (outcome.verdict, outcome.rule) == (Verdict.FAILED, "command_failed")
    assert outcome.evidence == (f"pod worker-0 Failed, exit code {exit_code}",)


QUOTES_EVICTED = "Worker 0 exited: RuntimeError: key was evicted from the cache"


@pytest.mark.parametrize("sub_status", ["Normal", ""])
@pytest.mark.parametrize("exit_code", [3, 42, 85, 132, 133, 134, 135, 136, 141, 254])
def test_an_exit_code_that_no_page_lists_beats_words_too(exit_code: int, sub_status: str) -> None:
    for words in (QUOTES_EVICTED, PREEMPTED, ""):
        outcome = classify(Job(failed(pod(0, exit_code, sub_status), ReasonMessage=words)), [EVENT])
        assert (outcome.cause, outcome.rule, outcome.confidence) == (Cause.USER_FAILURE, "other_exit_code", "assumed")
        assert outcome.evidence == (f"pod worker-0 Failed, exit code {exit_code}",)


@pytest.mark.parametrize("exit_code", [129, 130, 131, 137, 138, 140, 143])
def test_an_exit_code_of_a_signal_that_others_send_leaves_it_to_words(exit_code: int) -> None:
    assert classify(Job(failed(pod(0, exit_code), ReasonMessage=PREEMPTED))).rule == "message_preempted"
    assert classify(Job(failed(pod(0, exit_code)))).rule == "possibly_reclaimed"


@pytest.mark.parametrize("exit_code", [1, 3, 42, 134, 143, 255])
def test_an_evicted_pod_is_a_loss_whatever_it_exits_with(exit_code: int) -> None:
    assert classify(Job(failed(pod(0, exit_code, "Evicted")))).rule == "spot_pod_evicted"


def test_a_killed_pod_comes_before_peers_that_fail_with_codes_of_their_own() -> None:
    pods = pod(0, 143, end=AT_TWO), pod(1, 42, end="2026-01-01T02:00:05Z")
    assert classify(Job(failed(*pods))).rule == "possibly_reclaimed"
    assert classify(Job(failed(*pods, ReasonMessage=PREEMPTED))).rule == "message_preempted"


def test_where_no_rule_tells_the_exit_codes_are_shown() -> None:
    assert classify(Job(failed(pod(0, 1, role="aimaster"), pod(0, -9)))).evidence == (
        "status Failed, reason JobFailed; exit codes do not tell why",
        "pod aimaster-0 Failed, exit code 1",
        "pod worker-0 Failed, exit code -9",
    )
    assert classify(Job(failed(pod()))).evidence == ("status Failed, reason JobFailed; no pod tells why",)


EVENT = "2026-01-01 10:00:00 Pod dlc1-worker-0 has been preempted"
EVENTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "of a spot job": (failed(), EVENT, "event_preempted"),
    "of another job": (failed(spot=False), EVENT, "no_rule"),
    "of a job that ran again since": (failed(StatusHistory=RUN_TWICE), EVENT, "no_rule"),
    "of a job that DLC restarted": (failed(RestartTimes="1/10"), EVENT, "no_rule"),
    "about a full disk": (failed(), "Evicted pod: DiskPressure, pod evicted", "no_rule"),
    "about an image, before any run": (failed(StatusHistory=[]), "Error: ErrImagePull", "image_pull"),
    "about an image that was pulled later": (failed(), "Error: ErrImagePull", "no_rule"),
}


@pytest.mark.parametrize(("raw", "event", "rule"), EVENTS.values(), ids=EVENTS)
def test_events_tell_where_nothing_better_does(raw: dict[str, Any], event: str, rule: str) -> None:
    assert classify(Job(raw), ["Created pod: dlc1-worker-0", event]).rule == rule


STAMPED = {
    "before the run": ("2026-01-01T00:20:00Z", "possibly_reclaimed"),
    "before the run, in China's time": ("2026-01-01 08:20:00+08:00", "possibly_reclaimed"),
    "in the run": ("2026-01-01T01:59:00Z", "event_preempted"),
    "in the second in which it began": ("2026-01-01T01:00:00Z", "event_preempted"),
    "in the second in which it ended": ("2026-01-01T02:00:00Z", "event_preempted"),
    "written a moment after the end": ("2026-01-01T02:00:15Z", "event_preempted"),
    "after the end": ("2026-01-01T02:00:16Z", "possibly_reclaimed"),
    "of no known zone": ("2026-01-01 00:20:00", "event_preempted"),
    "of a zone that cannot be right, for the job was not made yet": ("2025-12-31T17:59:00Z", "event_preempted"),
    "of no day": ("2026-13-01T00:20:00Z", "event_preempted"),
    "missing": ("lately", "event_preempted"),
}


@pytest.mark.parametrize(("stamp", "rule"), STAMPED.values(), ids=STAMPED)
def test_an_event_from_before_the_last_run_or_after_it_is_not_why_it_ended(stamp: str, rule: str) -> None:
    raw = failed(pod(0, 137), GmtCreateTime="2026-01-01T00:00:00Z")
    assert classify(Job(raw), [f"{stamp} Pod dlc1-worker-0 has been preempted"]).rule == rule


def test_an_event_counts_where_the_job_shows_no_run() -> None:
    raw = failed(pod(0, 137), StatusHistory=[])
    assert classify(Job(raw), ["2026-01-01T00:20:00Z the pod was preempted"]).rule == "event_preempted"


def test_who_submitted_the_job_may_know_that_it_bid() -> None:
    raw = failed(EVICTED, spot=False)
    assert classify(Job(raw), spot=True).verdict is Verdict.REVOKED
    assert classify(Job(failed(EVICTED)), spot=False).verdict is Verdict.UNKNOWN


def test_held_nodes_are_reported() -> None:
    assert classify(Job({"Status": "FailedReserving"})).reserving
    assert not classify(Job({"Status": "Failed"})).reserving


def test_the_outcome_carries_times_pods_and_restarts() -> None:
    pods = [pod(1, 0, "Normal", status="Succeeded"), EVICTED]
    outcome = classify(Job(failed(*pods, RestartTimes="2/10", GmtCreateTime="2026-01-01T00:00:00Z")))
    assert (outcome.seconds_pending, outcome.seconds_running, outcome.restarts) == (3_600, 3_600, 2)
    assert outcome.timeline[1] == ("Running", "2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z")
    assert outcome.pods[0] == {
        "pod_id": "dlc1-worker-0",
        "type": "worker",
        "status": "Failed",
        "sub_status": "Evicted",
        "exit_code": 143,
    }


def test_no_secret_and_no_command_gets_into_an_outcome() -> None:
    raw = failed(
        pod(0, 1, Message="hunter2"),
        Envs={"TOKEN": "hunter2"},
        UserCommand="train --token hunter2",
        CustomEnvs=[{"Key": "A", "Value": "hunter2"}],
    )
    assert "hunter2" not in json.dumps(classify(Job(raw)).to_dict())


XID = Rule(
    name="our_driver",
    verdict=Verdict.FAILED,
    cause=Cause.PLATFORM,
    sign=lambda scene: ["Xid 79"] if scene.events else [],
)


def test_a_user_s_own_rules_are_asked_before_ours() -> None:
    outcome = classify(Job(failed(EVICTED)), ["NVRM: Xid 79"], rules_with([XID]))
    assert (outcome.verdict, outcome.cause, outcome.rule) == (Verdict.FAILED, Cause.PLATFORM, "our_driver")
    assert (outcome.evidence, outcome.confidence) == (("Xid 79",), "assumed")
    assert classify(Job(failed(EVICTED)), [], rules_with([XID])).rule == "spot_pod_evicted"


@pytest.mark.parametrize("status", ["Running", "Succeeded", "SucceededReserving", "Stopped", "Stopping", "Deleted", ""])
def test_a_user_s_own_rules_are_not_asked_about_a_job_that_did_not_fail(status: str) -> None:
    lost = Rule(name="mine", verdict=Verdict.REVOKED, cause=Cause.REVOKED, sign=lambda _scene: ["always"])
    raw = failed(EVICTED, Status=status)
    assert classify(Job(raw), [], rules_with([lost])) == classify(Job(raw))
    assert classify(Job(failed()), [], rules_with([lost])).verdict is Verdict.REVOKED


def test_what_a_user_s_own_rule_tells_is_masked_and_cut() -> None:
    chatty = Rule(
        name="mine", verdict=Verdict.FAILED, cause=None, sign=lambda _scene: ["token=planted " + "x " * 4_500, 5] * 900
    )
    evidence = classify(Job(failed()), [], rules_with([chatty])).evidence
    assert evidence[0].startswith("token=*** x x")
    assert len(json.dumps(evidence)) <= 2_000


def test_a_secret_in_a_reason_or_an_event_is_in_no_outcome() -> None:
    told = "Failed to pull image https://robot:planted@hub/x: unauthorized, token=planted, LTAIplanted0000001"
    by_reason = classify(Job(failed(ReasonMessage=told)))
    by_event = classify(Job(failed(StatusHistory=[])), [told])
    assert by_reason.rule == by_event.rule == "image_pull"
    assert "planted" not in f"{by_reason} {by_event}"
    assert "unauthorized" in by_reason.evidence[0]


def test_evidence_shows_what_was_found_however_late_it_comes() -> None:
    for words in range(300):
        outcome = classify(Job(failed(ReasonMessage="word " * words + "the pod was preempted" + " word" * 300)))
        assert outcome.rule == "message_preempted"
        assert "the pod was preempted" in outcome.evidence[0]


def test_rule_names_are_unique_because_outcomes_name_them() -> None:
    names = [rule.name for rule in RULES]
    assert len(names) == len(set(names))


TABLE = {4: "8d476ef78fd4"}


def test_the_version_of_the_table_changes_with_it() -> None:
    """Add the new version and what it digests to; an outcome of a bug report names only the rule."""
    rows = [(rule.name, rule.verdict, rule.cause, rule.reads, rule.confidence) for rule in RULES]
    assert hashlib.sha256(repr(rows).encode()).hexdigest()[:12] == TABLE[RULES_VERSION]


def test_each_rule_says_what_it_reads_and_where_that_is_from() -> None:
    assert [rule.name for rule in RULES if not (rule.reads and rule.source)] == []
    assert {rule.name for rule in RULES if (rule.cause is None) != (rule.name in ("not_over", "succeeded"))} == set()
    assert all(source_of(classify(Job(raw))) for raw, _, _ in CASES.values())


KUBELET = (
    "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 2Gi.",
    "The node was low on resource: memory. Container train was using 60Gi, request is 32Gi.",
    "The node had condition: [DiskPressure].",
    "Pod ephemeral local storage usage exceeds the total limit of containers 10Gi.",
    'Container train exceeded its local ephemeral storage limit "10Gi".',
    'Usage of EmptyDir volume "shm" exceeds the limit "1Gi".',
)


@pytest.mark.parametrize("told", KUBELET)
def test_a_pod_that_the_kubelet_evicted_for_what_it_used_lost_no_capacity(told: str) -> None:
    by_reason = classify(Job(failed(EVICTED, ReasonMessage=told)))
    by_pod = classify(Job(failed(pod(1, 137), pod(0, 137, "Evicted", Reason="Evicted", Message=told))))
    by_kubernetes_alone = classify(Job(failed(pod(0, 137, Reason="Evicted", Message=told))))
    before = pod(0, status="Pending", history=[pod(0, 137, "Evicted", end=AT_TWO, Reason="Evicted", Message=told)])
    for outcome in (by_reason, by_pod, by_kubernetes_alone, classify(Job(failed(before)))):
        assert (outcome.verdict, outcome.cause, outcome.rule) == (Verdict.FAILED, Cause.ENVIRONMENT, "node_pressure")
        assert told[:30] in outcome.evidence[0]


STILL_LOST = {
    "a program's own last words": failed(pod(0, 143, "Evicted", Reason="Error", Message=KUBELET[0])),
    "spot capacity called ephemeral": failed(
        EVICTED, ReasonMessage="The ephemeral spot instance of worker-0 was reclaimed."
    ),
    "a disk that DLC made good, then a loss": failed(
        pod(0, 143, "Evicted", history=[pod(0, 137, "Evicted", end=AT_TWO, Reason="Evicted", Message=KUBELET[0])]),
        StatusHistory=RUN_TWICE,
    ),
}


@pytest.mark.parametrize("raw", STILL_LOST.values(), ids=STILL_LOST)
def test_a_loss_stays_one_beside_words_of_a_disk_that_are_about_something_else(raw: dict[str, Any]) -> None:
    assert classify(Job(raw)).rule == "spot_pod_evicted"


@pytest.mark.parametrize("reason", ["Evicted", "NodeLost", "NodeShutdown", "Shutdown", "Terminated"])
def test_a_pod_that_its_machine_ended_is_no_failure_of_the_user_s(reason: str) -> None:
    in_place = pod(0, None, "Normal", Reason=reason)
    assert classify(Job(failed(in_place))).rule == "no_rule"
    assert classify(Job(failed(in_place)), [EVENT]).rule == "event_preempted"
    assert classify(Job(failed(in_place, pod(1, None, "Normal", Reason="Error")))).rule == "no_rule"
    assert classify(Job(failed(pod(0, 1, "Normal", Reason=reason)))).rule == "command_failed"


LOST = "spot_pod_evicted"
PEERS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "failed long before": ([pod(0, 1, end="2026-01-01T01:50:00Z")], "command_failed"),
    "failed a minute and a second before": ([pod(0, 1, end="2026-01-01T01:58:59Z")], "command_failed"),
    "failed a minute before": ([pod(0, 1, end="2026-01-01T01:59:00Z")], LOST),
    "failed in the same second": ([pod(0, 1, end=AT_TWO)], LOST),
    "failed 45 minutes later": ([pod(0, 1, end="2026-01-01T02:45:00Z")], LOST),
    "failed a second after these": ([pod(0, 1, end="2026-01-01T02:45:01Z")], "command_failed"),
    "failed hours later, with a code that no page lists": ([pod(0, 42, end="2026-01-01T09:00:00Z")], "other_exit_code"),
    "was killed for its memory hours later": (
        [pod(0, 137, end="2026-01-01T09:00:00Z", Reason="OOMKilled")],
        "out_of_memory",
    ),
    "was killed hours later, by whom nobody says": ([pod(0, 137, end="2026-01-01T09:00:00Z")], LOST),
    "failed, nobody knows when": ([pod(0, 1)], LOST),
    "failed hours later, another at once": (
        [pod(0, 1, end="2026-01-01T09:00:00Z"), pod(1, 1, end="2026-01-01T02:00:09Z")],
        LOST,
    ),
    "failed hours later, another nobody knows when": ([pod(0, 1, end="2026-01-01T09:00:00Z"), pod(1, 1)], LOST),
    "was lost as well, at the time of the failure": (
        [pod(0, 1, end="2026-01-01T09:00:09Z"), pod(1, 143, "Evicted", end="2026-01-01T09:00:00Z")],
        LOST,
    ),
    "failed hours later, the lost one with a code of its own": (
        [pod(0, 42, end="2026-01-01T09:00:00Z"), pod(1, 1, "Evicted", end=AT_TWO)],
        "other_exit_code",
    ),
}


@pytest.mark.parametrize(("peers", "rule"), PEERS.values(), ids=PEERS)
def test_an_eviction_ends_a_job_whose_peers_fail_about_its_time(peers: list[dict[str, Any]], rule: str) -> None:
    raw = failed(pod(3, 143, "Evicted", end=AT_TWO), *peers)
    assert classify(Job(raw)).rule == rule


@pytest.mark.parametrize(("settings", "rule"), [({}, "evicted_without_spot_terms"), (IDLE, "idle_quota_evicted")])
def test_so_it_does_where_nothing_was_bid(settings: dict[str, str], rule: str) -> None:
    lost = pod(3, 143, "Evicted", end=AT_TWO)
    for peer, expected in ((pod(0, 1, end=AT_TWO), rule), (pod(0, 1, end="2026-01-01T09:00:00Z"), "command_failed")):
        assert classify(Job(failed(lost, peer, spot=False, Settings=settings))).rule == expected


def test_an_eviction_for_a_full_disk_may_be_outlived_too() -> None:
    lost = pod(3, 137, "Evicted", end=AT_TWO, Reason="Evicted", Message=KUBELET[0])
    for end, expected in (("2026-01-01T02:00:09Z", "node_pressure"), ("2026-01-01T09:00:00Z", "command_failed")):
        assert classify(Job(failed(lost, pod(0, 1, end=end)))).rule == expected


LOST_AT_TWO = pod(3, 143, "Evicted", end=AT_TWO)
SUCCESSORS: dict[str, tuple[dict[str, Any], str]] = {
    "one that runs": (pod(3, start="2026-01-01T02:10:00Z", status="Running"), "command_failed"),
    "one that was ended with the job": (pod(3, 143, start="2026-01-01T02:10:00Z"), "command_failed"),
    "one that began in the second of the loss": (pod(3, start=AT_TWO, status="Running"), "command_failed"),
    "one that failed by itself, nobody knows when it began": (pod(3, 1), "command_failed"),
    "one that never began": (pod(3, status="Pending"), "spot_pod_evicted_before"),
    "one that has a machine and no word of having run": (
        pod(3, start="2026-01-01T02:10:00Z", status="Pending"),
        "spot_pod_evicted_before",
    ),
    "one that was ended, nobody knows when it began": (pod(3, 143), "spot_pod_evicted_before"),
    "one that began when its peer had failed": (
        pod(3, start="2026-01-01T05:30:00Z", status="Running"),
        "spot_pod_evicted_before",
    ),
    "one that was lost as well": (
        pod(
            3,
            status="Pending",
            history=[pod(3, 143, "Evicted", start="2026-01-01T02:10:00Z", end="2026-01-01T04:00:00Z")],
        ),
        "spot_pod_evicted_before",
    ),
}


@pytest.mark.parametrize(("successor", "rule"), SUCCESSORS.values(), ids=SUCCESSORS)
def test_a_job_got_over_a_loss_once_the_lost_pod_s_successor_has_run(successor: dict[str, Any], rule: str) -> None:
    """The job shows one Running throughout, as under AIMaster's Async mode."""
    bug = pod(0, 1, "Normal", end="2026-01-01T05:00:00Z")
    raw = failed(bug, {**successor, "HistoryPods": [*successor["HistoryPods"], LOST_AT_TWO]}, RestartTimes="1/3")
    assert classify(Job(raw)).rule == rule


POD = st.builds(
    pod,
    st.integers(0, 2),
    st.sampled_from([None, 0, 1, 137, 143]),
    st.sampled_from(["", "Normal", "Evicted"]),
    end=st.sampled_from(["", "2026-01-01T02:00:00Z", "2026-01-01T03:00:00Z"]),
)
JOBS = st.builds(
    lambda pods, **raw: failed(*pods, **raw),
    st.lists(POD, max_size=3),
    Status=st.one_of(st.sampled_from(JobStatus).map(str), st.text(max_size=5)),
    spot=st.booleans(),
    ReasonMessage=st.sampled_from(["", PREEMPTED, REPLICA_FAILED, '{"reason": "128"}']),
    Settings=st.sampled_from([{}, IDLE]),
)


@given(JOBS, st.lists(st.sampled_from([EVENT, "ErrImagePull", "Created pod"]), max_size=2))
def test_only_a_failed_job_that_bid_can_have_been_revoked(raw: dict[str, Any], events: list[str]) -> None:
    job = Job(raw)
    verdict = classify(job, events).verdict
    if verdict is Verdict.REVOKED:
        assert job.is_spot
        assert job.status in ("Failed", "FailedReserving")
    assert (verdict is Verdict.SUCCEEDED) == (job.status in ("Succeeded", "SucceededReserving"))
