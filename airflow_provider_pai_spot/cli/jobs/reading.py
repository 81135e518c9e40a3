"""Which jobs are ours, and what each is: read from tags and from Airflow's own variables, nothing else of Envs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow_provider_pai_spot.attempts.identity import (
    ENV_DAG_ID,
    ENV_MAP_INDEX,
    ENV_RUN_ID,
    ENV_TASK_ID,
    TAG_ATTEMPT,
    TAG_NAMESPACE,
    TAG_OWNER,
    TAG_TASK_INSTANCE,
)
from airflow_provider_pai_spot.attempts.tagged import whole_jobs
from airflow_provider_pai_spot.dlc.bids import read_bid
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.wire import integer_of
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """One job of ours, for a table or JSON. Times in seconds; '' for what DLC does not show."""

    job_id: str
    status: str
    dag_id: str
    run_id: str
    task_id: str
    map_index: str
    attempt: str
    bids: tuple[str, ...]
    owner: str
    namespace: str
    created_at: datetime | None
    seconds_pending: float
    seconds_running: float

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; numbers are numbers, null for what DLC does not show."""
        return {
            "job_id": self.job_id,
            "status": self.status,
            "dag_id": self.dag_id or None,
            "run_id": self.run_id or None,
            "task_id": self.task_id or None,
            "map_index": integer_of(self.map_index),
            "attempt": integer_of(self.attempt),
            "bids": list(self.bids),
            "owner": self.owner or None,
            "namespace_tag": self.namespace,
            "created_at": self.created_at.isoformat() if self.created_at else None,
            "seconds_pending": round(self.seconds_pending, 1),
            "seconds_running": round(self.seconds_running, 1),
        }


def find_jobs(
    hook: PaiDlcHook, *, since: datetime, namespace_tag: str | None, statuses: frozenset[str]
) -> Iterator[Job]:
    """
    Yield the jobs that Airflow made, newest first.

    :param since: created since then.
    :param namespace_tag: only those of one Airflow installation; None: of every one.
    :param statuses: only these; empty: all.
    :raises PaiDlcError: DLC could not be asked.
    """
    items = hook.list_jobs(
        tags={TAG_NAMESPACE: namespace_tag} if namespace_tag else None,
        start_time=since,
        show_own=False,
        status=next(iter(statuses)) if len(statuses) == 1 else None,
    )
    listed = (job for job in map(Job, items) if not statuses or job.status in statuses)
    return (job for job in whole_jobs(hook, listed) if _is_ours(job, namespace_tag))


def job_line(job: Job, now: datetime) -> JobLine:
    """Return what is shown of a job at `now`."""
    envs, tags = job.envs, job.tags
    return JobLine(
        job_id=job.job_id,
        status=job.status,
        dag_id=envs.get(ENV_DAG_ID, ""),
        run_id=envs.get(ENV_RUN_ID, ""),
        task_id=envs.get(ENV_TASK_ID, ""),
        map_index=envs.get(ENV_MAP_INDEX, ""),
        attempt=tags.get(TAG_ATTEMPT, ""),
        bids=tuple(dict.fromkeys(str(bid) for spec in job.spot_specs or () if (bid := read_bid(spec)))),
        owner=tags.get(TAG_OWNER, ""),
        namespace=tags.get(TAG_NAMESPACE, ""),
        created_at=job.created_at,
        seconds_pending=job.seconds_pending(now),
        seconds_running=job.seconds_running(now),
    )


def _is_ours(job: Job, namespace_tag: str | None) -> bool:
    tags = job.tags
    return TAG_TASK_INSTANCE in tags and (namespace_tag is None or tags.get(TAG_NAMESPACE) == namespace_tag)
