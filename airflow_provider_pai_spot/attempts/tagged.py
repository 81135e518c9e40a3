"""Listed jobs with what tells whose they are: tags and the identity in Envs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from airflow_provider_pai_spot.attempts.identity import ENV_DAG_ID
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.exceptions import PaiDlcNotFound


class GetsJobs(Protocol):
    """The call of the hook that is needed here."""

    def get_job(self, job_id: str) -> dict[str, Any]:
        """Return GetJob's JSON."""
        ...


def whole_jobs(hook: GetsJobs, jobs: Iterable[Job]) -> Iterator[Job]:
    """
    Return the jobs, each asked for singly where ListJobs left out Settings or Envs.

    A job that was deleted since it was listed is left out.
    """
    for job in jobs:
        if job.tags and ENV_DAG_ID in job.envs:
            yield job
            continue
        try:
            yield Job(hook.get_job(job.job_id))
        except PaiDlcNotFound:
            continue
