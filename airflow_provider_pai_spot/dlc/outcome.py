"""
How a job ended, as one small versioned value.

It travels from the trigger to the operator as the trigger's event, into exceptions and into XCom, so it is
plain JSON, below 10 kB (the triggerer's loop blocks on large events), and free of Envs and request bodies.
Texts of others, evidence and reason, lose what looks like a secret as soon as they get in here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self

from airflow_provider_pai_spot.dlc.redaction import without_secrets
from airflow_provider_pai_spot.dlc.refusal import shown
from airflow_provider_pai_spot.dlc.status import JobStatus, Phase, has_machines, phase_of
from airflow_provider_pai_spot.dlc.wire import integer_of, mapping_of, mappings_of, text_of

OUTCOME_VERSION = 1

# Characters, entries and, since a character can take twelve bytes of JSON, bytes: together below 10 kB.
_MAX_MESSAGE, _MAX_MESSAGE_BYTES = 500, 1_500
_MAX_NAME_BYTES = 130
_MAX_LINE, _MAX_LINE_BYTES, _MAX_EVIDENCE_BYTES = 400, 900, 2_000
_MAX_TIMELINE, _MAX_TIMELINE_BYTES = 30, 2_200
_MAX_PODS, _MAX_PODS_BYTES = 20, 2_000
_MAX_PROGRESS_BYTES = 1_000
_STOP_STATUSES = (JobStatus.STOPPING, JobStatus.STOPPED)
_NAMES = ("job_id", "status", "reason_code", "rule", "confidence")
_POD_KEYS = ("pod_id", "type", "status", "sub_status", "exit_code")


class Verdict(StrEnum):
    """The five ends of a job. `UNKNOWN` is an honest answer, never a success."""

    SUCCEEDED = "succeeded"
    REVOKED = "revoked"
    FAILED = "failed"
    STOPPED = "stopped"
    UNKNOWN = "unknown"


class Cause(StrEnum):
    """What a bad end comes from, in classes that tell a person (and a recovery policy) what may help."""

    REVOKED = "revoked"
    """The market took the capacity back."""
    IDLE_QUOTA_EVICTION = "idle_quota_eviction"
    """The owner of idle quota took it back: no market, and no bid helps."""
    USER_FAILURE = "user_failure"
    """The command failed by itself."""
    ENVIRONMENT = "environment"
    """Its image, mounts or disk did."""
    OUT_OF_MEMORY = "out_of_memory"
    """It was killed for its memory: it needs more, or less."""
    INVALID_REQUEST = "invalid_request"
    """The request or its configuration cannot work."""
    STOPPED = "stopped"
    """Stopped by hand in DLC; or by us, then `stop_reason` says why."""
    TIMED_OUT = "timed_out"
    """A limit passed, the task's or DLC's own."""
    PLATFORM = "platform"
    """DLC or its machines failed a job that may be right."""
    UNKNOWN = "unknown"
    """Nothing tells."""


class StopReason(StrEnum):
    """Why we stopped a job ourselves; stored before StopJob is sent."""

    PENDING_TIMEOUT = "pending_timeout"
    RUN_TIMEOUT = "run_timeout"
    TOTAL_TIMEOUT = "total_timeout"
    EXECUTION_TIMEOUT = "execution_timeout"
    KILLED = "killed"
    REPLACED = "replaced"
    DUPLICATE = "duplicate"
    SPOT_TERMS = "spot_terms"


_TIME_LIMITS = (
    StopReason.PENDING_TIMEOUT,
    StopReason.RUN_TIMEOUT,
    StopReason.TOTAL_TIMEOUT,
    StopReason.EXECUTION_TIMEOUT,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """
    How one DLC job ended.

    :param job_id: DLC's id of the job.
    :param verdict: one of the five ends.
    :param status: the job's status as DLC spelled it when the verdict was made.
    :param cause: what a bad end comes from; None for a success, for a job that is not over, and where an older
        release did not say.
    :param reason_code: DLC's `ReasonCode`, may be empty.
    :param reason_message: DLC's `ReasonMessage`, masked and cut to 500 characters.
    :param rule: name of the classifier's row that decided.
    :param confidence: how sure that row is: `documented`, `observed` or `assumed`.
    :param evidence: what the verdict rests on, a line each, masked, 2 kB at most together.
    :param seconds_pending: seconds before (and between) running, from the job's own timestamps.
    :param seconds_running: seconds in Running, from the job's own timestamps.
    :param restarts: restarts DLC itself made (AIMaster).
    :param timeline: `[status, start, end]` entries, ISO 8601 UTC, end may be empty.
    :param exit_code: the one that decided, of the first pod whose command failed by itself or could not be executed.
    :param pods: `{pod_id, type, status, sub_status, exit_code}` of each pod, failing ones first.
    :param progress: the last `PAI_SPOT_PROGRESS` object the command printed, if any.
    :param stop_reason: why we stopped the job ourselves, if we did.
    :param reserving: whether nodes are still held (`*Reserving`), and perhaps billed.
    :param on_demand: whether we submitted it at list price, in the place of jobs that bid.
    """

    job_id: str
    verdict: Verdict
    status: str
    cause: Cause | None = None
    reason_code: str = ""
    reason_message: str = ""
    rule: str = ""
    confidence: str = ""
    evidence: tuple[str, ...] = ()
    seconds_pending: float = 0.0
    seconds_running: float = 0.0
    restarts: int = 0
    exit_code: int | None = None
    timeline: tuple[tuple[str, str, str], ...] = ()
    pods: tuple[Mapping[str, Any], ...] = ()
    progress: Mapping[str, Any] | None = None
    stop_reason: StopReason | None = None
    reserving: bool = False
    on_demand: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "evidence", _fit_to_show(self.evidence))
        object.__setattr__(self, "reason_message", without_secrets(self.reason_message, _MAX_MESSAGE))

    def to_dict(self) -> dict[str, Any]:
        """Return the versioned JSON form, cut to its size limits."""
        return {
            "version": OUTCOME_VERSION,
            "restarts": self.restarts,
            "exit_code": self.exit_code,
            "reserving": self.reserving,
            "on_demand": self.on_demand,
            "verdict": self.verdict.value,
            "cause": self.cause.value if self.cause else None,
            "stop_reason": self.stop_reason.value if self.stop_reason else None,
            **{name: _cut(getattr(self, name), _MAX_NAME_BYTES) for name in _NAMES},
            "reason_message": _shortened(self.reason_message, _MAX_MESSAGE, _MAX_MESSAGE_BYTES),
            "evidence": list(self.evidence),
            "seconds_pending": _finite(self.seconds_pending),
            "seconds_running": _finite(self.seconds_running),
            "timeline": _latest([list(entry) for entry in self.timeline[-_MAX_TIMELINE:]]),
            "pods": _within([_pod(pod) for pod in self.pods[:_MAX_PODS]], _MAX_PODS_BYTES),
            "progress": _small(self.progress),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """
        Read the JSON form; keys of a newer release are ignored, what is missing or of an odd shape reads as absent.

        :raises ValueError: it is no mapping, or names no job.
        """
        if not isinstance(data, Mapping) or not text_of(data.get("job_id")):
            raise ValueError(f"not a job's outcome: expected a mapping with a job_id, got {shown(data)}")
        return cls(
            **{name: text_of(data.get(name)) for name in (*_NAMES, "reason_message")},
            verdict=_verdict(data.get("verdict")),
            cause=_cause(data.get("cause")),
            stop_reason=_stop_reason(data.get("stop_reason")),
            evidence=tuple(line for line in _items(data.get("evidence")) if isinstance(line, str)),
            seconds_pending=_seconds(data.get("seconds_pending")),
            seconds_running=_seconds(data.get("seconds_running")),
            restarts=integer_of(data.get("restarts")) or 0,
            exit_code=integer_of(data.get("exit_code")),
            timeline=tuple(_entry(entry) for entry in _items(data.get("timeline")) if _items(entry)),
            pods=tuple(_read_pod(pod) for pod in mappings_of(data.get("pods"))),
            progress=mapping_of(data["progress"]) if isinstance(data.get("progress"), Mapping) else None,
            reserving=data.get("reserving") is True,
            on_demand=data.get("on_demand") is True,
        )

    @property
    def ended_by_itself(self) -> bool:
        """Whether the job came to an end that no stop brings about, though one may have been under way."""
        return self.verdict in (Verdict.SUCCEEDED, Verdict.REVOKED, Verdict.FAILED)

    @property
    def had_machines(self) -> bool:
        """Whether it had won its machines when it was stopped, and waited for its image, its mounts or its checks."""
        before = [status for status, _, _ in self.timeline if status not in _STOP_STATUSES]
        return bool(before) and has_machines(before[-1])

    @property
    def has_run(self) -> bool:
        """Whether it ever reached Running, if for less than the second that DLC's times tell apart."""
        was_running = any(phase_of(status) is Phase.RUNNING for status, _, _ in self.timeline)
        return was_running or self.seconds_running > 0 or self.progress is not None

    def with_stop_reason(self, stop_reason: StopReason | None) -> Self:
        """Return the same outcome, known to have been brought about by us; a limit of ours is then its cause."""
        by_limit = stop_reason in _TIME_LIMITS and self.verdict in (Verdict.STOPPED, Verdict.UNKNOWN)
        return replace(self, stop_reason=stop_reason, cause=Cause.TIMED_OUT if by_limit else self.cause)

    def with_evidence(self, lines: tuple[str, ...]) -> Self:
        """Return the same outcome with more evidence, the new lines first."""
        return replace(self, evidence=(*lines, *self.evidence))

    def with_progress(self, progress: Mapping[str, Any] | None) -> Self:
        """Return the same outcome with the last progress line seen in the pods' logs."""
        return replace(self, progress=progress)


