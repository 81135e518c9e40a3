"""The ReasonCode and ReasonMessage that go with each status. Sources and switches: `behaviours`."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_pai_spot.emulator.behaviours import Behaviours
from airflow_provider_pai_spot.emulator.lifecycle import Status
from airflow_provider_pai_spot.emulator.record import Job, Pod

Reason = tuple[str, str]

_PASSING: Mapping[str, Reason] = {
    # JobEnqueued was observed; the others are the names of Alibaba's open-source job controller.
    Status.CREATING: ("JobCreated", "{job_type} {job_id} is created."),
    Status.QUEUING: ("JobEnqueued", "{job_type} {job_id} is enqueued."),
    Status.BIDDING: ("JobEnqueued", "{job_type} {job_id} is bidding for spot capacity."),
    Status.ENV_PREPARING: ("JobDequeued", "{job_type} {job_id} is dequeued."),
    Status.RUNNING: ("JobRunning", "{job_type} {job_id} is running."),
    Status.RESTARTING: ("JobRestarting", "{job_type} {job_id} is restarting."),
    Status.STOPPED: ("JobStoppedByUser", "Job is stopped by user."),
    Status.SUCCEEDED: ("JobSucceeded", "{job_type} {job_id} is successfully completed."),
    Status.SUCCEEDED_RESERVING: ("JobSucceeded", "{job_type} {job_id} is successfully completed."),
}


def passing(job: Job, status: str) -> Reason:
    """Return the reason of a status that needs no cause."""
    code, text = _PASSING.get(status, ("", ""))
    return code, text.format(job_type=job.job_type, job_id=job.job_id)


def failed(job: Job, pods: list[Pod], behaviours: Behaviours) -> Reason:
    """Return the reason of a job whose command failed in `pods`."""
    roles = _role(pods)
    text = f"{job.job_type} {job.job_id} is failed because {len(pods)} {roles} replica(s) failed."
    return behaviours["failure_reason_code"], text


def revoked(job: Job, pods: list[Pod], behaviours: Behaviours) -> Reason:
    """Return the reason of a job that lost `pods` to the market."""
    text = str(behaviours["reclaim_reason_message"]).format(
        job_type=job.job_type, job_id=job.job_id, count=len(pods), role=_role(pods)
    )
    if job.max_restarts:
        text += f" AIMaster restarted it {len(job.restarts)} time(s), {job.max_restarts} are allowed."
    return behaviours["reclaim_reason_code"], text


def timed_out(job: Job, behaviours: Behaviours) -> Reason:
    """Return the reason of a job that ran longer than JobMaxRunningTimeMinutes."""
    minutes = job.body.get("JobMaxRunningTimeMinutes")
    text = f"{job.job_type} {job.job_id} exceeded its maximum running time of {minutes} minutes."
    return behaviours["timeout_reason_code"], text


def _role(pods: list[Pod]) -> str:
    return pods[0].role.capitalize() if pods else "Worker"
