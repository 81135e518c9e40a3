"""What SpotJobTrigger does in the triggerer: follow its job, and stop one that nobody wants."""

from __future__ import annotations

import asyncio
import itertools
import random
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Protocol

from airflow_provider_pai_spot import settings
from airflow_provider_pai_spot.attempts.airflow_state import task_is_over
from airflow_provider_pai_spot.attempts.commands import Look, Stop
from airflow_provider_pai_spot.attempts.drive import answer
from airflow_provider_pai_spot.attempts.follow import follow
from airflow_provider_pai_spot.attempts.identity import TaskIdentity
from airflow_provider_pai_spot.attempts.judging import rules_for_live_job
from airflow_provider_pai_spot.attempts.limits import WaitLimits
from airflow_provider_pai_spot.attempts.log_setup import stream_in_triggerer
from airflow_provider_pai_spot.attempts.log_stream import LogStream
from airflow_provider_pai_spot.attempts.queue_word import QueueWord
from airflow_provider_pai_spot.attempts.stop_patience import StopPatience
from airflow_provider_pai_spot.attempts.unseen import not_connected
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import JobOutcome
from airflow_provider_pai_spot.dlc.status import Phase, has_machines, is_decided, phase_of
from airflow_provider_pai_spot.exceptions import PaiDlcError
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.hooks.retrying import RetryRules
from airflow_provider_pai_spot.triggers.dlc_threads import in_dlc_thread, in_stop_thread, start_threads
from airflow_provider_pai_spot.triggers.early_question import EARLY_QUESTION
from airflow_provider_pai_spot.triggers.pursuit import Pursuit
from airflow_provider_pai_spot.triggers.spot_job import SpotJobTrigger
from airflow_provider_pai_spot.triggers.watchers import connection_of, pace_of

__all__ = ["follow_to_the_end", "start_threads", "stop_if_task_is_over"]

_ONCE = RetryRules(attempts=1)  # the trigger looks again anyway; waiting in one of the few threads would delay others
_STOP_SEEN_WITHIN = timedelta(seconds=20)
"""In which a stop must show that DLC took."""
_STOP_TAKEN_WITHIN = timedelta(minutes=2)
"""
For all of it, when a thousand tasks are ended together and DLC takes few stops a second. Airflow cancels `on_kill`
after `[triggerer] on_kill_timeout`, 30 s, but waits for it (asyncio's `wait_for`), and `on_kill` goes on.
"""
_STOP_POLL = 1.0
_CONNECTION_PAUSES = (2.0, 5.0, 10.0, 20.0, 30.0)
"""Seconds between two attempts to get the connection that a job is watched with."""
_TOLD_AT = 3
"""Attempts in vain before a task's own log speaks of it; a hiccup is told of once for all, in the triggerer's."""
_ANSWER_WITHIN = 60.0
"""Seconds to wait for Airflow's word on its task; the first question to a triggerer loads its API, which takes long."""


async def follow_to_the_end(trigger: SpotJobTrigger) -> JobOutcome:
    """Wait until the job's end is known or a limit passes, and not less than the minimum dwell."""
    clock = trigger.clock
    earliest = clock.now().timestamp() + _min_dwell(trigger)
    outcome = await _outcome_of(trigger)
    await clock.asleep(max(0.0, earliest - clock.now().timestamp()))
    return outcome


async def _outcome_of(trigger: SpotJobTrigger) -> JobOutcome:
    clock = trigger.clock
    if trigger.task_instance is not None and trigger.cancel_on_kill:
        EARLY_QUESTION.ask(partial(_task_is_over, trigger))
    if settings.verdict_rules():
        await in_dlc_thread(rules_for_live_job, trigger.log)  # imports the user's own module: never on the event loop
    hook = await _hook_in_time(trigger)
    if isinstance(hook, JobOutcome):
        return hook
    word = _word_of(trigger)
    logs = _logs_of(trigger)
    limits = _limits_of(trigger)
    pursuit = Pursuit(
        trigger.job_id,
        hook=hook,
        renew=partial(_hook_of, trigger),
        limits=limits,
        poll_interval=trigger.poll_interval,
        clock=clock,
        pods_needed=has_machines if logs is None else _always,
    )
    following = follow(
        trigger.job_id,
        limits=limits,
        poll_interval=trigger.poll_interval,
        now=clock.now,
        log=trigger.log,
        spot=True if trigger.own_job else None,
        companions=(word,) if logs is None else (word, logs),
    )
    outcome = await pursuit.to_the_end(following)
    return outcome if logs is None else outcome.with_progress(logs.progress)


