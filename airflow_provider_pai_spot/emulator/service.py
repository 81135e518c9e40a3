"""What each DLC operation does. Takes parsed requests, returns answers as dicts, raises `errors.DlcError`."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from airflow_provider_pai_spot.emulator import aimaster, lines, listing, wire
from airflow_provider_pai_spot.emulator.behaviours import Behaviours
from airflow_provider_pai_spot.emulator.errors import DlcError, invalid_parameter, job_not_found, pod_not_found
from airflow_provider_pai_spot.emulator.faults import FaultBook, FaultKind
from airflow_provider_pai_spot.emulator.identities import Identities
from airflow_provider_pai_spot.emulator.lifecycle import RESERVING, WAITING, Status
from airflow_provider_pai_spot.emulator.plans import PlanBook
from airflow_provider_pai_spot.emulator.record import Job, Pod, new_job_id, spot_roles_of
from airflow_provider_pai_spot.emulator.simulation import Simulation
from airflow_provider_pai_spot.emulator.specs import INSTANCE_TYPES, InstanceType
from airflow_provider_pai_spot.emulator.spot_terms import treated
from airflow_provider_pai_spot.emulator.traits import stoppable
from airflow_provider_pai_spot.emulator.validation import check_create_job, check_tags

Answer = dict[str, Any]
Query = Mapping[str, str]

_DEFAULT_LINES = 2000
_MAX_LINES = 10_000
_MAX_TAGGED = 50
_PRIORITIES = range(1, 10)


class DlcService:
    """
    DLC's operations on one simulation.

    :param simulation: the jobs and the market.
    :param plans: what created jobs will do.
    :param faults: slow stops and list lag.
    :param identities: access keys and users.
    :param rng: seeded source of job ids.
    """

    def __init__(
        self,
        simulation: Simulation,
        plans: PlanBook,
        faults: FaultBook,
        identities: Identities,
        rng: random.Random,
    ) -> None:
        self.simulation = simulation
        self.plans = plans
        self.faults = faults
        self.identities = identities
        self._rng = rng

    @property
    def behaviours(self) -> Behaviours:
        """The table with its switches."""
        return self.simulation.behaviours

    @contextmanager
    def present(self) -> Iterator[float]:
        """Hold the lock with everything done that is due; yields the emulated time."""
        timeline = self.simulation.timeline
        with timeline.changed:
            timeline.catch_up()
            yield timeline.now
            timeline.changed.notify_all()

    # --- jobs -----------------------------------------------------------------------------------------

    def create_job(self, body: Any, caller: str) -> Answer:
        """Check the body and let the job begin."""
        if not isinstance(body, dict):
            raise invalid_parameter("The body must be a JSON object.")
        check_create_job(body, self.behaviours)
        with self.present() as now:
            job = self._new_job(treated(copy.deepcopy(body), self.behaviours["spot_terms"]), caller, now)
            self.simulation.add(job)
            return {"JobId": job.job_id}

    def get_job(self, job_id: str) -> Answer:
        """Return a job as GetJob shows it."""
        with self.present() as now:
            job = self.find(job_id)
            return wire.job_detail(job, self.identities.user_id(job.owner), now, self.behaviours)

    def lateness(self, operation: str, job_id: str) -> float:
        """Return how many real seconds this answer about a job takes by its plan, and use that up."""
        with self.present():
            job = self.simulation.jobs.get(job_id)
            return job.late_answers.pop(operation, 0.0) if job is not None else 0.0

    def list_jobs(self, query: Query, caller: str) -> Answer:
        """Return a page of the jobs the query means."""
        behaviours = self.behaviours
        with self.present() as now:
            jobs = listing.select(self.simulation.jobs, query, caller, now, behaviours)
            shown = listing.page(jobs, query, behaviours["list_page_size"])
            user_id = self.identities.user_id
            items = [wire.job_item(job, user_id(job.owner), now, behaviours) for job in shown]
            return {"Jobs": items, "TotalCount": len(jobs)}

    def stop_job(self, job_id: str) -> Answer:
        """Stop a job that is not finished."""
        with self.present():
            job = self.find(job_id)
            if job.status == Status.STOPPING and self.behaviours["stop_twice_accepted"]:
                return {"JobId": job_id}
            if not stoppable(job):
                message = f"Job can't be stopped, because it is {job.status}"
                raise DlcError(400, self.behaviours["stop_finished_code"], message)
            self.simulation.stop(job, self.faults.take_within(FaultKind.SLOW_STOP))
            return {"JobId": job_id}

    def delete_job(self, job_id: str) -> Answer:
        """Delete a finished job."""
        with self.present() as now:
            job = self.find(job_id)
            if not job.terminal:
                raise invalid_parameter(f"Job can't be deleted, because it is {job.status}")
            job.deleted = True
            self.simulation.jobs.remove(job)
            self.simulation.journal.write(now, "deleted", job_id)
            return {"JobId": job_id}

    def update_job(self, job_id: str, body: Any) -> Answer:
        """Change the few things of a job that can be changed; a priority is accepted and ignored."""
        if not isinstance(body, dict):
            raise invalid_parameter("The body must be a JSON object.")
        with self.present() as now:
            job = self.find(job_id)
            if job.terminal or job.status in RESERVING:
                raise invalid_parameter(f"Job can't be updated, because it is {job.status}")
            _check_update(job, body)
            for key in ("Description", "Accessibility"):
                if body.get(key):
                    job.body[key] = body[key]
            job.modified_at = now
            return {"JobId": job_id}

    # --- logs and events ------------------------------------------------------------------------------

    def job_events(self, job_id: str, query: Query) -> Answer:
        """Return the events of a job."""
        with self.present() as now:
            job = self.find(job_id)
            return {"JobId": job_id, "Events": self._events(job.events, query, now)}

    def pod_events(self, job_id: str, pod_id: str, query: Query) -> Answer:
        """Return the events of a pod, or of one of its incarnations."""
        with self.present() as now:
            pod = self._pod(self.find(job_id), pod_id, query)
            events = self._events(pod.events, query, now)
            return {"JobId": job_id, "PodId": pod_id, "PodUid": pod.uid, "Events": events}

    def pod_logs(self, job_id: str, pod_id: str, query: Query) -> Answer:
        """Return what a pod logged; without a cursor, as DLC does."""
        most = listing.whole_number(query, "MaxLines", _DEFAULT_LINES, 1, _MAX_LINES)
        with self.present() as now:
            job = self.find(job_id)
            pod = self._pod(job, pod_id, query)
            every = pod.lines if self.simulation.runner else lines.planned_lines(pod, job.plan, now)
            shown = [line for line in every if line[0] <= now - float(self.behaviours["log_lag_seconds"])]
            window = lines.within(shown, query, now, end_belongs=self.behaviours["log_end_belongs"])
            kept = window[-most:] if self.behaviours["log_window"] == "tail" else window[:most]
            return {
                "JobId": job_id,
                "PodId": pod_id,
                "PodUid": pod.uid,
                "Logs": lines.rendered(kept, self.behaviours["log_utc_offset_hours"], "  "),
            }

    # --- tags and types -------------------------------------------------------------------------------

    def tag_resources(self, body: Any) -> Answer:
        """Attach tags to jobs."""
        if not isinstance(body, dict) or body.get("ResourceType") != "Job":
            raise invalid_parameter("ResourceType must be Job.")
        tags = {str(tag.get("Key")): tag.get("Value") or "" for tag in body.get("Tag") or []}
        check_tags(tags)
        self._retag(body.get("ResourceId"), tags, ())
        return {}

    def untag_resources(self, job_ids: Any, keys: Any, every: bool) -> Answer:
        """Take tags off jobs: those of `keys`, or all."""
        with self.present():
            for job in self._tagged(job_ids):
                self._write_tags(job, {}, tuple(job.tags) if every else tuple(keys or ()))
        return {}

    def list_ecs_specs(self, query: Query) -> Answer:
        """Return instance types with spot price and stock."""
        if query.get("SortBy"):
            raise invalid_parameter("SortBy is not supported.")
        size = listing.whole_number(query, "PageSize", 10, 1, 100)
        number = listing.whole_number(query, "PageNumber", 1, 1, 1000)
        with self.present() as now:
            rows = [row for row in INSTANCE_TYPES.values() if _wanted(row, query)]
            shown = [self._spec(row, now) for row in rows[(number - 1) * size : number * size]]
            return {"EcsSpecs": shown, "TotalCount": len(rows)}

    def diagnose_queue(self, quota_id: str, job_id: str) -> Answer:
        """Return why a job waits for its quota, as PAI Studio does; only of a job that waits for one."""
        with self.present():
            job = self.find(job_id)
            if job.body.get("ResourceId") != quota_id or job.status not in {Status.CREATING, *WAITING}:
                raise invalid_parameter(f"Job {job_id} does not queue in quota {quota_id}.")
            return {"Diagnosis": wire.quota_diagnosis(job, self.behaviours["quota_check_failing"])}

    # --- parts ----------------------------------------------------------------------------------------

    def find(self, job_id: str) -> Job:
        """Return a job. Raises DlcError (404) if there is none."""
        job = self.simulation.jobs.get(job_id)
        if job is None:
            raise job_not_found(job_id)
        return job

    def _new_job(self, body: dict[str, Any], caller: str, now: float) -> Job:
        settings = body.get("Settings") or {}
        tags = dict(settings.get("Tags") or {})
        lag = float(self.behaviours["list_lag_seconds"]) + self.faults.take_within(FaultKind.LIST_LAG)
        plan = self.plans.take(str(body["DisplayName"]), tags)
        job = Job(
            job_id=self._unused_id(),
            body=body,
            owner=caller,
            workspace_id=str(body.get("WorkspaceId") or self.behaviours["default_workspace_id"]),
            created_at=now,
            visible_at=now + lag,
            plan=plan,
            tags=tags,
            spot_roles=spot_roles_of(body),
            late_answers=dict(plan.late_answers),
        )
        if job.lingjun or self.behaviours["aimaster_restarts_general_computing"]:
            default = int(self.behaviours["aimaster_default_max_restarts"])
            job.max_restarts = aimaster.restarts_allowed(settings, default)
            job.restart_alone = aimaster.restarts_pods_alone(settings)
        return job

    def _unused_id(self) -> str:
        while (job_id := new_job_id(self._rng)) in self.simulation.jobs:
            pass
        return job_id

    def _pod(self, job: Job, pod_id: str, query: Query) -> Pod:
        pod = job.find_pod(pod_id, query.get("PodUid"))
        if pod is None:
            raise pod_not_found(job.job_id, pod_id)
        return pod

    def _events(self, events: list[lines.Line], query: Query, now: float) -> list[str]:
        most = listing.whole_number(query, "MaxEventsNum", _DEFAULT_LINES, 1, _MAX_LINES)
        window = lines.within(events, query, now)[-most:]
        return lines.rendered(window, self.behaviours["event_utc_offset_hours"], " ")

    def _retag(self, job_ids: Any, tags: Mapping[str, str], dropped: tuple[str, ...]) -> None:
        with self.present():
            for job in self._tagged(job_ids):
                self._write_tags(job, tags, dropped)

    def _tagged(self, job_ids: Any) -> list[Job]:
        if not isinstance(job_ids, list) or not 0 < len(job_ids) <= _MAX_TAGGED:
            raise invalid_parameter("ResourceId must list 1 to 50 jobs.")
        return [self.find(str(job_id)) for job_id in job_ids]

    def _write_tags(self, job: Job, tags: Mapping[str, str], dropped: tuple[str, ...]) -> None:
        if self.behaviours["tag_resources_share_settings_tags"]:
            self.simulation.jobs.retag(job, tags, dropped)
        now = self.simulation.timeline.now
        self.simulation.journal.write(now, "tagged", job.job_id, tags=dict(tags), dropped=list(dropped))

    def _spec(self, row: InstanceType, now: float) -> Answer:
        simulation = self.simulation
        free = simulation.capacity.free(row.name)
        return {
            "InstanceType": row.name,
            "ResourceType": row.resource_type,
            "AcceleratorType": "GPU" if row.gpu else "CPU",
            "Cpu": row.cpu,
            "Memory": row.memory,
            "Gpu": row.gpu,
            "GpuType": row.gpu_type,
            "GpuMemory": row.gpu_memory,
            "IsAvailable": True,
            # Spelled as in the reference's example: one element that holds a list as text.
            "PaymentTypes": ['["Spot","PostPaid"]'],
            "SpotStockStatus": "NoStock" if free == 0 else "WithStock",
            "NonProtectSpotDiscount": round(simulation.market.discount(row.name, now), 3),
        }


def _check_update(job: Job, body: Mapping[str, Any]) -> None:
    priority = body.get("Priority")
    if priority is not None and priority not in _PRIORITIES:
        raise invalid_parameter(f"Priority {priority!r} is invalid: 1 to 9.")
    if body.get("Accessibility") == "PRIVATE" and job.body.get("Accessibility") == "PUBLIC":
        raise invalid_parameter("Accessibility can be widened only.")


def _wanted(row: InstanceType, query: Query) -> bool:
    names = [name for name in (query.get("InstanceTypes") or "").split(",") if name]
    kind = query.get("AcceleratorType") or ""
    resource_type = query.get("ResourceType") or ""
    return (
        (not names or row.name in names)
        and kind in ("", "GPU" if row.gpu else "CPU")
        and resource_type in ("", row.resource_type)
    )
