"""The part of DLC that the triggerer asks, over a dict of jobs; remembers what was asked when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from virtual_time import EPOCH

from airflow_provider_pai_spot.exceptions import PaiDlcError, PaiDlcNotFound


@dataclass
class ScriptedDlc:
    """
    Stands in for the hook.

    :param fault: called with the operation's name and what it is about; raises what shall go wrong.
    :param faults: the same for those of a fingerprint, instead.
    """

    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    fault: Callable[[str, Sequence[str]], None] = lambda _operation, _ids: None
    faults: dict[str, Callable[[str, Sequence[str]], None]] = field(default_factory=dict)
    fingerprint: str = "one"
    workspace_id: str = "1"
    pai_dlc_conn_id: str = "pai_dlc_default"
    lists: list[tuple[float, list[str]]] = field(default_factory=list)
    singles: list[tuple[float, str]] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    time: Callable[[], float] = lambda: 0.0

    def add(self, ids: Iterable[str], **values: Any) -> list[str]:
        """Let jobs exist, Queuing since the epoch unless told otherwise."""
        created = list(ids)
        for job_id in created:
            self.jobs[job_id] = _item(job_id) | values
        return created

    def put(self, job_id: str, status: str, **values: Any) -> None:
        """Let something happen to a job."""
        item = self.jobs[job_id]
        history = [
            *item.get("StatusHistory", ()),
            {"Status": status, "StartTime": item["GmtCreateTime"], "EndTime": ""},
        ]
        self.jobs[job_id] = item | {"Status": status, "StatusHistory": history} | values

    @property
    def caller_fingerprint(self) -> str:
        """The fingerprint without the workspace."""
        return self.fingerprint.partition("-")[0]

    def list_page(self, job_ids: Sequence[str]) -> list[Any]:
        """Answer ListJobs."""
        self.lists.append((self.time(), list(job_ids)))
        self._fail("ListJobs", job_ids)
        asked = [self.jobs[one] for one in job_ids if one in self.jobs and one not in self.hidden]
        return [job for job in asked if job.get("WorkspaceId", self.workspace_id) == self.workspace_id]

    def in_workspace(self, workspace_id: str) -> ScriptedDlc:
        """Return the same DLC as asked about another workspace."""
        return replace(self, workspace_id=workspace_id, fingerprint=f"{self.fingerprint}-{workspace_id}")

    def get_job(self, job_id: str) -> dict[str, Any]:
        """Answer GetJob."""
        self.singles.append((self.time(), job_id))
        self._fail("GetJob", [job_id])
        if job_id not in self.jobs:
            raise PaiDlcNotFound("GetJob: HTTP 404", code="NotFound", status_code=404)
        return self.jobs[job_id] | {"Pods": []}

    def stop_job(self, job_id: str) -> bool:
        """Answer StopJob."""
        self._fail("StopJob", [job_id])
        self.stops.append(job_id)
        self.put(job_id, "Stopped", ReasonCode="JobStoppedByUser", GmtFinishTime=self.jobs[job_id]["GmtCreateTime"])
        return True

    def get_job_events(self, job_id: str) -> list[str]:
        """Answer GetJobEvents."""
        return [f"an event of {job_id}"]

    def get_pod_events(self, job_id: str, pod_id: str) -> list[str]:
        """Answer GetPodEvents."""
        return [f"an event of {job_id}'s {pod_id}"]

    def _fail(self, operation: str, about: Sequence[str]) -> None:
        self.faults.get(self.fingerprint, self.fault)(operation, about)

    def calls_between(self, start: float, end: float) -> int:
        """Return how many requests of any kind were sent in that time."""
        return sum(start <= at < end for at, _ in [*self.lists, *self.singles])


def _item(job_id: str) -> dict[str, Any]:
    created = (EPOCH - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "JobId": job_id,
        "Status": "Queuing",
        "SubStatus": "",
        "ReasonCode": "JobEnqueued",
        "ReasonMessage": "",
        "RestartTimes": "",
        "GmtCreateTime": created,
        "StatusHistory": [{"Status": "Queuing", "StartTime": created, "EndTime": ""}],
        "JobSpecs": [{"Type": "Worker", "SpotSpec": {"SpotStrategy": "SpotWithPriceLimit"}}],
    }


def ids(count: int, start: int = 0) -> list[str]:
    """Return job ids."""
    return [f"dlc{number:013d}" for number in range(start, start + count)]


def raising(error: PaiDlcError, operation: str = "ListJobs") -> Callable[[str, Sequence[str]], None]:
    """Return a fault that always strikes."""

    def strike(called: str, _ids: Sequence[str]) -> None:
        if called == operation:
            raise error

    return strike
