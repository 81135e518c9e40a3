"""A pod of a job, or an earlier incarnation of one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from airflow_provider_pai_spot.dlc.wire import integer_of, mapping_of, mappings_of, text_of, time_of

EVICTED = "Evicted"
"""The one documented machine-readable sign of preemption (`SubStatus` of a pod)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """
    One incarnation of a pod; what DLC did not say is '' or None.

    :param type: the role, in DLC's lower case; `aimaster` is DLC's own.
    :param node: the machine it ran on, as DLC names it.
    :param exit_code: from `StatusDetail`, which DLC sends and the vendor SDK drops.
    :param reason: Kubernetes' reason, from `StatusDetail`.
    :param is_history: whether another incarnation took its place.
    """

    pod_id: str
    pod_uid: str
    type: str
    node: str
    status: str
    sub_status: str
    exit_code: int | None
    reason: str
    message: str
    started_at: datetime | None
    finished_at: datetime | None
    is_history: bool

    @classmethod
    def read(cls, raw: Mapping[str, Any], *, is_history: bool = False) -> Self:
        """Read an item of `Pods` or `HistoryPods`."""
        detail = _detail(raw.get("StatusDetail"))
        return cls(
            pod_id=text_of(raw.get("PodId")),
            pod_uid=text_of(raw.get("PodUid")),
            type=text_of(raw.get("Type")),
            node=text_of(raw.get("NodeName")),
            status=text_of(raw.get("Status")),
            sub_status=text_of(raw.get("SubStatus")),
            exit_code=integer_of(detail.get("ExitCode")),
            reason=text_of(detail.get("Reason")),
            message=text_of(detail.get("Message")),
            started_at=time_of(raw.get("GmtStartTime")),
            finished_at=time_of(raw.get("GmtFinishTime")),
            is_history=is_history,
        )

    @property
    def is_aimaster(self) -> bool:
        """Whether it is DLC's own helper and runs nothing of the user's."""
        return self.type.casefold() == "aimaster"

    @property
    def is_evicted(self) -> bool:
        """Whether DLC says it was preempted."""
        return self.sub_status == EVICTED

    @property
    def has_failed(self) -> bool:
        """Whether it ended badly, by its status, sub-status or exit code."""
        return summary_has_failed(self.summary())

    @property
    def short_id(self) -> str:
        """The id without the job's part: `worker-0`."""
        return short_pod_id(self.pod_id)

    def summary(self) -> dict[str, Any]:
        """Return what an outcome keeps of it."""
        return {
            "pod_id": self.pod_id,
            "type": self.type,
            "status": self.status,
            "sub_status": self.sub_status,
            "exit_code": self.exit_code,
        }


def _detail(value: object) -> dict[str, Any]:
    """Read `StatusDetail`, an object; as a JSON text too, because no reference describes it."""
    if not isinstance(value, str):
        return mapping_of(value)
    try:
        return mapping_of(json.loads(value))
    except (ValueError, RecursionError):
        return {}


def short_pod_id(pod_id: str) -> str:
    """Return a pod's id without the job's part: `worker-0`."""
    return pod_id.partition("-")[2] or pod_id


def summary_has_failed(summary: Mapping[str, Any]) -> bool:
    """Whether the pod of a `Pod.summary()` ended badly, by its status, sub-status or exit code."""
    evicted_or_failed = summary.get("sub_status") == EVICTED or summary.get("status") == "Failed"
    return evicted_or_failed or summary.get("exit_code") not in (None, 0)


def read_pods(pods: object) -> tuple[list[Pod], list[Pod]]:
    """Return the present incarnations and the earlier ones of a job's `Pods`."""
    present, earlier = [], []
    for raw in mappings_of(pods):
        present.append(Pod.read(raw))
        earlier += [Pod.read(past, is_history=True) for past in mappings_of(raw.get("HistoryPods"))]
    return present, earlier
