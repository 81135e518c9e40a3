"""What keeps each cell of the table in its phase, and how the phase is recognised."""

from __future__ import annotations

from dataclasses import dataclass

from kill_cells import Phase

from airflow_provider_pai_spot.emulator import JobPlan

LATE = 7200.0
"""Seconds an answer of DLC is on the way, and the read timeout: longer than anything here takes."""

FOREVER = JobPlan(run_seconds=None)
_LATE_GET = JobPlan(run_seconds=None, late_answers={"GetJob": LATE})
_PENDING = JobPlan(pending_seconds=3600)


@dataclass(frozen=True, slots=True)
class Hold:
    """
    What keeps a cell in its phase.

    :param plans: what its first job does, and its second.
    :param statuses: the jobs' statuses that show the phase.
    :param task: the task's state that shows the phase.
    :param said: what follows the newest job's id in the log once somebody watches it (the default is a trigger's
        first look); None if nobody knows the id.
    :param before: the task's state right before it is in its phase.
    """

    plans: tuple[JobPlan, ...]
    statuses: tuple[str, ...]
    task: str = "deferred"
    said: str | None = ": "
    before: str = ""


HOLDS: dict[Phase, Hold] = {
    Phase.CREATED: Hold((_LATE_GET,), ("Running",), "running", " attempt 0"),
    Phase.QUEUEING: Hold((_PENDING,), ("Queuing",)),
    Phase.BIDDING: Hold((_PENDING,), ("Bidding",)),
    Phase.PREPARING: Hold((JobPlan(never_starts=True),), ("EnvPreparing",)),
    Phase.RUNNING: Hold((FOREVER,), ("Running",)),
    Phase.RESTARTING: Hold((JobPlan(run_seconds=None, revoke_after=0.5),), ("Restarting",)),
    Phase.BETWEEN_ATTEMPTS: Hold(
        (
            # Lost before the task could defer: the second is submitted by the same worker.
            JobPlan(run_seconds=None, revoke_after=0.1, late_answers={"GetJob": 3.0}),
            JobPlan(run_seconds=None, late_answers={"CreateJob": LATE}),
        ),
        ("Failed", "Running"),
        "running",
        None,
    ),
    Phase.QUEUED_FOR_RESUME: Hold((FOREVER,), ("Running",), "scheduled", before="deferred"),
    Phase.UP_FOR_RETRY: Hold((_LATE_GET,), ("Running",), "up_for_retry", " attempt 0", before="running"),
    Phase.IN_WORKER: Hold((FOREVER,), ("Running",), "running"),
    Phase.LAST_TRY: Hold((_LATE_GET,), ("Running",), "running", " attempt 0"),
    Phase.LEFT_ALONE: Hold((FOREVER,), ("Running",)),
    Phase.BETWEEN_TASKS: Hold((FOREVER,), ("Running",), "success", " attempt 0"),
    Phase.SENSOR: Hold((FOREVER,), ("Running",)),
    Phase.SENSOR_CANCELS: Hold((FOREVER,), ("Running",)),
}
