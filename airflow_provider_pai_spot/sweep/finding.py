"""Our live jobs on DLC, and their kin: by tag and namespace, and only where tags and variables agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from airflow_provider_pai_spot.attempts.identity import (
    ENV_DAG_ID,
    ENV_MAP_INDEX,
    ENV_RUN_ID,
    ENV_TASK_ID,
    TAG_ATTEMPT,
    TAG_NAMESPACE,
    TAG_OWNER,
    TAG_TASK_INSTANCE,
    Owner,
    TaskIdentity,
    hash_namespace,
    tag_number,
)
from airflow_provider_pai_spot.attempts.tagged import whole_jobs
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.status import JobStatus, Phase, phase_of
from airflow_provider_pai_spot.dlc.wire import integer_of
from airflow_provider_pai_spot.sweep.candidates import Kin
from airflow_provider_pai_spot.sweep.owners import OwnerRef, RunRef, TaskRef

LIVE: Final = frozenset({Phase.PENDING, Phase.RUNNING})
"""Not Stopping (somebody stops it already) and not *Reserving (the job's author keeps the nodes on purpose)."""
_NO_ATTEMPT = -1
_LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
"""Before any job of ours. DLC shows nothing created before StartTime, and the oldest orphan has cost the most."""


class ListCalls(Protocol):
    """The calls of the hook that finding jobs needs."""

    def list_jobs(
        self, *, tags: Mapping[str, str], show_own: bool, start_time: datetime | None = None, status: str | None = None
    ) -> list[dict[str, Any]]:
        """List jobs by tag."""
        ...

    def get_job(self, job_id: str) -> dict[str, Any]:
        """Return GetJob's JSON."""
        ...


@dataclass(frozen=True, slots=True)
class OwnedJob:
    """
    A job of ours that lives.

    :param identity: whose it is; its variables say so and its tag confirms it.
    :param attempt: which attempt of its task instance.
    """

    job: Job
    identity: TaskIdentity
    owner: Owner
    attempt: int

    @property
    def task_ref(self) -> TaskRef:
        """The task instance that submitted it."""
        one = self.identity
        return TaskRef(one.dag_id, one.run_id, one.task_id, one.map_index)

    @property
    def owner_ref(self) -> OwnerRef:
        """Whose end also ends the job."""
        return self.task_ref if self.owner is Owner.TASK else RunRef(self.identity.dag_id, self.identity.run_id)

    @property
    def kin(self) -> Kin:
        """The job as its family sees it."""
        return Kin(self.job.job_id, self.attempt, self.job.created_at)


@dataclass(frozen=True, slots=True)
class Found:
    """
    What one look at DLC found.

    :param owned: our live jobs, oldest first.
    :param strange: live jobs with our namespace that are not as this provider makes them; nobody's to stop.
    :param families: the jobs of each task instance, in any status, by the value of the tag `airflow-ti`.
    """

    owned: list[OwnedJob]
    strange: list[Job]
    families: dict[str, list[Kin]] = field(default_factory=dict)

    def family_of(self, one: OwnedJob) -> list[Kin]:
        """Return all jobs of the same task instance that DLC showed."""
        return self.families.get(one.identity.key, [])


def find(hook: ListCalls, namespace: str) -> Found:
    """
    Look for the live jobs of one Airflow installation, whoever submitted them.

    Asks for each live status by itself, so that the cost does not grow with the jobs of the past.

    :raises PaiDlcError: DLC could not be asked.
    """
    tag = hash_namespace(namespace)
    live = sorted(_live(hook, tag), key=lambda job: (job.created_at.timestamp() if job.created_at else 0.0, job.job_id))
    read = [(job, read_ownership(job, namespace)) for job in live]
    owned = [one for _, one in read if one is not None]
    return Found(owned, [job for job, one in read if one is None], _families(hook, tag, owned))


def read_ownership(job: Job, namespace: str) -> OwnedJob | None:
    """Return whose job it is; None if its tags and its variables do not fit together as we write them."""
    envs, tags = job.envs, job.tags
    map_index = integer_of(envs.get(ENV_MAP_INDEX))
    attempt = tag_number(tags, TAG_ATTEMPT, _NO_ATTEMPT)
    if map_index is None or attempt < 0 or tags.get(TAG_OWNER) not in list(Owner):
        return None
    identity = TaskIdentity(
        namespace=namespace,
        dag_id=envs.get(ENV_DAG_ID, ""),
        run_id=envs.get(ENV_RUN_ID, ""),
        task_id=envs.get(ENV_TASK_ID, ""),
        map_index=map_index,
    )
    if tags.get(TAG_TASK_INSTANCE) != identity.key:
        return None
    return OwnedJob(job, identity, Owner(tags[TAG_OWNER]), attempt)


def _live(hook: ListCalls, tag: str) -> Iterator[Job]:
    """A job that changes its status between two requests is met twice, or not at all until the next sweep."""
    seen: set[str] = set()
    for status in (status for status in JobStatus if phase_of(status) in LIVE):
        items = hook.list_jobs(tags={TAG_NAMESPACE: tag}, show_own=False, start_time=_LONG_AGO, status=status.value)
        for job in whole_jobs(hook, map(Job, items)):
            if job.job_id not in seen and job.tags.get(TAG_NAMESPACE) == tag and job.phase in LIVE:
                seen.add(job.job_id)
                yield job


def _families(hook: ListCalls, tag: str, owned: list[OwnedJob]) -> dict[str, list[Kin]]:
    """What can have taken the place of a live job was created after it: nothing older is read."""
    families: dict[str, dict[str, Kin]] = {}
    for one in owned:
        families.setdefault(one.identity.key, {})[one.job.job_id] = one.kin
    births = [one.job.created_at for one in owned if one.job.created_at is not None]
    if births:
        items = hook.list_jobs(tags={TAG_NAMESPACE: tag}, show_own=False, start_time=min(births))
        for job in map(Job, items):
            family = families.get(job.tags.get(TAG_TASK_INSTANCE, ""))
            if family is not None:
                family[job.job_id] = Kin(job.job_id, tag_number(job.tags, TAG_ATTEMPT, _NO_ATTEMPT), job.created_at)
    return {key: list(family.values()) for key, family in families.items()}
