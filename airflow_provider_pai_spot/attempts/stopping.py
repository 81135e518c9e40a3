"""Stop a job and make sure: two live jobs for one piece of work are what must never happen."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow_provider_pai_spot.attempts.answers import answered
from airflow_provider_pai_spot.attempts.drive import JobReader, drive
from airflow_provider_pai_spot.attempts.follow import follow
from airflow_provider_pai_spot.attempts.limits import WaitLimits
from airflow_provider_pai_spot.attempts.unseen import JOB_GONE
from airflow_provider_pai_spot.clock import Clock
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import JobOutcome, StopReason
from airflow_provider_pai_spot.dlc.status import Phase, is_decided, phase_of
from airflow_provider_pai_spot.exceptions import PaiDlcError, PaiDlcNotFound, SpotOutcomeUnknown

STOP_LIMIT_SECONDS = 300.0
"""How long a stop may take before the try gives up; the next try goes on with it (assumed, DLC names no time)."""
_STOP_POLL = 2.0
STOP_SEEN_WITHIN = 20.0
"""Seconds in which a stop must show where the process is being killed; the rest is the sweep's."""
_SEEN_POLL = 1.0


def stop_and_see(hook: JobReader, job_id: str, *, clock: Clock, log: Any) -> bool:
    """
    Stop the job and look until the stop shows: whether one accepted in an early state holds is not documented.

    Never raises; whether the job is over, or on its way, within `STOP_SEEN_WITHIN` is returned and logged.
    """
    status = "unseen"
    give_up_at = clock.now() + timedelta(seconds=STOP_SEEN_WITHIN)
    while True:
        try:
            hook.stop_job(job_id)
            status = Job(hook.get_job(job_id)).status
        except PaiDlcError as error:
            log.warning("%s: the stop did not go through yet: %s", job_id, error)
        if is_decided(status) or phase_of(status) is Phase.STOPPING:
            log.info("%s is %s", job_id, status)
            return True
        if clock.now() >= give_up_at:
            log.error("%s is still %s; `pai-spot stop %s` stops it", job_id, status, job_id)
            return False
        clock.sleep(_SEEN_POLL)


def stop_and_wait(hook: JobReader, job_id: str, reason: StopReason | None, *, clock: Clock, log: Any) -> JobOutcome:
    """
    Stop the job if it is not over, wait until it is, and return how it ended.

    :param reason: what the outcome is marked with, unless the job ended by itself first.
    :raises SpotOutcomeUnknown: it is not over after `STOP_LIMIT_SECONDS`; nothing may be submitted in its place.
    :raises PaiDlcError: StopJob itself was refused.
    """
    try:
        answered(lambda: hook.stop_job(job_id), clock=clock, log=log)
    except PaiDlcNotFound:
        log.warning("%s is not known to DLC any more: there is nothing to stop", job_id)
    limits = WaitLimits(
        total_deadline=clock.now() + timedelta(seconds=STOP_LIMIT_SECONDS),
        poll_error_tolerance=STOP_LIMIT_SECONDS,
    )
    following = follow(job_id, limits=limits, poll_interval=_STOP_POLL, now=clock.now, log=log, spot=True)
    outcome = drive(following, hook, clock)
    if not is_decided(outcome.status) and outcome.rule != JOB_GONE:
        raise SpotOutcomeUnknown(
            f"{job_id} is still {outcome.status or 'not to be seen'} after it was asked to stop; nothing is submitted "
            f"in its place. Stop it in the console or with `pai-spot stop {job_id}`.",
            outcome,
        )
    return outcome if outcome.ended_by_itself else outcome.with_stop_reason(reason)