async def stop_if_task_is_over(trigger: SpotJobTrigger) -> None:
    """Stop the job if Airflow says that the task instance is finished or gone; no answer is not a yes."""
    if not trigger.cancel_on_kill:
        trigger.log.info("%s is left running: cancel_on_kill=False", trigger.job_id)
        return
    if not await _task_is_over(trigger):
        trigger.log.info("%s is left running: its task has not ended in Airflow", trigger.job_id)
        return
    hook = await _hook_to_stop_with(trigger)
    if hook is None:
        return
    trigger.log.warning("the task was ended in Airflow; stopping %s", trigger.job_id)
    await _stop_and_see(trigger, hook)


def _always(_status: str) -> bool:
    return True


def _word_of(trigger: SpotJobTrigger) -> QueueWord:
    """
    Return what speaks of a long wait.

    A restarted triggerer finds a thousand jobs that have waited long, and does not know what was said of them: their
    words, each of which takes calls, are spread over a while.
    """
    unusual_wait = settings.unusual_wait()
    patience = random.uniform(0, unusual_wait / 2)  # noqa: S311 - spreads calls, guards nothing
    return QueueWord(unusual_wait=unusual_wait, now=trigger.clock.now, log=trigger.log, patience=patience)


def _logs_of(trigger: SpotJobTrigger) -> LogStream | None:
    if trigger.log_poll_interval is None:
        return None
    return stream_in_triggerer(trigger.log_poll_interval, trigger.task_instance, clock=trigger.clock, log=trigger.log)


def _limits_of(trigger: SpotJobTrigger) -> WaitLimits:
    return WaitLimits(
        pending_timeout=trigger.pending_timeout,
        run_timeout=trigger.run_timeout,
        total_deadline=_moment(trigger.total_deadline),
        execution_deadline=_moment(trigger.execution_deadline),
        poll_error_tolerance=settings.poll_error_tolerance(),
        stop_at_limit=trigger.stop_at_limit,
    )


def _min_dwell(trigger: SpotJobTrigger) -> float:
    """
    Seconds before which no event is fired; 0 without a task instance, as under `dag.test()`.

    Airflow 3.3 fails the try of a task that resumes before the scheduler has heard of its deferral
    (apache/airflow #71580).
    """
    return settings.trigger_min_dwell() if trigger.task_instance is not None else 0.0


async def _hook_of(trigger: SpotJobTrigger) -> PaiDlcHook:
    connection = await connection_of(trigger.pai_dlc_conn_id)
    trigger.hook = PaiDlcHook.from_connection(
        connection, region_id=trigger.region_id, workspace_id=trigger.workspace_id, retry_rules=_ONCE
    )
    return trigger.hook


async def _hook_in_time(trigger: SpotJobTrigger) -> PaiDlcHook | JobOutcome:
    """
    Return the hook, or that the job was not observed if there was none for as long as DLC's silence is borne.

    A worker used the connection before: that Airflow does not find it is trouble of Airflow's, or somebody edits it.
    Neither may cost a try at once, on the last of which a paid job would be stopped. One that cannot be right is
    waited for as well.
    """
    give_up_at = trigger.clock.now().timestamp() + settings.poll_error_tolerance()
    pauses = itertools.chain(_CONNECTION_PAUSES, itertools.repeat(_CONNECTION_PAUSES[-1]))
    for tries, pause in enumerate(pauses, start=1):
        try:
            hook = await _hook_of(trigger)
        except Exception as error:  # noqa: BLE001 - whatever Airflow's secrets backends raise
            if trigger.clock.now().timestamp() >= give_up_at:
                return not_connected(trigger.job_id, trigger.pai_dlc_conn_id, error)
            if tries == _TOLD_AT:
                trigger.log.warning("%s: no connection to look at it with, waiting on: %s", trigger.job_id, error)
        else:
            if tries > _TOLD_AT:
                trigger.log.info("%s: the connection works again", trigger.job_id)
            return hook
        await trigger.clock.asleep(pause * random.uniform(1.0, 1.2))  # noqa: S311 - spreads the questions
    raise AssertionError("an endless chain of pauses ended")


