"""What a job's request and record say about its next status. Pure."""

from __future__ import annotations

from airflow_provider_pai_spot.emulator.behaviours import Behaviours
from airflow_provider_pai_spot.emulator.lifecycle import (
    KNOWN,
    WAITING,
    Signal,
    Status,
    Traits,
    means_something,
)
from airflow_provider_pai_spot.emulator.record import Job

_COMING_BACK = WAITING | {Status.RESTARTING, Status.ENV_PREPARING}


def traits_of(job: Job, behaviours: Behaviours) -> Traits:
    """Return what about a job decides between two next statuses."""
    settings = job.settings
    policy = settings.get("JobReservedPolicy")
    reserves = bool(settings.get("JobReservedMinutes"))
    return Traits(
        bids=bool(job.spot_roles) and (job.lingjun or bool(behaviours["general_spot_bidding"])),
        checks_sanity=settings.get("EnableSanityCheck") is True,
        restarts_left=len(job.restarts) < job.max_restarts,
        reserves_success=reserves and policy in ("Always", "OnSucceed"),
        reserves_failure=reserves and policy in ("Always", "OnFailure"),
    )


def sub_status(job: Job) -> str:
    """Return `Restarting` from a loss until the job runs again: the only value with an example."""
    coming_back = bool(job.restarts) and job.restarts[-1].ended_at is None
    return "Restarting" if coming_back and job.status in _COMING_BACK else ""


def stoppable(job: Job) -> bool:
    """Whether StopJob may stop it now; a status that is not DLC's counts as active."""
    return job.status not in KNOWN or means_something(Status(job.status), Signal.STOP_REQUESTED)
