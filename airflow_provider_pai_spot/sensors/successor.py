"""Submit the successor of a lost job, under the identity of the task that submitted it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from airflow.sdk.execution_time.xcom import XCom

from airflow_provider_pai_spot.attempts.identity import TAG_ATTEMPT, TaskIdentity, tag_number
from airflow_provider_pai_spot.attempts.ledger import Attempt
from airflow_provider_pai_spot.attempts.moment import TryMoment
from airflow_provider_pai_spot.attempts.report import XCOM_JOB_ID, Report
from airflow_provider_pai_spot.attempts.task_jobs import TaskJobs, Wanted
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import Verdict
from airflow_provider_pai_spot.exceptions import SpotSubmissionRefused
from airflow_provider_pai_spot.recovery import bid_after

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

_RETURN_VALUE = "return_value"


class SubmitTask(Protocol):
    """What the sensor needs of the submit task: how it builds its request."""

    def wanted(self, identity: TaskIdentity, hook: PaiDlcHook, moment: TryMoment) -> Wanted:
        """Return what the task asks for."""
        ...


def rendered_submit_task(context: Context, task_id: str) -> SubmitTask:
    """
    Return the submit task's own copy, rendered as it would be for its own run (its `task_id`, its `map_index`).

    :raises SpotSubmissionRefused: there is no such task in the DAG, or it submits no spot jobs.
    """
    sensor_ti: Any = context["ti"]
    dag = sensor_ti.task.dag
    if task_id not in dag.task_dict:
        raise SpotSubmissionRefused(f"submitted_by is {task_id!r}: the DAG {dag.dag_id!r} has no such task.")
    task = dag.get_task(task_id).prepare_for_execution()
    ti = sensor_ti.model_copy(update={"task_id": task_id, "task": task})
    ti._cached_template_context = None  # noqa: SLF001 - the copy must build the submit task's context, not ours
    own_context = ti.get_template_context()
    task.render_template_fields(own_context)
    rendered: Any = own_context["task"]  # of a mapped task: the one of this map index
    if not hasattr(rendered, "wanted"):
        raise SpotSubmissionRefused(
            f"submitted_by is {task_id!r}, a {type(rendered).__name__}: expected a SubmitSpotJobOperator."
        )
    submit_task: SubmitTask = rendered
    return submit_task


def submit_successor(jobs: TaskJobs, lost_job_id: str, losses: int) -> str:
    """
    Submit attempt + 1 of the lost job's work and return its id; a successor of an interrupted try is found again.

    :param losses: how many jobs of this work were lost, for the bid.
    """
    lost = Job(jobs.hook.get_job(lost_job_id))
    number = tag_number(lost.tags, TAG_ATTEMPT, 0)
    if not any(one.number == number for one in jobs.ledger.attempts):
        jobs.ledger.put(_as_attempt(jobs, lost, number))
    found = jobs.finder.find()
    if found is not None and found[0].number > number:
        jobs.report.job(found[1].job_id)
        return found[1].job_id
    bid = bid_after(jobs.wanted.recovery, losses=losses, own_bid=jobs.wanted.request.bid)
    return jobs.submit(bid=bid).job_id


def overwrite_job_id(context: Context, task_id: str, job_id: str, report: Report) -> None:
    """Make everything downstream of the submit task, and its own link, see the new job."""
    ti: Any = context["ti"]
    values = {_RETURN_VALUE: job_id, XCOM_JOB_ID: job_id, report.console_key: report.console_url(job_id)}
    for key, value in values.items():
        XCom.set(
            key=key,
            value=value,
            dag_id=ti.dag_id,
            task_id=task_id,
            run_id=ti.run_id,
            map_index=-1 if ti.map_index is None else ti.map_index,
        )


def _as_attempt(jobs: TaskJobs, lost: Job, number: int) -> Attempt:
    return Attempt(
        number=number,
        generation=jobs.moment.generation,
        request_hash=jobs.wanted.request.request_hash,
        job_id=lost.job_id,
        consumed=True,
        verdict=Verdict.REVOKED.value,
        namespace=jobs.identity.namespace,
    )