async def _hook_to_stop_with(trigger: SpotJobTrigger) -> PaiDlcHook | None:
    """Return a hook by the connection as it is now, else the one that the job was watched with."""
    try:
        return await _hook_of(trigger)
    except Exception as error:  # noqa: BLE001 - a paid job is to be stopped, whatever Airflow has
        if trigger.hook is None:
            trigger.log.error(  # noqa: TRY400 - no traceback: what it says is what there is to do
                "%s cannot be stopped: no connection (%s); `pai-spot stop %s` stops it",
                trigger.job_id,
                error,
                trigger.job_id,
            )
        return trigger.hook


class _Instance(Protocol):
    """What the triggerer tells a trigger about its task instance."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int | None


async def _task_is_over(trigger: SpotJobTrigger) -> bool:
    instance: _Instance | None = trigger.task_instance
    if instance is None:
        return False
    identity = TaskIdentity(
        namespace="",
        dag_id=instance.dag_id,
        run_id=instance.run_id,
        task_id=instance.task_id,
        map_index=-1 if instance.map_index is None else instance.map_index,
    )
    ask = trigger.ask_airflow or task_is_over
    try:
        return await asyncio.wait_for(in_stop_thread(ask, identity), _ANSWER_WITHIN)
    except Exception as error:  # noqa: BLE001 - whatever it was, no answer is not a yes
        trigger.log.warning("%s: Airflow could not be asked about its task: %s", trigger.job_id, error)
        return False


async def _stop_and_see(trigger: SpotJobTrigger, hook: PaiDlcHook) -> None:
    """Stop, and look until the stop shows: whether one accepted in an early state holds is not documented."""
    try:
        async with asyncio.timeout(_STOP_TAKEN_WITHIN.total_seconds()):
            status = await _stop_until_it_shows(trigger, hook)
    except TimeoutError:
        status = ""
    if _shows(status):
        trigger.log.info("%s is %s", trigger.job_id, status)
    else:
        trigger.log.error(
            "%s is still %s; `pai-spot stop %s` stops it", trigger.job_id, status or "unseen", trigger.job_id
        )


async def _stop_until_it_shows(trigger: SpotJobTrigger, hook: PaiDlcHook) -> str:
    """Return the last status seen, which may show no stop a while after DLC took it."""
    job_id, clock, pace = trigger.job_id, trigger.clock, pace_of(hook)
    patience = StopPatience(clock.now, taken_within=_STOP_TAKEN_WITHIN, shows_within=_STOP_SEEN_WITHIN)
    told, status = False, ""
    while not patience.is_over:
        reply = await pace.stop(partial(answer, Stop(job_id), hook))
        patience.told(reply)
        if not isinstance(reply, PaiDlcError):
            reply = await pace.ask(partial(answer, Look(job_id), hook))
        patience.looked(good=True)
        if not isinstance(reply, PaiDlcError):
            status = Job(reply).status
        elif not told:
            told = True
            trigger.log.warning("%s: the stop did not go through yet: %s", job_id, reply)
        if _shows(status):
            break
        await clock.asleep(_STOP_POLL)
    return status


def _shows(status: str) -> bool:
    return is_decided(status) or phase_of(status) is Phase.STOPPING


def _moment(text: str | None) -> datetime | None:
    """Read an ISO 8601 time; one without a zone is UTC."""
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
