"""
The 13 job statuses that the DLC API reference lists, and what each means to somebody who waits.

A status that is not in the list is a value like any other: never a crash, never a success, never an end.
"""

from __future__ import annotations

from enum import StrEnum


class JobStatus(StrEnum):
    """`Status` of GetJob and ListJobs, as DLC spells it (GetJob reference, all 13 values)."""

    CREATING = "Creating"
    QUEUING = "Queuing"
    BIDDING = "Bidding"
    ENV_PREPARING = "EnvPreparing"
    SANITY_CHECKING = "SanityChecking"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    STOPPING = "Stopping"
    SUCCEEDED_RESERVING = "SucceededReserving"
    FAILED_RESERVING = "FailedReserving"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    STOPPED = "Stopped"


class Phase(StrEnum):
    """What a status means for the limits and for re-attaching."""

    PENDING = "pending"
    """No training runs yet, or not again yet: `pending_timeout` counts."""
    RUNNING = "running"
    """Training runs: `run_timeout` counts."""
    STOPPING = "stopping"
    """A stop was accepted and is not through yet."""
    DECIDED = "decided"
    """The outcome is known while nodes are still held (`*Reserving`), and perhaps billed."""
    TERMINAL = "terminal"
    """Nothing will change any more."""
    UNKNOWN = "unknown"
    """A status this release has not heard of: keep waiting, say so once."""


_PHASES: dict[JobStatus, Phase] = {
    JobStatus.CREATING: Phase.PENDING,
    JobStatus.QUEUING: Phase.PENDING,
    JobStatus.BIDDING: Phase.PENDING,
    JobStatus.ENV_PREPARING: Phase.PENDING,
    JobStatus.SANITY_CHECKING: Phase.PENDING,
    JobStatus.RUNNING: Phase.RUNNING,
    JobStatus.RESTARTING: Phase.PENDING,
    JobStatus.STOPPING: Phase.STOPPING,
    JobStatus.SUCCEEDED_RESERVING: Phase.DECIDED,
    JobStatus.FAILED_RESERVING: Phase.DECIDED,
    JobStatus.SUCCEEDED: Phase.TERMINAL,
    JobStatus.FAILED: Phase.TERMINAL,
    JobStatus.STOPPED: Phase.TERMINAL,
}


def phase_of(status: str) -> Phase:
    """Return the phase of a status as DLC spells it; `Phase.UNKNOWN` for one not in the reference."""
    try:
        return _PHASES[JobStatus(status)]
    except ValueError:
        return Phase.UNKNOWN


def is_terminal(status: str) -> bool:
    """Whether the job is over: Succeeded, Failed or Stopped."""
    return phase_of(status) is Phase.TERMINAL


def is_decided(status: str) -> bool:
    """Whether the outcome is known: terminal, or `*Reserving` (finished, nodes still held)."""
    return phase_of(status) in (Phase.TERMINAL, Phase.DECIDED)


def has_machines(status: str) -> bool:
    """Whether a job that waits has won its machines and only prepares them: then no bid and no type explains it."""
    return status in (JobStatus.ENV_PREPARING, JobStatus.SANITY_CHECKING)
