"""
How a job ended: a table of rules over one job, read from top to bottom, first match wins.

Machine-readable signals come first (status, pod sub-status, reason and exit codes), wording second and only
as data, and what no rule can tell is `unknown`: an honest answer, never a success. Wording is read where DLC
writes it (ReasonMessage, events), never where a user's program can (logs, a container's last message).

Mistakes cost differently each way: a failure taken for a revocation is resubmitted, and paid, again and
again; a revocation taken for a failure costs one of Airflow's retries. Doubt is therefore never `revoked`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from airflow_provider_pai_spot.dlc import signs
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import JobOutcome, Verdict
from airflow_provider_pai_spot.dlc.signs import Scene
from airflow_provider_pai_spot.dlc.status import JobStatus, Phase
from airflow_provider_pai_spot.dlc.wire import iso

RULES_VERSION: Final = 1

Confidence = Literal["documented", "observed", "assumed"]


@dataclass(frozen=True, slots=True)
class Rule:
    """
    One row.

    :param name: goes into the outcome, the logs and bug reports; never renamed.
    :param verdict: what it decides.
    :param confidence: how well its sign is known: documented by DLC, seen in published payloads, or assumed.
    :param source: where that is from.
    :param sign: returns what it saw, a line each; nothing means that the rule does not apply.
    """

    name: str
    verdict: Verdict
    confidence: Confidence
    source: str
    sign: Callable[[Scene], Sequence[str]]


RULES: Final[tuple[Rule, ...]] = (
    Rule("not_over", Verdict.UNKNOWN, "documented", "GetJob reference, Status", signs.not_over),
    Rule("succeeded", Verdict.SUCCEEDED, "documented", "GetJob reference, Status", signs.succeeded),
    Rule("stopped", Verdict.STOPPED, "documented", "GetJob reference, Status", signs.stopped),
    # From here on the job is Failed or FailedReserving.
    Rule(
        "spot_pod_evicted",
        Verdict.REVOKED,
        "documented",
        "GetJob reference, Pods.SubStatus",
        signs.spot_pod_evicted,
    ),
    Rule(
        "spot_pod_evicted_before",
        Verdict.REVOKED,
        "assumed",
        "GetJob reference, HistoryPods; that no run followed is our reading",
        signs.spot_pod_evicted_before,
    ),
    Rule(
        "idle_quota_evicted",
        Verdict.FAILED,
        "observed",
        "published payloads: jobs with OversoldType",
        signs.idle_quota_evicted,
    ),
    Rule(
        "evicted_without_spot_terms",
        Verdict.UNKNOWN,
        "assumed",
        "an eviction that neither spot terms nor idle quota explain",
        signs.pod_evicted,
    ),
    Rule(
        "reason_code",
        Verdict.FAILED,
        "documented",
        "JobItem reference and vendor skill, ReasonCode",
        signs.configuration_reason_code,
    ),
    Rule(
        "out_of_memory",
        Verdict.FAILED,
        "observed",
        "published payloads, StatusDetail.Reason",
        signs.out_of_memory,
    ),
    Rule("command_failed", Verdict.FAILED, "documented", "vendor skill, exit codes", signs.command_failed),
    Rule("image_pull", Verdict.FAILED, "documented", "vendor skill, image errors", signs.image_not_pulled),
    Rule(
        "reason_evicted",
        Verdict.REVOKED,
        "assumed",
        "KubeDL, the controller behind DLC, ReasonCode",
        signs.spot_reason_code_evicted,
    ),
    Rule(
        "message_preempted",
        Verdict.REVOKED,
        "documented",
        "vendor skill, ReasonMessage of a preempted job",
        signs.spot_message_preempted,
    ),
    Rule(
        "platform_fault",
        Verdict.FAILED,
        "observed",
        "published payloads, ReasonMessage as a JSON document",
        signs.platform_fault,
    ),
    Rule(
        "event_preempted",
        Verdict.REVOKED,
        "assumed",
        "wording of the vendor skill, looked for in events",
        signs.spot_event_preempted,
    ),
    Rule(
        "max_running_time",
        Verdict.FAILED,
        "assumed",
        "JobMaxRunningTimeMinutes; its final status is undocumented",
        signs.ran_into_time_limit,
    ),
    Rule(
        "possibly_reclaimed",
        Verdict.UNKNOWN,
        "documented",
        "vendor skill: 143 is SIGTERM, 137 is SIGKILL, by whom they do not tell",
        signs.ended_by_signal,
    ),
    Rule(
        "pod_failed_in_place",
        Verdict.FAILED,
        "assumed",
        "GetJob reference: SubStatus is Normal or Evicted, and it is Normal",
        signs.pod_failed_in_place,
    ),
)
"""The rules of this release; pass your own with these, `classify(job, rules=(mine, *RULES))`."""

_NO_RULE = Rule("no_rule", Verdict.UNKNOWN, "assumed", "nothing matched", lambda _scene: ())


def classify(
    job: Job, events: Sequence[str] = (), rules: Sequence[Rule] = RULES, *, spot: bool | None = None
) -> JobOutcome:
    """
    Return how a job ended; `unknown` by rule `not_over` if it has not.

    :param events: lines of GetJobEvents and GetPodEvents; never lines of logs.
    :param rules: tried in order.
    :param spot: whether it bid for spot capacity, where the caller knows (DLC does not always echo SpotSpec);
        None goes by what the job shows.
    """
    scene = Scene(job=job, spot=job.is_spot if spot is None else spot, events=tuple(events))
    rule, evidence = _NO_RULE, _what_there_is(job)
    for candidate in rules:
        seen = tuple(candidate.sign(scene))
        if seen:
            rule, evidence = candidate, seen
            break
    return _outcome(job, rule, evidence)


def _outcome(job: Job, rule: Rule, evidence: tuple[str, ...]) -> JobOutcome:
    failing_first = sorted([*job.pods, *job.history_pods], key=lambda pod: not pod.has_failed)
    return JobOutcome(
        job_id=job.job_id,
        verdict=rule.verdict,
        status=job.status,
        reason_code=job.reason_code,
        reason_message=job.reason_message,
        rule=rule.name,
        confidence=rule.confidence,
        evidence=evidence,
        seconds_pending=job.seconds_pending(),
        seconds_running=job.seconds_running(),
        restarts=job.restart_times.used,
        timeline=tuple((item.status, iso(item.start), iso(item.end)) for item in job.timeline),
        pods=tuple(pod.summary() for pod in failing_first),
        reserving=job.phase is Phase.DECIDED,
    )


def _what_there_is(job: Job) -> tuple[str, ...]:
    reason = f", reason {job.reason_code}" if job.reason_code else ", no reason code"
    what = "no pod tells why" if job.status in (JobStatus.FAILED, JobStatus.FAILED_RESERVING) else "no rule for it"
    return (f"status {job.status}{reason}; {what}",)
