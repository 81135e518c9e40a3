"""The jobs, found by id, by tag, or newest first. Lookups by id and by tag cost the same for 10 and 10,000 jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from airflow_provider_pai_spot.emulator.record import Job


class JobStore:
    """Every job that was created and not deleted."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._by_tag: dict[tuple[str, str], dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(self._jobs.values())

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._jobs

    def add(self, job: Job) -> None:
        """Remember a job."""
        self._jobs[job.job_id] = job
        self._index(job)

    def get(self, job_id: str) -> Job | None:
        """Return a job, None if there is none."""
        return self._jobs.get(job_id)

    def remove(self, job: Job) -> None:
        """Forget a job."""
        self._unindex(job)
        del self._jobs[job.job_id]

    def retag(self, job: Job, tags: Mapping[str, str], dropped: Iterable[str]) -> None:
        """Add tags to a job and drop others from it."""
        self._unindex(job)
        for key in dropped:
            job.tags.pop(key, None)
        job.tags.update(tags)
        self._index(job)

    def with_ids(self, job_ids: Iterable[str]) -> list[Job]:
        """Return the jobs of that name that exist, each once, newest first."""
        found = {job_id: self._jobs[job_id] for job_id in job_ids if job_id in self._jobs}
        return sorted(found.values(), key=lambda job: -job.created_at)

    def with_tags(self, tags: Mapping[str, str]) -> list[Job]:
        """Return the jobs that carry all of `tags`, newest first."""
        groups = [self._by_tag.get((key, str(value)), {}) for key, value in tags.items()]
        smallest = min(groups, key=len)
        ids = [job_id for job_id in smallest if all(job_id in group for group in groups)]
        return self.with_ids(ids)

    def newest_first(self) -> Iterator[Job]:
        """Yield every job, the one created last first."""
        return reversed(self._jobs.values())

    def _index(self, job: Job) -> None:
        for pair in job.tags.items():
            self._by_tag.setdefault(pair, {})[job.job_id] = None

    def _unindex(self, job: Job) -> None:
        for pair in job.tags.items():
            self._by_tag.get(pair, {}).pop(job.job_id, None)
