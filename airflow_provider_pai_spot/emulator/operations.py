"""The operations this emulator knows, by method and path."""

from __future__ import annotations

import re

OPERATIONS: tuple[tuple[str, str, str], ...] = (
    ("CreateJob", "POST", "/api/v1/jobs"),
    ("ListJobs", "GET", "/api/v1/jobs"),
    ("GetJob", "GET", "/api/v1/jobs/{job_id}"),
    ("UpdateJob", "PUT", "/api/v1/jobs/{job_id}"),
    ("DeleteJob", "DELETE", "/api/v1/jobs/{job_id}"),
    ("StopJob", "POST", "/api/v1/jobs/{job_id}/stop"),
    ("GetJobEvents", "GET", "/api/v1/jobs/{job_id}/events"),
    ("GetPodEvents", "GET", "/api/v1/jobs/{job_id}/pods/{pod_id}/events"),
    ("GetPodLogs", "GET", "/api/v1/jobs/{job_id}/pods/{pod_id}/logs"),
    ("ListEcsSpecs", "GET", "/api/v1/ecsspecs"),
    ("GetQuotaWorkloadDiagnosis", "GET", "/api/v1/quotas/{quota_id}/workloads/{job_id}/diagnosis"),
    ("TagResources", "POST", "/api/v1/tags"),
    ("UntagResources", "DELETE", "/api/v1/tags"),
)
NAMES = tuple(name for name, _, _ in OPERATIONS)
_PATTERNS = [(name, method, re.compile(re.sub(r"\{\w+\}", "[^/]+", path))) for name, method, path in OPERATIONS]


def operation_of(method: str, path: str) -> str:
    """Return DLC's name of an operation; the method and path themselves if the emulator has no such operation."""
    for name, its_method, pattern in _PATTERNS:
        if method == its_method and pattern.fullmatch(path):
            return name
    return f"{method} {path}"
