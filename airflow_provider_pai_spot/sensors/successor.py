"""Submit the successor of a lost job, under the identity of the task that submitted it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from airflow.sdk.execution_time.xcom import XCom

from airflow_provider_pai_spot.attempts.answers import answered
from airflow_provider_pai_spot.attempts.identity import (
    TAG_ATTEMPT,
    TAG_LEDGER,
    TAG_TASK_INSTANCE,
    TaskIdentity,
    tag_number,
)
from airflow_provider_pai_spot.attempts.moment import TryMoment
from airflow_provider_pai_spot.attempts.report import XCOM_JOB_ID, Report
from airflow_provider_pai_spot.attempts.task_jobs import TaskJobs, Wanted
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import Verdict
from airflow_provider_pai_spot.exceptions import SpotSubmissionRefused

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

_RETURN_VALUE = "return_value"

Answer = TypeVar("Answer")


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
    Submit attempt + 1 of the lost job's work and return its id, unless there is a successor already.

    Another sensor on the same submit task may have submitted it, or an earlier try that was interrupted.

    :param losses: how many jobs of this work were lost: the submit task's `recovery` says what follows so many.
    :raises SpotSubmissionRefused: the lost job is not one of the submit task's.
    """
    lost = Job(_answered(jobs, lambda: jobs.hook.get_job(lost_job_id)))
    _check_is_of_submit_task(jobs, lost)
    number = _number(lost)
    jobs.ledger.adopt(lost.tags.get(TAG_LEDGER, ""))  # what we submit is the submit task's, and found as such
    if not any(one.number == number for one in jobs.ledger.attempts):
        jobs.ledger.put(replace(jobs.finder.attempt_of(lost), consumed=True, verdict=Verdict.REVOKED.value))
    known = _known_successor(jobs, number)
    if known is not None:
        jobs.log.info("%s has its successor already: %s", lost_job_id, known.job_id)
        jobs.report.job(known.job_id)
        return known.job_id
    terms, changes = jobs.recoverer.terms_after(jobs.ledger.get(number), losses)
    reason = f"loss {losses}: {changes}" if changes else f"loss {losses}"
    jobs.log.info("resubmitting after %s", reason)
    return _only_one(jobs, jobs.submit(terms=terms, reason=reason).job_id)


def overwrite_job_id(context: Context, task_id: str, job_id: str, report: Report) -> None:
    """
    Make everything downstream of the submit task, and its own link, see the new job.

    What `job_id=submit.output` renders to comes last: while that is the old one, the sensor's next try does it again.
    """
    ti: Any = context["ti"]
    values = {XCOM_JOB_ID: job_id, report.console_key: report.console_url(job_id), _RETURN_VALUE: job_id}
    for key, value in values.items():
        XCom.set(
            key=key,
            value=value,
            dag_id=ti.dag_id,
            task_id=task_id,
            run_id=ti.run_id,
            map_index=-1 if ti.map_index is None else ti.map_index,
        )


def _check_is_of_submit_task(jobs: TaskJobs, lost: Job) -> None:
    """A job made elsewhere has no request that could be repeated: the submit task's is another one."""
    key = lost.tags.get(TAG_TASK_INSTANCE)
    if key != jobs.identity.key:
        identity = jobs.identity
        raise SpotSubmissionRefused(
            f"{lost.job_id} lost its capacity, and no successor is submitted: its tag {TAG_TASK_INSTANCE} is {key!r}, "
            f"but the jobs of {identity.task_id!r} (run {identity.run_id!r}, map index {identity.map_index}, namespace "
            f"{identity.namespace!r}) have {identity.key!r}. Point job_id at the output of the task that submitted_by "
            "names; for a job made elsewhere use on_revoked='fail'."
        )


def _known_successor(jobs: TaskJobs, lost: int) -> Job | None:
    """Return the newest job after the lost attempt: by our own notes, otherwise by DLC's tags."""
    newest = jobs.ledger.newest
    if newest is not None and newest.number > lost:
        found = jobs.finder.find()  # of a submission that was interrupted, after a patient look
        if found is not None and found[0].number > lost:
            return found[1]
    later = [job for job in _answered(jobs, jobs.submitter.find).of_this_run if _number(job) > lost]
    if not later:
        return None
    number = _number(later[-1])
    job = _answered(jobs, lambda: jobs.submitter.find_attempt(number, patiently=False)) or later[-1]
    jobs.ledger.put(jobs.finder.attempt_of(job))
    return job


def _only_one(jobs: TaskJobs, job_id: str) -> str:
    """Two sensors that look at the same moment both submit; they then agree on one job, and the other is stopped."""
    own = jobs.ledger.find(job_id)
    if own is None:
        return job_id
    kept = jobs.submitter.only_one(job_id, own.number)
    if kept != job_id:
        jobs.ledger.change(own.number, job_id=kept)
        jobs.report.job(kept)
    return kept


def _number(job: Job) -> int:
    return tag_number(job.tags, TAG_ATTEMPT, 0)


def _answered(jobs: TaskJobs, call: Callable[[], Answer]) -> Answer:
    return answered(call, clock=jobs.clock, log=jobs.log)
