"""Making the pods of a job, and their next incarnations."""

from __future__ import annotations

import random
from typing import Any

from airflow_provider_pai_spot.emulator import aimaster
from airflow_provider_pai_spot.emulator.behaviours import Behaviours
from airflow_provider_pai_spot.emulator.record import Job, Pod, new_uid


class PodMaker:
    """
    Makes pods with seeded uids, addresses and nodes.

    :param rng: source of those.
    :param behaviours: how pods are named, whether AIMaster's shows.
    :param region: first part of node names.
    """

    def __init__(self, rng: random.Random, behaviours: Behaviours, region: str) -> None:
        self._rng = rng
        self._behaviours = behaviours
        self._region = region

    def prepare(self, job: Job, at: float) -> None:
        """Let a job have its pods: all of them at first, later new incarnations of those that ended."""
        if not job.pods:
            job.pods = [self._make(job, role, index, at) for role, index in self._places(job)]
        else:
            job.pods = [self._again(job, pod, at) if pod.finished_at is not None else pod for pod in job.pods]

    def _places(self, job: Job) -> list[tuple[str, int]]:
        specs: list[dict[str, Any]] = job.body["JobSpecs"]
        places = [
            (str(spec["Type"]).lower(), index) for spec in specs for index in range(int(spec.get("PodCount") or 1))
        ]
        if places == [("worker", 0)]:
            places = [(str(self._behaviours["single_worker_pod_role"]), 0)]
        if aimaster.is_on(job.settings) and self._behaviours["aimaster_pod_listed"]:
            places.append(("aimaster", 0))
        return places

    def _make(self, job: Job, role: str, index: int, at: float) -> Pod:
        pod_id = f"{job.job_id}-{role}-{index}"
        address = f"10.{self._rng.randrange(256)}.{self._rng.randrange(256)}.{self._rng.randrange(1, 255)}"
        node = f"{self._region}.{address}"
        pod = Pod(pod_id, new_uid(self._rng), role, index, at, address, node)
        pod.events.append((at, f"Created pod: {pod_id}"))
        job.say(at, f"Created pod: {pod_id}")
        return pod

    def _again(self, job: Job, former: Pod, at: float) -> Pod:
        pod = self._make(job, former.role, former.index, at)
        pod.history = [former, *former.history]
        former.history = []
        return pod
