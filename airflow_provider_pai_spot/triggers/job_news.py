"""What a list says of one job: cheap comparison of two items, and whether one says enough to act on. Pure."""

from __future__ import annotations

import re
import sys
from collections.abc import Hashable, Mapping
from datetime import datetime
from typing import Any

from airflow_provider_pai_spot.attempts.limits import WaitLimits, breached
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.status import is_decided
from airflow_provider_pai_spot.exceptions import PaiDlcCredentialsError, PaiDlcError, PaiDlcRefused, PaiDlcThrottled

_COMPARED = ("Status", "SubStatus", "ReasonCode", "ReasonMessage", "RestartTimes")
_POD_COMPARED = ("PodId", "PodUid", "Status", "SubStatus")
_DENIED = (401, 403)
_TOO_LARGE = (400, 414)
_BAD_KEY = (
    *("InvalidAccessKeyId", "SignatureDoesNotMatch", "IncompleteSignature"),
    *("InvalidSecurityToken", "SecurityTokenExpired"),
)
_OF_THE_CALLER = re.compile(r"(?i)timestamp|security-?token|access-?key|signature|forbidden|permission|unauthori[sz]ed")
"""Codes about who asks, and by which clock; Alibaba Cloud's gateway gives some of them with 400."""
_KEPT = frozenset(
    {
        *("JobId", "DisplayName", "JobType", "ResourceType", "ResourceId", "JobMaxRunningTimeMinutes"),
        *("Status", "SubStatus", "ReasonCode", "ReasonMessage", "StatusHistory", "RestartTimes", "Pods", "JobSpecs"),
        *("GmtCreateTime", "GmtSubmittedTime", "GmtRunningTime", "GmtFinishTime"),
        *("GmtSuccessedTime", "GmtFailedTime", "GmtStoppedTime"),
    }
)
"""What is asked of a job that is still waited for; when it is over it is read anew, with everything."""
_KEPT_OF_ROLE = frozenset({"Type", "PodCount", "EcsSpec", "SpotSpec", "ElasticSpotSpecs", "UseSpotInstance"})
_LONGEST_SHARED = 100


def is_usable(item: object) -> bool:
    """Whether a list item names a job and its status."""
    return isinstance(item, dict) and all(isinstance(item.get(key), str) and item[key] for key in ("JobId", "Status"))


def slim(item: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return what `_KEPT` names of a list item, equal texts of all items being one.

    Ten thousand jobs say `Running` a few times each; kept as they came, they would take twice the memory. Of a job
    that is over its tags are kept as well: it is judged by the item if it cannot be read singly.
    """
    kept = {key: _shared(value) for key, value in item.items() if key in _KEPT}
    settings = item.get("Settings")
    if isinstance(settings, dict) and is_decided(str(item.get("Status"))):
        kept["Settings"] = {"Tags": settings.get("Tags")}
    roles = kept.get("JobSpecs")
    if isinstance(roles, list):
        kept["JobSpecs"] = [_of_role(role) for role in roles]
    return kept


def signature(item: Mapping[str, Any]) -> Hashable:
    """Return what is equal for two items of a job exactly if nothing happened in between that anybody waits for."""
    history, pods = item.get("StatusHistory"), item.get("Pods")
    return (
        *(_plain(item.get(key)) for key in _COMPARED),
        len(history) if isinstance(history, list) else 0,
        tuple(_pod(pod) for pod in pods) if isinstance(pods, list) else None,
    )


def says_enough(item: Mapping[str, Any], limits: WaitLimits, now: datetime, *, pods_needed: bool) -> bool:
    """
    Whether an item may be acted on; otherwise the job is read singly first, by GetJob.

    That is so for the job's end, and for a limit that would end it: an item may be as old as its period.
    Whether ListJobs fills StatusHistory and Pods is not documented.

    :param pods_needed: whether somebody beside `follow` looks at the pods.
    """
    if is_decided(str(item.get("Status"))) or (pods_needed and not isinstance(item.get("Pods"), list)):
        return False
    counts_phases = limits.pending_timeout is not None or limits.run_timeout is not None
    if counts_phases and not isinstance(item.get("StatusHistory"), list):
        return False
    return breached(Job(item), limits, now) is None


def is_denied(error: PaiDlcError) -> bool:
    """Whether the caller itself is refused: no or wrong credentials, no permission. Asking again soon is no use."""
    if isinstance(error, PaiDlcCredentialsError):
        return True
    if not isinstance(error, PaiDlcRefused) or isinstance(error, PaiDlcThrottled):
        return False
    return error.status_code in _DENIED or error.code.startswith(_BAD_KEY)


def is_too_large(error: PaiDlcError) -> bool:
    """Whether a smaller list may be answered: one was refused that is too long, or has an odd id in it."""
    if not isinstance(error, PaiDlcRefused) or isinstance(error, PaiDlcThrottled) or is_denied(error):
        return False
    return error.status_code in _TOO_LARGE and not _OF_THE_CALLER.search(error.code)


def _pod(pod: object) -> Hashable:
    if not isinstance(pod, Mapping):
        return None
    former = pod.get("HistoryPods")
    return (*(_plain(pod.get(key)) for key in _POD_COMPARED), len(former) if isinstance(former, list) else 0)


def _plain(value: object) -> Hashable:
    return value if isinstance(value, (str, int, float, type(None))) else repr(value)


def _of_role(role: Any) -> Any:
    return {key: value for key, value in role.items() if key in _KEPT_OF_ROLE} if isinstance(role, dict) else role


def _shared(value: Any) -> Any:
    if isinstance(value, str):
        return sys.intern(value) if len(value) <= _LONGEST_SHARED else value
    if isinstance(value, list):
        return [_shared(one) for one in value]
    if isinstance(value, dict):
        return {key: _shared(one) for key, one in value.items()}
    return value
