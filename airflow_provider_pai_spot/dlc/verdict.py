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
from airflow_provider_pai_spot.dlc.outcome import Cause, JobOutcome, Verdict
from airflow_provider_pai_spot.dlc.signs import Scene
from airflow_provider_pai_spot.dlc.status import JobStatus, Phase
from airflow_provider_pai_spot.dlc.wire import iso

RULES_VERSION: Final = 4
"""Changes with the table; what an outcome says about its rule is to be read with it."""

Confidence = Literal["documented", "observed", "assumed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """
    One row.

    :param name: goes into the outcome, the logs and bug reports; never renamed.
    :param verdict: what it decides.
    :param cause: the class of a bad end; None for a good one, and for none yet.
    :param reads: the fields of DLC that it looks at, for people.
    :param confidence: how well its sign is known: documented by DLC, seen in published payloads, or assumed.
    :param source: where that is from.
    :param sign: returns what it saw, a line each; nothing means that the rule does not apply.
    """

    name: str
    verdict: Verdict
    cause: Cause | None
    sign: Callable[[Scene], Sequence[str]]
    reads: str = ""
    confidence: Confidence = "assumed"
    source: str = "your own rule"


STATUS_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        name="not_over",
        verdict=Verdict.UNKNOWN,
        cause=None,
        sign=signs.not_over,
        reads="Status",
        confidence="documented",
        source="GetJob reference, Status",
    ),
    Rule(
        name="succeeded",
        verdict=Verdict.SUCCEEDED,
        cause=None,
        sign=signs.succeeded,
        reads="Status",
        confidence="documented",
        source="GetJob reference, Status",
    ),
    Rule(
        name="stopped_at_max_running_time",
        verdict=Verdict.STOPPED,
        cause=Cause.TIMED_OUT,
        sign=signs.stopped_at_time_limit,
        reads="Status, ReasonCode, JobMaxRunningTimeMinutes, StatusHistory",
        confidence="assumed",
        source="JobMaxRunningTimeMinutes; its final status is undocumented",
    ),
    Rule(
        name="stopped",
        verdict=Verdict.STOPPED,
        cause=Cause.STOPPED,
        sign=signs.stopped,
        reads="Status",
        confidence="documented",
        source="GetJob reference, Status",
    ),
)
"""What DLC's status decides by itself; always asked first, so that nothing judges a job that is under way."""

FAILURE_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        name="node_pressure",
        verdict=Verdict.FAILED,
        cause=Cause.ENVIRONMENT,
        sign=signs.node_pressure,
        reads="ReasonMessage, Pods.SubStatus, Pods.StatusDetail",
        confidence="assumed",
        source="Kubernetes' wording of an eviction for what the pod itself used",
    ),
    Rule(
        name="spot_pod_evicted",
        verdict=Verdict.REVOKED,
        cause=Cause.REVOKED,
        sign=signs.spot_pod_evicted,
        reads="Pods.SubStatus, SpotSpec, Pods.GmtFinishTime, Pods.StatusDetail",
        confidence="documented",
        source="GetJob reference, Pods.SubStatus",
    ),
    Rule(
        name="spot_pod_evicted_before",
        verdict=Verdict.REVOKED,
        cause=Cause.REVOKED,
        sign=signs.spot_pod_evicted_before,
        reads="Pods.HistoryPods.SubStatus, SpotSpec, StatusHistory, Pods.GmtStartTime",
        confidence="assumed",
        source="GetJob reference, HistoryPods; that no run followed is our reading",
    ),
    Rule(
        name="idle_quota_evicted",
        verdict=Verdict.FAILED,
        cause=Cause.IDLE_QUOTA_EVICTION,
        sign=signs.idle_quota_evicted,
        reads="Pods.SubStatus, Pods.HistoryPods.SubStatus, OversoldType, Pods.GmtFinishTime, Pods.StatusDetail",
        confidence="observed",
        source="published payloads: jobs with OversoldType",
    ),
    Rule(
        name="evicted_without_spot_terms",
        verdict=Verdict.UNKNOWN,
        cause=Cause.UNKNOWN,
        sign=signs.pod_evicted,
        reads="Pods.SubStatus, Pods.GmtFinishTime, Pods.StatusDetail",
        confidence="assumed",
        source="an eviction that neither spot terms nor idle quota explain",
    ),
    Rule(
        name="reason_code",
        verdict=Verdict.FAILED,
        cause=Cause.INVALID_REQUEST,
        sign=signs.invalid_parameter,
        reads="ReasonCode",
        confidence="documented",
        source="JobItem reference, ReasonCode",
    ),
    Rule(
        name="resources_not_allocated",
        verdict=Verdict.FAILED,
        cause=Cause.PLATFORM,
        sign=signs.resources_not_allocated,
        reads="ReasonCode",
        confidence="documented",
        source="vendor skill, ReasonCode",
    ),
    Rule(
        name="out_of_memory",
        verdict=Verdict.FAILED,
        cause=Cause.OUT_OF_MEMORY,
        sign=signs.out_of_memory,
        reads="Pods.StatusDetail.Reason, ReasonMessage",
        confidence="observed",
        source="published payloads, StatusDetail.Reason",
    ),
    Rule(
        name="container_not_started",
        verdict=Verdict.FAILED,
        cause=Cause.ENVIRONMENT,
        sign=signs.container_not_started,
        reads="Pods.StatusDetail.Reason",
        confidence="assumed",
        source="Kubernetes' reasons of a container that never ran",
    ),
    Rule(
        name="pod_not_admitted",
        verdict=Verdict.FAILED,
        cause=Cause.PLATFORM,
        sign=signs.pod_not_admitted,
        reads="Pods.StatusDetail.Reason",
        confidence="assumed",
        source="KubeDL, the controller behind DLC, retryable pod reasons",
    ),
    Rule(
        name="command_failed",
        verdict=Verdict.FAILED,
        cause=Cause.USER_FAILURE,
        sign=signs.command_failed,
        reads="Pods.StatusDetail.ExitCode",
        confidence="documented",
        source="vendor skill, exit codes",
    ),
    Rule(
        name="other_exit_code",
        verdict=Verdict.FAILED,
        cause=Cause.USER_FAILURE,
        sign=signs.other_exit_code,
        reads="Pods.StatusDetail.ExitCode",
        confidence="assumed",
        source="any code but 0 and a signal's is the program's own",
    ),
    Rule(
        name="image_pull",
        verdict=Verdict.FAILED,
        cause=Cause.ENVIRONMENT,
        sign=signs.image_not_pulled,
        reads="Pods.StatusDetail.Reason, ReasonMessage, events",
        confidence="documented",
        source="vendor skill, image errors",
    ),
    Rule(
        name="mount",
        verdict=Verdict.FAILED,
        cause=Cause.ENVIRONMENT,
        sign=signs.not_mounted,
        reads="Pods.StatusDetail.Reason, ReasonMessage, events",
        confidence="assumed",
        source="Kubernetes' wording of mounts that did not work",
    ),
    Rule(
        name="reason_evicted",
        verdict=Verdict.REVOKED,
        cause=Cause.REVOKED,
        sign=signs.spot_reason_code_evicted,
        reads="ReasonCode, SpotSpec",
        confidence="assumed",
        source="KubeDL, the controller behind DLC, ReasonCode",
    ),
    Rule(
        name="message_preempted",
        verdict=Verdict.REVOKED,
        cause=Cause.REVOKED,
        sign=signs.spot_message_preempted,
        reads="ReasonMessage, SpotSpec",
        confidence="documented",
        source="vendor skill, ReasonMessage of a preempted job",
    ),
    Rule(
        name="platform_fault",
        verdict=Verdict.FAILED,
        cause=Cause.PLATFORM,
        sign=signs.platform_fault,
        reads="ReasonMessage",
        confidence="observed",
        source="published payloads, ReasonMessage as a JSON document",
    ),
    Rule(
        name="event_preempted",
        verdict=Verdict.REVOKED,
        cause=Cause.REVOKED,
        sign=signs.spot_event_preempted,
        reads="events, SpotSpec, StatusHistory, RestartTimes, GmtFinishTime",
        confidence="assumed",
        source="wording of the vendor skill, looked for in events",
    ),
    Rule(
        name="max_running_time",
        verdict=Verdict.FAILED,
        cause=Cause.TIMED_OUT,
        sign=signs.ran_into_time_limit,
        reads="JobMaxRunningTimeMinutes, StatusHistory",
        confidence="assumed",
        source="JobMaxRunningTimeMinutes; its final status is undocumented",
    ),
    Rule(
        name="aimaster_evicted",
        verdict=Verdict.UNKNOWN,
        cause=Cause.UNKNOWN,
        sign=signs.aimaster_evicted,
        reads="Pods.SubStatus, Pods.Type",
        confidence="assumed",
        source="no page says whether AIMaster's pod runs on spot capacity",
    ),
    Rule(
        name="possibly_reclaimed",
        verdict=Verdict.UNKNOWN,
        cause=Cause.UNKNOWN,
        sign=signs.ended_by_signal,
        reads="Pods.StatusDetail.ExitCode",
        confidence="documented",
        source="vendor skill: 143 is SIGTERM, 137 is SIGKILL, by whom they do not tell",
    ),
    Rule(
        name="pod_failed_in_place",
        verdict=Verdict.FAILED,
        cause=Cause.USER_FAILURE,
        sign=signs.pod_failed_in_place,
        reads="Pods.Status, Pods.SubStatus, Pods.StatusDetail.Reason",
        confidence="assumed",
        source="GetJob reference: SubStatus is Normal or Evicted, and it is Normal",
    ),
)
"""Why a job is Failed or FailedReserving."""

