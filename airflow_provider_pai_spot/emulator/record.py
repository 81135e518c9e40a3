"""A job and its pods as the service remembers them. Times are emulated seconds since the epoch."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_pai_spot.emulator.lifecycle import HOLDING, TERMINAL
from airflow_provider_pai_spot.emulator.market import Bid, bid_of
from airflow_provider_pai_spot.emulator.plans import JobPlan
from airflow_provider_pai_spot.emulator.specs import is_lingjun

_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(slots=True)
class Transition:
    """One entry of StatusHistory; `ended_at` is None while it lasts."""

    status: str
    started_at: float
    ended_at: float | None = None
    reason_code: str = ""
    reason_message: str = ""
    shown: dict[str, str] | None = None
    """How it was rendered once it had ended: it will not change, and every poll asks for it."""


@dataclass(slots=True)
class Pod:
    """One incarnation of a pod."""

    pod_id: str
    uid: str
    role: str
    index: int
    created_at: float
    address: str
    node: str
    status: str = "Pending"
    sub_status: str = "Normal"
    exit_code: int | None = None
    exit_reason: str = ""
    started_at: float | None = None
    finished_at: float | None = None
    history: list[Pod] = field(default_factory=list)
    lines: list[tuple[float, str]] = field(default_factory=list)
    events: list[tuple[float, str]] = field(default_factory=list)

    @property
    def is_aimaster(self) -> bool:
        """Whether this is AIMaster's own pod rather than one that trains."""
        return self.role == "aimaster"

    def start(self, at: float) -> None:
        """Let its container run."""
        self.status, self.started_at = "Running", at
        self.events.append((at, f"Started container of pod: {self.pod_id}"))

    def end(self, at: float, exit_code: int, *, evicted: bool, reason: str = "") -> None:
        """Let its container end; nothing happens to one that ended already."""
        if self.finished_at is not None:
            return
        self.status = "Succeeded" if exit_code == 0 and not evicted else "Failed"
        self.sub_status = "Evicted" if evicted else "Normal"
        self.exit_code, self.exit_reason, self.finished_at = exit_code, reason, at
        self.events.append((at, f"{'Evicted' if evicted else 'Finished'} pod: {self.pod_id}"))


@dataclass(slots=True)
class SpotRole:
    """The part of a job that bids: one entry of JobSpecs with a SpotSpec."""

    instance_type: str
    count: int
    bid: Bid


@dataclass(slots=True)
class Restart:
    """One entry of RestartRecord."""

    number: int
    at: float
    phase: str
    pods: tuple[str, ...]
    level: str
    reason: str
    ended_at: float | None = None


@dataclass(slots=True)
class Job:
    """A job as the service remembers it."""

    job_id: str
    body: dict[str, Any]
    owner: str
    workspace_id: str
    created_at: float
    visible_at: float
    plan: JobPlan
    tags: dict[str, str]
    spot_roles: list[SpotRole]
    max_restarts: int = 0
    restart_alone: bool = False
    status: str = ""
    sub_status: str = ""
    reason_code: str = ""
    reason_message: str = ""
    modified_at: float = 0.0
    submitted_at: float | None = None
    running_at: float | None = None
    finished_at: float | None = None
    history: list[Transition] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    events: list[tuple[float, str]] = field(default_factory=list)
    restarts: list[Restart] = field(default_factory=list)
    revocations: int = 0
    deleted: bool = False
    epoch: int = 0
    late_answers: dict[str, float] = field(default_factory=dict)
    """Those of the plan that have not been given yet."""

    @property
    def display_name(self) -> str:
        """DLC's DisplayName."""
        return str(self.body["DisplayName"])

    @property
    def job_type(self) -> str:
        """DLC's JobType."""
        return str(self.body["JobType"])

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the request."""
        return self.body.get("Settings") or {}

    @property
    def lingjun(self) -> bool:
        """Whether it runs on Lingjun machines."""
        return any(is_lingjun(str(spec.get("EcsSpec") or "")) for spec in self.body["JobSpecs"])

    @property
    def terminal(self) -> bool:
        """Whether nothing will happen to it any more."""
        return self.status in TERMINAL

    @property
    def holding(self) -> bool:
        """Whether it holds machines."""
        return self.status in HOLDING

    def training_pods(self) -> Iterator[Pod]:
        """Yield the pods that train, AIMaster's left out."""
        return (pod for pod in self.pods if not pod.is_aimaster)

    def find_pod(self, pod_id: str, uid: str | None = None) -> Pod | None:
        """Return a pod by its id, or a former incarnation by its uid too."""
        for pod in self.pods:
            if pod.pod_id != pod_id:
                continue
            incarnations = [pod, *pod.history]
            return next((one for one in incarnations if uid in (None, "", one.uid)), None)
        return None

    def say(self, at: float, text: str) -> None:
        """Add a job event."""
        self.events.append((at, text))


def spot_roles_of(body: dict[str, Any]) -> list[SpotRole]:
    """Return the roles of a CreateJob body that bid."""
    roles = []
    for spec in body["JobSpecs"]:
        bid = bid_of(spec)
        if bid is not None:
            roles.append(SpotRole(_type_of(spec), int(spec.get("PodCount") or 1), bid))
    return roles


def _type_of(spec: dict[str, Any]) -> str:
    """The type a role runs on: its own, or the first of its candidates (assumed: DLC picks one itself)."""
    candidates = [candidate.get("InstanceType") for candidate in spec.get("ElasticSpotSpecs") or [] if candidate]
    return str(spec.get("EcsSpec") or next(filter(None, candidates), ""))


def new_job_id(rng: random.Random) -> str:
    """Return `dlc` and 13 base-36 characters."""
    return "dlc" + "".join(rng.choices(_BASE36, k=13))


def new_uid(rng: random.Random) -> str:
    """Return a pod uid."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))
