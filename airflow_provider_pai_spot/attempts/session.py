"""Put a task's pieces together: from Airflow's context to `TaskJobs`. Shared by operator and sensor."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.sdk.configuration import conf

from airflow_provider_pai_spot import settings
from airflow_provider_pai_spot.attempts.identity import TaskIdentity, resolve_namespace
from airflow_provider_pai_spot.attempts.kill import KillSwitch
from airflow_provider_pai_spot.attempts.ledger import AttemptLedger, MemoryStore
from airflow_provider_pai_spot.attempts.moment import TryMoment
from airflow_provider_pai_spot.attempts.places import CallsByPlace, Place
from airflow_provider_pai_spot.attempts.report import Report
from airflow_provider_pai_spot.attempts.submission import Submitter
from airflow_provider_pai_spot.attempts.submission_pace import SubmissionPace
from airflow_provider_pai_spot.attempts.task_jobs import TaskJobs, Wanted
from airflow_provider_pai_spot.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

ConsoleUrl = Callable[[str, str, str, str], str]


def identity_from(context: Context, hook: PaiDlcHook, *, task_id: str | None = None) -> TaskIdentity:
    """
    Return who the running task instance is.

    :param task_id: another task of the same run and map index, whose jobs are dealt with.
    """
    ti = context["ti"]
    return TaskIdentity(
        namespace=resolve_namespace(settings.namespace(), hook.namespace, conf.get("api", "base_url", fallback="")),
        dag_id=ti.dag_id,
        run_id=ti.run_id,
        task_id=task_id or ti.task_id,
        map_index=-1 if ti.map_index is None else ti.map_index,
    )


def moment_from(context: Context, clock: Clock = SYSTEM_CLOCK) -> TryMoment:
    """Return where Airflow stands."""
    ti: Any = context["ti"]
    run: Any = context["dag_run"]
    return TryMoment(
        try_number=ti.try_number,
        max_tries=ti.max_tries,
        started_at=ti.start_date or clock.now(),
        run_started_at=run.start_date or clock.now(),
    )


def earliest(*deadlines: datetime | None) -> datetime | None:
    """Return the deadline that passes first."""
    return min((one for one in deadlines if one is not None), default=None)


def after(start: datetime, limit: timedelta | None) -> datetime | None:
    """Return the moment at which a limit counted from `start` is used up."""
    return start + limit if limit is not None else None


def report_for(context: Context, *, hook: PaiDlcHook, console_url: ConsoleUrl, console_key: str, log: Any) -> Report:
    """Return what tells people about the jobs of the running task instance."""
    return Report(
        push=partial(_push, context["ti"]),
        log=log,
        console_url=partial(console_url, hook.console_base_url, hook.region_id, hook.workspace_id),
        console_key=console_key,
    )


def calls_of(context: Context, hook: PaiDlcHook) -> CallsByPlace:
    """Return the calls of this session, each about one job sent to where the running task instance's ledger has it."""
    return CallsByPlace(hook, AttemptLedger(context.get("task_state_store") or MemoryStore()))


def open_jobs(
    context: Context,
    *,
    hook: PaiDlcHook,
    identity: TaskIdentity,
    wanted: Wanted,
    kill: KillSwitch,
    console_url: ConsoleUrl,
    console_key: str,
    log: Any,
    clock: Clock = SYSTEM_CLOCK,
    calls: CallsByPlace | None = None,
) -> TaskJobs:
    """
    Return the dealings of this try with the jobs of `identity`.

    :param calls: those of this session, where somebody else has them already.
    """
    moment = moment_from(context, clock)
    calls = calls or calls_of(context, hook)
    ledger = calls.ledger
    submitter = Submitter(
        hook=calls,
        identity=identity,
        ledger=ledger,
        since=moment.run_started_at,
        patience=settings.submit_lookup_patience(),
        clock=clock,
        log=log,
        adopts=moment.try_number > 1,
        workspace_id=wanted.request.workspace_id,
        before_create=kill.before_create,
        pace=SubmissionPace(
            hook.settings.endpoint or hook.region_id,
            per_second=settings.submissions_per_second(),
            clock=clock,
            log=log,
        ),
        place=Place.of(hook, wanted.request.workspace_id),
        hook_at=calls.at,
    )
    return TaskJobs(
        hook=calls,
        submitter=submitter,
        ledger=ledger,
        wanted=wanted,
        moment=moment,
        report=report_for(context, hook=hook, console_url=console_url, console_key=console_key, log=log),
        clock=clock,
        log=log,
        after_create=kill.check,
    )


def _push(ti: Any, key: str, value: Any) -> None:
    ti.xcom_push(key=key, value=value)
