"""Which jobs a ListJobs query means, and in which order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from airflow_provider_pai_spot.emulator.behaviours import Behaviours
from airflow_provider_pai_spot.emulator.errors import invalid_parameter
from airflow_provider_pai_spot.emulator.record import Job
from airflow_provider_pai_spot.emulator.store import JobStore
from airflow_provider_pai_spot.emulator.wire import parse_stamp

_DAY = 86_400
_MAX_PAGE_SIZE = 100
_MAX_PAGE = 1000
_SORT_KEYS: Mapping[str, Callable[[Job], Any]] = {
    "GmtCreateTime": lambda job: job.created_at,
    "GmtFinishTime": lambda job: job.finished_at or 0.0,
    "DisplayName": lambda job: job.display_name,
    "JobType": lambda job: job.job_type,
    "Status": lambda job: job.status,
}
Query = Mapping[str, str]


def select(store: JobStore, query: Query, caller: str, now: float, behaviours: Behaviours) -> list[Job]:
    """Return every job the query means, in the order it asks for. Raises DlcError for a value that is not allowed."""
    _refuse_unknown_filters(query)
    tags = _tags(query)
    rules = [*_rules(query, caller, now, behaviours["list_window_days"]), *_workspace_rule(query, behaviours)]
    jobs = [job for job in _candidates(store, query, tags) if all(rule(job) for rule in rules)]
    return _sorted(jobs, query)


def page(jobs: list[Job], query: Query, default_size: int) -> list[Job]:
    """Return the page the query asks for. Raises DlcError for a page that cannot be."""
    size = whole_number(query, "PageSize", default_size, 1, _MAX_PAGE_SIZE)
    number = whole_number(query, "PageNumber", 1, 1, _MAX_PAGE)
    return jobs[(number - 1) * size : number * size]


def whole_number(query: Query, key: str, default: int, least: int, most: int) -> int:
    """Read a whole number from a query. Raises DlcError if it is none or out of range."""
    text = query.get(key, "")
    if not text:
        return default
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise invalid_parameter(f"{key} {text!r} is invalid: a whole number from {least} to {most}.")
    return value


def flag(query: Query, key: str, default: bool) -> bool:
    """Read a boolean from a query, where the SDK writes `True` and `False`."""
    text = query.get(key, "").lower()
    if text not in ("", "true", "false"):
        raise invalid_parameter(f"{key} {query[key]!r} is invalid: true or false.")
    return default if not text else text == "true"


def moment(query: Query, key: str) -> float | None:
    """Read a time from a query, None if it is not given. Raises DlcError if it is none."""
    text = query.get(key, "")
    if not text:
        return None
    try:
        return parse_stamp(text)
    except ValueError:
        raise invalid_parameter(f"{key} {text!r} is invalid: YYYY-MM-DDTHH:MM:SSZ.") from None


def _refuse_unknown_filters(query: Query) -> None:
    """A filter that is ignored would show jobs that DLC would not: better no answer than that one."""
    for key, value in query.items():
        if value and key not in _KNOWN:
            raise invalid_parameter(f"The DLC emulator does not know {key} of ListJobs.")


def _tags(query: Query) -> dict[str, str]:
    text = query.get("Tags", "")
    if not text:
        return {}
    try:
        tags = json.loads(text)
    except ValueError:
        tags = None
    if not isinstance(tags, dict):
        raise invalid_parameter(f"Tags {text!r} is invalid: a JSON object.")
    return {str(key): str(value) for key, value in tags.items()}


def _candidates(store: JobStore, query: Query, tags: Mapping[str, str]) -> Iterable[Job]:
    ids = query.get("JobId") or query.get("JobIds") or ""
    if not ids:
        return store.with_tags(tags) if tags else store.newest_first()
    named = store.with_ids(part.strip() for part in ids.split(","))
    return [job for job in named if tags.items() <= job.tags.items()]


def _rules(query: Query, caller: str, now: float, window_days: float) -> list[Callable[[Job], bool]]:
    rules: list[Callable[[Job], bool]] = [lambda job: job.visible_at <= now]
    if flag(query, "ShowOwn", default=True):
        rules.append(lambda job: job.owner == caller)
    start, end = moment(query, "StartTime"), moment(query, "EndTime")
    since = now - window_days * _DAY if start is None else start
    # Times are compared as DLC shows them, in whole seconds: a job created within the second asked for is in.
    rules.append(lambda job: int(job.created_at) >= int(since))
    if end is not None:
        rules.append(lambda job: int(job.created_at) <= end)
    rules.extend(rule for key, make in _FILTERS.items() if query.get(key) for rule in [make(query[key])])
    return rules


def _workspace_rule(query: Query, behaviours: Behaviours) -> list[Callable[[Job], bool]]:
    """Return what a query without WorkspaceId is restricted to."""
    if flag(query, "FromAllWorkspaces", default=False):
        if query.get("WorkspaceId") or not flag(query, "ShowOwn", default=True):
            raise invalid_parameter("FromAllWorkspaces needs ShowOwn=true, and goes without WorkspaceId.")
        return []
    if query.get("WorkspaceId") or behaviours["list_without_workspace"] == "every workspace":
        return []
    return [lambda job: job.workspace_id == behaviours["default_workspace_id"]]


def _sorted(jobs: list[Job], query: Query) -> list[Job]:
    order = (query.get("Order") or "desc").lower()
    if order not in ("asc", "desc"):
        raise invalid_parameter(f"Order {query['Order']!r} is invalid: asc or desc.")
    sort_by = query.get("SortBy") or "GmtCreateTime"
    if sort_by not in _SORT_KEYS:
        raise invalid_parameter(f"SortBy {sort_by!r} is invalid: one of {', '.join(_SORT_KEYS)}.")
    if sort_by == "GmtCreateTime" and order == "desc":
        return jobs
    return sorted(jobs, key=_SORT_KEYS[sort_by], reverse=order == "desc")


def _by_setting(name: str) -> Callable[[str], Callable[[Job], bool]]:
    return lambda text: lambda job: job.settings.get(name) == text


def _by_display_name(text: str) -> Callable[[Job], bool]:
    part = text.lower()
    return lambda job: part in job.display_name.lower()


def _by_status(text: str) -> Callable[[Job], bool]:
    statuses = set(text.split(","))
    return lambda job: job.status in statuses


def _by_payment_type(text: str) -> Callable[[Job], bool]:
    if text not in ("Spot", "PostPaid", "PrePaid"):
        raise invalid_parameter(f"PaymentType {text!r} is invalid: PrePaid, Spot or PostPaid.")
    return lambda job: payment_type(job) == text


def _by_resource_ids(text: str) -> Callable[[Job], bool]:
    ids = set(text.split(","))
    return lambda job: str(job.body.get("ResourceId") or "") in ids


def payment_type(job: Job) -> str:
    """Return how a job is paid: any role that bids makes it Spot (assumed)."""
    if job.spot_roles:
        return "Spot"
    return "PrePaid" if job.body.get("ResourceId") else "PostPaid"


_FILTERS: Mapping[str, Callable[[str], Callable[[Job], bool]]] = {
    "DisplayName": _by_display_name,
    "Status": _by_status,
    "PaymentType": _by_payment_type,
    "JobType": lambda text: lambda job: job.job_type == text,
    "WorkspaceId": lambda text: lambda job: job.workspace_id == text,
    "ResourceId": _by_resource_ids,
    "ResourceIds": _by_resource_ids,
    "Accessibility": lambda text: lambda job: (job.body.get("Accessibility") or "PRIVATE") == text,
    "BusinessUserId": _by_setting("BusinessUserId"),
    "Caller": _by_setting("Caller"),
    "PipelineId": _by_setting("PipelineId"),
    "ReasonSearch": lambda text: lambda job: text.lower() in f"{job.reason_code} {job.reason_message}".lower(),
    "UserCommandSearch": lambda text: lambda job: text.lower() in str(job.body.get("UserCommand")).lower(),
    "ImageSearch": lambda text: (
        lambda job: any(text.lower() in str(spec.get("Image")).lower() for spec in job.body["JobSpecs"])
    ),
}
_KNOWN = frozenset(_FILTERS) | {
    "EndTime",
    "FromAllWorkspaces",
    "JobId",
    "JobIds",
    "Order",
    "PageNumber",
    "PageSize",
    "ShowOwn",
    "SortBy",
    "StartTime",
    "Tags",
}
