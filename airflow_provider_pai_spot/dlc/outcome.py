"""
How a job ended, as one small versioned value.

It travels from the trigger to the operator as the trigger's event, into exceptions and into XCom, so it is
plain JSON, below 10 kB (the triggerer's loop blocks on large events), and free of Envs and request bodies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from typing import Any, Self

OUTCOME_VERSION = 1
_MAX_TEXT = 500
_MAX_EVIDENCE_BYTES = 2_000
_MAX_TIMELINE = 30
_MAX_PODS = 20


class Verdict(StrEnum):
    """The five ends of a job. `UNKNOWN` is an honest answer, never a success."""

    SUCCEEDED = "succeeded"
    REVOKED = "revoked"
    FAILED = "failed"
    STOPPED = "stopped"
    UNKNOWN = "unknown"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """
    How one DLC job ended.

    :param job_id: DLC's id of the job.
    :param verdict: one of the five ends.
    :param status: the job's status as DLC spelled it when the verdict was made.
    :param reason_code: DLC's `ReasonCode`, may be empty.
    :param reason_message: DLC's `ReasonMessage`, cut to 500 characters.
    :param rule: name of the classifier's row that decided.
    :param confidence: how sure that row is: `documented`, `observed` or `assumed`.
    :param evidence: what the verdict rests on, a line each, 2 kB at most together.
    :param seconds_pending: seconds before (and between) running, from the job's own timestamps.
    :param seconds_running: seconds in Running, from the job's own timestamps.
    :param restarts: restarts DLC itself made (AIMaster).
    :param timeline: `[status, start, end]` entries, ISO 8601 UTC, end may be empty.
    :param pods: `{pod_id, type, status, sub_status, exit_code}` of each pod, failing ones first.
    :param progress: the last `PAI_SPOT_PROGRESS` object the command printed, if any.
    :param stop_reason: why we stopped the job ourselves, if we did.
    :param reserving: whether nodes are still held (`*Reserving`), and perhaps billed.
    """

    job_id: str
    verdict: Verdict
    status: str
    reason_code: str = ""
    reason_message: str = ""
    rule: str = ""
    confidence: str = ""
    evidence: tuple[str, ...] = ()
    seconds_pending: float = 0.0
    seconds_running: float = 0.0
    restarts: int = 0
    timeline: tuple[tuple[str, str, str], ...] = ()
    pods: tuple[Mapping[str, Any], ...] = ()
    progress: Mapping[str, Any] | None = None
    stop_reason: StopReason | None = None
    reserving: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the versioned JSON form, cut to its size limits."""
        return {
            "version": OUTCOME_VERSION,
            **asdict(self),
            "verdict": self.verdict.value,
            "stop_reason": self.stop_reason.value if self.stop_reason else None,
            "reason_message": self.reason_message[:_MAX_TEXT],
            "evidence": _within(self.evidence, _MAX_EVIDENCE_BYTES),
            "timeline": [list(entry) for entry in self.timeline[-_MAX_TIMELINE:]],
            "pods": [dict(pod) for pod in self.pods[:_MAX_PODS]],
            "progress": dict(self.progress) if self.progress is not None else None,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the JSON form; keys of a newer release are ignored, values it lacks take their defaults."""
        known = {field.name for field in fields(cls)}
        values = {key: value for key, value in data.items() if key in known}
        values["verdict"] = _verdict(values.get("verdict"))
        values["stop_reason"] = StopReason(values["stop_reason"]) if values.get("stop_reason") else None
        values["evidence"] = tuple(values.get("evidence") or ())
        values["timeline"] = tuple(tuple(entry) for entry in values.get("timeline") or ())
        values["pods"] = tuple(values.get("pods") or ())
        return cls(**values)

    def with_stop_reason(self, stop_reason: StopReason | None) -> Self:
        """Return the same outcome, known to have been brought about by us."""
        return replace(self, stop_reason=stop_reason)

    def with_progress(self, progress: Mapping[str, Any] | None) -> Self:
        """Return the same outcome with the last progress line seen in the pods' logs."""
        return replace(self, progress=progress)


def _verdict(value: object) -> Verdict:
    try:
        return Verdict(str(value))
    except ValueError:
        return Verdict.UNKNOWN


def _within(lines: tuple[str, ...], limit: int) -> list[str]:
    kept: list[str] = []
    for line in lines:
        limit -= len(line.encode()) + 1
        if limit < 0:
            break
        kept.append(line)
    return kept
