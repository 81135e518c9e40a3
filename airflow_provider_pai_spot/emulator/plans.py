"""What a job will do: scripted before it is created, taken up when it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

_LINES = ("logs", "aimaster_logs")
_MAY_BE_LATE = {"CreateJob", "GetJob"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan:
    """
    What a job does when its command is not really executed. Times are emulated seconds.

    :param run_seconds: how long it runs, in each incarnation; None: until it is stopped or revoked.
    :param exit_code: of every pod at the end; anything but 0 fails the job.
    :param logs: lines written while it runs, spread evenly over `run_seconds`.
    :param aimaster_logs: lines of AIMaster's own pod, spread in the same way.
    :param pending_seconds: how long it queues or bids at least; None: as the emulator's phases say.
    :param revoke_after: seconds in Running after which its capacity is taken back; None: never.
    :param revoke_times: how many incarnations `revoke_after` hits (jobs with AIMaster start again).
    :param revoke_pods: how many pods that takes; None: all.
    :param never_starts: the image cannot be pulled: stays in EnvPreparing with `ErrImagePull` events.
    :param evicted: whether pods end with SubStatus Evicted; None: only if they were revoked.
    :param status: another final status than the exit code's, e.g. `FailedReserving`.
    :param reason_code: another final ReasonCode; '' for an empty one.
    :param reason_message: another final ReasonMessage.
    :param late_answers: `CreateJob` or `GetJob` -> real seconds that its first answer about this job is on the way.
    """

    run_seconds: float | None = 1.0
    exit_code: int = 0
    logs: tuple[str, ...] = ()
    aimaster_logs: tuple[str, ...] = ()
    pending_seconds: float | None = None
    revoke_after: float | None = None
    revoke_times: int = 1
    revoke_pods: int | None = None
    never_starts: bool = False
    evicted: bool | None = None
    status: str | None = None
    reason_code: str | None = None
    reason_message: str | None = None
    late_answers: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        lines = {name: list(getattr(self, name)) for name in _LINES}
        return {**asdict(self), **lines, "late_answers": dict(self.late_answers)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the JSON form. Raises ValueError for a field that does not exist."""
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(data) - known):
            raise ValueError(f"A JobPlan has no {', '.join(unknown)}; it has {', '.join(sorted(known))}.")
        values = dict(data)
        values |= {name: tuple(values.get(name) or ()) for name in _LINES}
        return cls(**values)

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.late_answers) - _MAY_BE_LATE):
            raise ValueError(
                f"late_answers has {', '.join(unknown)}; only {', '.join(sorted(_MAY_BE_LATE))} can be late."
            )


@dataclass(slots=True)
class _Standing:
    plan: JobPlan
    match: Mapping[str, Any]
    left: int | None


class PlanBook:
    """
    Plans waiting for jobs to be created, in the order they were made.

    :param default: what a job does that no plan matches.
    """

    def __init__(self, default: JobPlan) -> None:
        self.default = default
        self._standing: list[_Standing] = []

    def add(self, plan: JobPlan, match: Mapping[str, Any] | None, times: int | None) -> None:
        """Let the next `times` jobs (None: all) that match follow `plan`."""
        self._standing.append(_Standing(plan, dict(match or {}), times))

    def clear(self) -> None:
        """Forget every plan but the default."""
        self._standing.clear()

    def take(self, display_name: str, tags: Mapping[str, str]) -> JobPlan:
        """Return the plan for a job that is being created, and use it up."""
        for standing in self._standing:
            if standing.left == 0 or not matches(standing.match, display_name, tags):
                continue
            if standing.left is not None:
                standing.left -= 1
            return standing.plan
        return self.default


def matches(match: Mapping[str, Any], display_name: str, tags: Mapping[str, str]) -> bool:
    """Whether a job fits `{"display_name": substring, "tags": {key: value}}`; a missing key fits all."""
    if str(match.get("display_name", "")).lower() not in display_name.lower():
        return False
    wanted: Mapping[str, str] = match.get("tags") or {}
    return all(tags.get(key) == value for key, value in wanted.items())
