"""What holds a job up in its quota, in words: a reading of PAI Studio's diagnosis, any part of which may be absent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from airflow_provider_pai_spot.dlc.wire import integer_of, mapping_of, mappings_of, text_of

_CHECKS = {
    "SelfQuotaLimit": "its own limit is reached",
    "AncestorQuotaLimit": "the limit of a quota above it is reached",
    "UserLimit": "the limit of one user is reached",
    "QueueStrategyLimit": "its queue lets others go first",
}
"""The four checks of the official diagnostics reference."""
_REASONS_NAMED = 3


def quota_words(quota_id: str, diagnosis: Mapping[str, Any]) -> str:
    """Return what the diagnosis says of a job's place in a quota, in one phrase."""
    found = [*_failed_checks(diagnosis), *_without_a_node(diagnosis)]
    return f"in quota {quota_id} {', and '.join(found) or 'every check is passed'}"


def _failed_checks(diagnosis: Mapping[str, Any]) -> Iterator[str]:
    checks = mapping_of(diagnosis.get("ResourceDiagnosis"))
    for name, words in _CHECKS.items():
        check = mapping_of(checks.get(name))
        if text_of(check.get("Status")) == "Failed":
            strategy = text_of(diagnosis.get("QueueStrategy")) if name == "QueueStrategyLimit" else ""
            yield f"{words}{_amounts(check)}{f' ({strategy})' if strategy else ''}"


def _amounts(check: Mapping[str, Any]) -> str:
    used, limit = mapping_of(check.get("Used")), mapping_of(check.get("Limit"))
    exceeded = check.get("ExceedResources")
    names = [text_of(name) for name in exceeded] if isinstance(exceeded, list) else []
    known = [name for name in names if name in used and name in limit]
    shown = [f"{name} {text_of(used[name])} of {text_of(limit[name])} used" for name in known]
    return f" ({', '.join(shown or names)})" if names else ""


def _without_a_node(diagnosis: Mapping[str, Any]) -> Iterator[str]:
    scheduling = mapping_of(diagnosis.get("SchedulingDiagnosis"))
    pods, placed = integer_of(scheduling.get("TaskNum")), integer_of(scheduling.get("SchedulableNum"))
    if text_of(scheduling.get("Status")) != "Failed" or pods is None or placed is None:
        return
    groups = mappings_of(scheduling.get("UnschedulableNodes"))[:_REASONS_NAMED]
    reasons = ", ".join(f"{text_of(group.get('Reason'))}{_count(group.get('Nodes'))}" for group in groups)
    yield f"{placed} of {pods} pods find a node{f' ({reasons})' if reasons else ''}"


def _count(names: object) -> str:
    return f" on {len(names)}" if isinstance(names, list) and names else ""