def _verdict(value: object) -> Verdict:
    try:
        return Verdict(str(value))
    except ValueError:
        return Verdict.UNKNOWN


def _cause(value: object) -> Cause | None:
    try:
        return Cause(str(value))
    except ValueError:
        return None  # of an older release, which knew none, or of a newer one: the verdict stands without it


def _stop_reason(value: object) -> StopReason | None:
    try:
        return StopReason(str(value))
    except ValueError:
        return None  # none, or one of a newer release: the verdict stands without it


def _items(value: object) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _entry(entry: Any) -> tuple[str, str, str]:
    status, start, end, *_ = [*map(text_of, _items(entry)), "", ""]
    return status, start, end


def _read_pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    read = {key: text_of(pod[key]) for key in _POD_KEYS if key in pod}
    return read | ({"exit_code": integer_of(pod["exit_code"])} if "exit_code" in pod else {})


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0.0
    try:
        return _finite(float(value))
    except OverflowError:
        return 0.0


def _pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _cut(pod[key], _MAX_NAME_BYTES) for key in _POD_KEYS if key in pod}


def _fit_to_show(lines: Iterable[str]) -> tuple[str, ...]:
    shown = (_shortened(" ".join(str(line).split()), _MAX_LINE, _MAX_LINE_BYTES) for line in lines)
    return tuple(_within(shown, _MAX_EVIDENCE_BYTES))


def _shortened(text: str, characters: int, limit: int) -> str:
    """Mask a text and shorten it until it and its JSON fit."""
    text = without_secrets(text, characters)
    while _size(text) > limit:
        text = without_secrets(text, max(1, len(text) * limit // _size(text) - 1))
    return text


def _cut(value: Any, limit: int) -> Any:
    """Shorten a text until its JSON fits."""
    if not isinstance(value, str):
        return value
    while _size(value) > limit:
        value = value[: min(len(value) - 1, len(value) * limit // _size(value))]
    return value


def _finite(seconds: float) -> float:
    return seconds if math.isfinite(seconds) else 0.0


def _latest(entries: list[Any]) -> list[Any]:
    return _within(reversed(entries), _MAX_TIMELINE_BYTES)[::-1]


def _small(progress: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if progress is None or _size(dict(progress)) > _MAX_PROGRESS_BYTES:
        return None
    return dict(progress)


def _within(items: Iterable[Any], limit: int) -> list[Any]:
    """Keep the first items whose JSON fits."""
    kept: list[Any] = []
    for item in items:
        limit -= _size(item) + 2
        if limit < 0:
            break
        kept.append(item)
    return kept


def _size(value: Any) -> int:
    return len(json.dumps(value))
