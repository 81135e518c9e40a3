"""Outcomes of jobs that DLC does not tell about."""

from __future__ import annotations

from airflow_provider_pai_spot.dlc.outcome import Cause, JobOutcome, Verdict

NOT_OBSERVED = "not_observed"
"""`JobOutcome.rule` when DLC could not be asked for too long: the job may well be alive."""
JOB_GONE = "job_gone"
"""`JobOutcome.rule` when DLC no longer knows the job."""


def gone(job_id: str, last_status: str, error: Exception) -> JobOutcome:
    """Return the outcome of a job that DLC does not know any more."""
    return _unseen(job_id, last_status, JOB_GONE, f"DLC does not know the job: {error}")


def not_observed(job_id: str, last_status: str, error: Exception) -> JobOutcome:
    """Return the outcome of a job that DLC did not tell about for too long; it may well be alive."""
    return _unseen(job_id, last_status, NOT_OBSERVED, f"no good answer from DLC: {error}")


def not_connected(job_id: str, conn_id: str, error: Exception) -> JobOutcome:
    """Return the outcome of a job that could not be looked at, since its connection could not be read or used."""
    problem = f"connection {conn_id!r} could not be read or used ({type(error).__name__}): {error}"
    return _unseen(job_id, "", NOT_OBSERVED, problem)


def _unseen(job_id: str, last_status: str, rule: str, evidence: str) -> JobOutcome:
    return JobOutcome(
        job_id=job_id,
        verdict=Verdict.UNKNOWN,
        cause=Cause.UNKNOWN,
        status=last_status,
        rule=rule,
        confidence="observed",
        evidence=(evidence[:500],),
    )
