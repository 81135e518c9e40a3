"""From an operator's rendered arguments to what its task asks for."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow_provider_pai_spot import settings as provider_settings
from airflow_provider_pai_spot.attempts.identity import Owner, TaskIdentity
from airflow_provider_pai_spot.attempts.limits import WaitLimits
from airflow_provider_pai_spot.attempts.moment import TryMoment
from airflow_provider_pai_spot.attempts.session import after, earliest
from airflow_provider_pai_spot.attempts.task_jobs import Wanted
from airflow_provider_pai_spot.dlc.job_request import (
    InvalidJobRequest,
    JobRequest,
    build_job_request,
    default_display_name,
)
from airflow_provider_pai_spot.exceptions import SpotSubmissionRefused
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.recovery.checks import check_against

if TYPE_CHECKING:
    from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator


def wanted_by(operator: SubmitSpotJobOperator, identity: TaskIdentity, hook: PaiDlcHook, moment: TryMoment) -> Wanted:
    """
    Return what the task asks for; arguments that cannot work are a `refusal`, raised once a job is to be submitted.

    A template may render to something else in each session: that must not end a job under way, nor lose its success.
    """
    refusal = None
    try:
        request = request_of(operator, identity, hook)
    except SpotSubmissionRefused as error:
        request, refusal = _unusable_request(operator.workspace_id or hook.workspace_id), error
    for warning in request.warnings:
        operator.log.warning("%s", warning)
    return Wanted(
        request=request,
        refusal=refusal,
        recovery=operator.recovery,
        owner=Owner.TASK if operator.wait_for_completion else Owner.RUN,
        reattach=operator.reattach,
        total_deadline=earliest(*deadlines_of(operator, moment)),
        limits=limits_of(operator, moment),
        log_tail_lines=provider_settings.log_tail_lines(),
        verify_spot_terms=provider_settings.verify_spot_terms(),
        checkpoint_storage=provider_settings.checkpoint_storage(),
    )


def request_of(operator: SubmitSpotJobOperator, identity: TaskIdentity, hook: PaiDlcHook) -> JobRequest:
    """
    Return the checked request, with the defaults that the connection and the task's own name supply.

    :raises SpotSubmissionRefused: the rendered arguments cannot work.
    """
    grid = provider_settings.bid_grid()
    arguments = operator.job_arguments()
    arguments["workspace_id"] = operator.workspace_id or hook.workspace_id or None
    arguments["display_name"] = operator.display_name or default_display_name(
        identity.dag_id, identity.task_id, identity.key[:8]
    )
    arguments["job_max_running_time_minutes"] = max_running_minutes(operator)
    try:
        request = build_job_request(arguments, bid_grid=grid)
        of_recovery = check_against(operator.recovery, request, grid)
    except InvalidJobRequest as error:
        raise SpotSubmissionRefused(f"{operator.task_id}: {error}") from None
    return replace(request, warnings=(*request.warnings, *of_recovery))


def _unusable_request(workspace_id: str | int | None) -> JobRequest:
    """Return what equals no job's request, and names where the task's jobs are looked for."""
    return JobRequest(body={"WorkspaceId": workspace_id, "JobSpecs": []}, resource_type="ECS", bids_by_role={})


def deadlines_of(operator: SubmitSpotJobOperator, moment: TryMoment) -> tuple[datetime | None, datetime | None]:
    """Return when `total_timeout` and `execution_timeout` are used up, counted from the start of the try."""
    return after(moment.started_at, operator.total_timeout), after(moment.started_at, operator.execution_timeout)


def limits_of(operator: SubmitSpotJobOperator, moment: TryMoment) -> WaitLimits:
    """Return the limits of a job of this try."""
    total, execution = deadlines_of(operator, moment)
    return WaitLimits(
        pending_timeout=_seconds(operator.pending_timeout),
        run_timeout=_seconds(operator.run_timeout),
        total_deadline=total,
        execution_deadline=execution,
        poll_error_tolerance=provider_settings.poll_error_tolerance(),
    )


def max_running_minutes(operator: SubmitSpotJobOperator) -> int | None:
    """
    Return DLC's own guard in whole minutes, should nobody be left to stop the job; None for no limit.

    The `execution_timeout` of a task that does not wait bounds a submission of seconds, not the training.
    """
    limit = operator.run_timeout or (operator.execution_timeout if operator.wait_for_completion else None)
    return None if limit is None else max(1, math.ceil(limit.total_seconds() / 60))


def _seconds(limit: timedelta | None) -> float | None:
    return None if limit is None else limit.total_seconds()