RULES: Final[tuple[Rule, ...]] = (*STATUS_RULES, *FAILURE_RULES)
"""The rules of this release."""

_NO_RULE: Final = Rule(
    name="no_rule", verdict=Verdict.UNKNOWN, cause=Cause.UNKNOWN, sign=lambda _scene: (), source="nothing matched"
)


def rules_with(own: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return this release's rules and, asked before them about each job that failed, somebody's own."""
    return (*STATUS_RULES, *own, *FAILURE_RULES)


def source_of(outcome: JobOutcome, rules: Sequence[Rule] = RULES) -> str:
    """Return where the rule that decided is from, '' if it is none of these."""
    return next((rule.source for rule in (*rules, _NO_RULE) if rule.name == outcome.rule), "")


def classify(
    job: Job, events: Sequence[str] = (), rules: Sequence[Rule] = RULES, *, spot: bool | None = None
) -> JobOutcome:
    """
    Return how a job ended; `unknown` by rule `not_over` if it has not.

    :param events: lines of GetJobEvents and GetPodEvents; never lines of logs.
    :param rules: tried in order; `rules_with` puts your own at their place.
    :param spot: whether it bid for spot capacity, where the caller knows (DLC does not always echo SpotSpec);
        None goes by what the job shows.
    """
    scene = Scene(job=job, spot=job.is_spot if spot is None else spot, events=tuple(events))
    rule, evidence = _NO_RULE, _what_there_is(job)
    for candidate in rules:
        if seen := tuple(candidate.sign(scene)):
            rule, evidence = candidate, seen
            break
    return _outcome(job, rule, evidence)


def _outcome(job: Job, rule: Rule, evidence: tuple[str, ...]) -> JobOutcome:
    failing_first = sorted([*job.pods, *job.history_pods], key=lambda pod: not pod.has_failed)
    return JobOutcome(
        job_id=job.job_id,
        verdict=rule.verdict,
        cause=rule.cause,
        status=job.status,
        reason_code=job.reason_code,
        reason_message=job.reason_message,
        rule=rule.name,
        confidence=rule.confidence,
        evidence=evidence,
        seconds_pending=job.seconds_pending(),
        seconds_running=job.seconds_running(),
        restarts=job.restart_times.used,
        exit_code=signs.deciding_exit_code(job) if _decides_by_exit_code(rule) else None,
        timeline=tuple((item.status, iso(item.start), iso(item.end)) for item in job.timeline),
        pods=tuple(pod.summary() for pod in failing_first),
        reserving=job.phase is Phase.DECIDED,
    )


def _decides_by_exit_code(rule: Rule) -> bool:
    return rule.cause is Cause.USER_FAILURE or rule.name == "container_not_started"


def _what_there_is(job: Job) -> tuple[str, ...]:
    reason = f", reason {job.reason_code}" if job.reason_code else ", no reason code"
    if job.status not in (JobStatus.FAILED, JobStatus.FAILED_RESERVING):
        return (f"status {job.status}{reason}; no rule for it",)
    exits = signs.exit_codes(job)
    return (f"status {job.status}{reason}; {'exit codes do not tell why' if exits else 'no pod tells why'}", *exits)
