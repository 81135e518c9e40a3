"""What a task asks of its jobs, as the operator's rendered arguments say it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self

from airflow_provider_pai_spot.attempts.checkpoints import OFF
from airflow_provider_pai_spot.attempts.identity import Owner
from airflow_provider_pai_spot.attempts.limits import WaitLimits
from airflow_provider_pai_spot.dlc.job_request import JobRequest
from airflow_provider_pai_spot.exceptions import SpotSubmissionRefused
from airflow_provider_pai_spot.recovery import SpotRecovery


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """
    What the task asks for.

    :param refusal: why no job can be submitted, as its arguments are now; `request` is then of no use.
    :param reattach: whether a live job of an earlier try is taken over; otherwise it is stopped first.
    :param total_deadline: no job is submitted after it.
    :param limits: those of a job, to tell a stop of ours that nobody recorded from a person's.
    :param log_tail_lines: how many lines of each failing pod go into the task log.
    :param checkpoint_storage: how a worker reaches the checkpoints; `off` for not at all.
    """

    request: JobRequest
    recovery: SpotRecovery
    refusal: SpotSubmissionRefused | None = None
    owner: Owner = Owner.TASK
    reattach: bool = True
    total_deadline: datetime | None = None
    limits: WaitLimits = field(default_factory=WaitLimits)
    log_tail_lines: int = 50
    verify_spot_terms: str = "stop"
    checkpoint_storage: str = OFF

    def owned_by(self, owner: Owner) -> Self:
        """Return the same wish, with jobs that end with another owner."""
        return replace(self, owner=owner)
