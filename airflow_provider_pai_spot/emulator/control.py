"""Playing the cloud: what jobs will do, what is taken from them, what goes wrong, and what time it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from airflow_provider_pai_spot.emulator import wire
from airflow_provider_pai_spot.emulator.faults import Fault, FaultKind
from airflow_provider_pai_spot.emulator.plans import JobPlan
from airflow_provider_pai_spot.emulator.record import Job
from airflow_provider_pai_spot.emulator.service import DlcService

VERBS = (
    "plan",
    "clear_plans",
    "revoke",
    "set_status",
    "set_price",
    "set_stock",
    "replay_prices",
    "replay_stock",
    "fault",
    "clear_faults",
    "switch",
    "advance",
    "now",
    "add_identity",
    "job",
    "jobs",
    "journal",
    "requests",
    "wait_for",
)


class EmulatorControl:
    """
    The control panel of one emulator. `EmulatorClient` has the same verbs for other processes.

    Errors: `errors.DlcError` (404) for a job that does not exist, ValueError for a value that is not allowed,
    RuntimeError for what this emulator's clock cannot do.
    """

    def __init__(self, service: DlcService) -> None:
        self._service = service
        self._simulation = service.simulation

    # --- jobs -----------------------------------------------------------------------------------------

    def plan(
        self,
        plan: JobPlan | Mapping[str, Any],
        match: Mapping[str, Any] | None = None,
        times: int | None = 1,
    ) -> None:
        """
        Let the next job that matches follow a plan. Several plans are used in the order they were made.

        :param plan: what the job does.
        :param match: `{"display_name": substring, "tags": {key: value}}`; None matches every job.
        :param times: for how many jobs; None: for every one from now on.
        """
        ready = plan if isinstance(plan, JobPlan) else JobPlan.from_dict(plan)
        with self._service.present():
            self._service.plans.add(ready, match, times)

    def clear_plans(self) -> None:
        """Forget every plan but the default; jobs that follow one go on."""
        with self._service.present():
            self._service.plans.clear()

    def revoke(self, job_id: str, nodes: int | Sequence[str] | None = None, cause: str = "taken back by hand") -> None:
        """
        Take machines back from a job.

        :param nodes: how many, or the pod ids on them; None: all.
        Raises ValueError if the job holds none now, or has no such pod.
        """
        with self._service.present():
            job = self._service.find(job_id)
            self._simulation.revoke(job, _pod_ids(job, nodes), cause)

    def set_status(
        self,
        job_id: str,
        status: str,
        reason_code: str | None = None,
        reason_message: str | None = None,
    ) -> None:
        """
        Put a job into any status, also one DLC does not have. From one it has the job goes on as usual.

        :param reason_code: None: the one that goes with the status.
        :param reason_message: None: the one that goes with the status.
        """
        with self._service.present():
            self._simulation.put(self._service.find(job_id), status, reason_code, reason_message)

    def job(self, job_id: str) -> dict[str, Any]:
        """Return a job as GetJob shows it."""
        return self._service.get_job(job_id)

    def jobs(self) -> list[dict[str, Any]]:
        """Return all jobs as GetJob shows them, oldest first, whoever owns them and however old they are."""
        with self._service.present() as now:
            user_id = self._service.identities.user_id
            behaviours = self._service.behaviours
            return [wire.job_detail(job, user_id(job.owner), now, behaviours) for job in self._simulation.jobs]

    def wait_for(self, job_id: str, status: str | Iterable[str], timeout: float = 10.0) -> str:
        """
        Wait until a job has one of these statuses, or had one since it was created, and return its status.

        :param timeout: real seconds.
        Raises TimeoutError. With a manual clock time must be moved by somebody else meanwhile.
        """
        wanted = {status} if isinstance(status, str) else set(status)
        job = self._service.find(job_id)
        timeline = self._simulation.timeline
        if not timeline.wait_for(lambda: any(entry.status in wanted for entry in job.history), timeout):
            raise TimeoutError(f"Job {job_id} is {job.status!r} after {timeout} s, not {' or '.join(sorted(wanted))}.")
        return job.status

    # --- market ---------------------------------------------------------------------------------------

    def set_price(self, instance_type: str, discount: float) -> float:
        """Let a type cost `discount` of its list price from now on; returns it within 0.1 and 1.0."""
        with self._service.present():
            return self._simulation.trading.set_price(instance_type, discount)

    def set_stock(self, instance_type: str, machines: int | None) -> None:
        """Let that many spot machines of a type exist, rented ones included; None: without end."""
        with self._service.present():
            self._simulation.trading.set_stock(instance_type, machines)

    def replay_prices(self, instance_type: str, path: Iterable[tuple[float, float]]) -> None:
        """
        Let prices follow a recorded path.

        :param path: (emulated seconds from now, fraction of list price) each.
        """
        with self._service.present():
            set_price = self._simulation.trading.set_price
            for after, discount in path:
                self._simulation.timeline.after(after, partial(set_price, instance_type, discount))

    def replay_stock(self, instance_type: str, counts: Iterable[int], gap_seconds: float) -> None:
        """
        Let the stock follow a recorded trace, one count every `gap_seconds` from now on.

        :param counts: how many machines exist, rented ones included.
        """
        with self._service.present():
            former: int | None = -1
            for index, count in enumerate(counts):
                if count != former:
                    stock = partial(self._simulation.trading.set_stock, instance_type, count)
                    self._simulation.timeline.after(index * gap_seconds, stock)
                former = count

    # --- trouble --------------------------------------------------------------------------------------

    def fault(
        self,
        operation: str,
        kind: str,
        *,
        times: int | None = 1,
        probability: float = 1.0,
        seconds: float = 0.0,
        status: int | None = None,
        code: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        """Let something go wrong; the parameters are those of `faults.Fault`."""
        self._service.faults.add(
            Fault(
                operation=operation,
                kind=FaultKind(kind),
                times=times,
                probability=probability,
                seconds=seconds,
                status=status,
                code=code,
                retry_after=retry_after,
            )
        )

    def clear_faults(self) -> None:
        """Let nothing go wrong any more."""
        self._service.faults.clear()

    def switch(self, behaviour: str, value: Any) -> None:
        """Let a behaviour that is not documented have another value from now on (see `behaviours`)."""
        with self._service.present():
            self._service.behaviours.switch(behaviour, value)

    # --- time, people, records ------------------------------------------------------------------------

    def advance(self, seconds: float) -> float:
        """Let `seconds` pass at once and return the time. Raises RuntimeError unless the clock is manual."""
        self._simulation.timeline.advance(seconds)
        return self._simulation.timeline.now

    def now(self) -> float:
        """Return the emulated time in seconds since the epoch."""
        return self._simulation.timeline.clock.now()

    def add_identity(self, access_key_id: str | None = None, access_key_secret: str | None = None) -> dict[str, str]:
        """Add another RAM identity; returns access_key_id, access_key_secret and user_id."""
        identity = self._service.identities.add(access_key_id, access_key_secret)
        return {
            "access_key_id": identity.access_key_id,
            "access_key_secret": identity.access_key_secret,
            "user_id": identity.user_id,
        }

    def journal(self, kind: str | None = None, job_id: str | None = None) -> list[dict[str, Any]]:
        """Return what happened, oldest first: `at`, `kind`, `job_id`, `detail` each (see `journal.Entry`)."""
        with self._service.present():
            return [entry.to_dict() for entry in self._simulation.journal.entries(kind, job_id)]

    def requests(self) -> dict[str, int]:
        """Return how often each operation was called, refused and dropped calls included."""
        return dict(self._simulation.journal.requests)


def _pod_ids(job: Job, nodes: int | Sequence[str] | None) -> list[str] | None:
    if nodes is None:
        return None
    ids = [pod.pod_id for pod in job.training_pods()]
    if isinstance(nodes, int):
        if not 0 < nodes <= len(ids):
            raise ValueError(f"nodes is {nodes!r}: job {job.job_id} has {len(ids)} pods.")
        return ids[:nodes]
    if unknown := sorted(set(nodes) - set(ids)):
        raise ValueError(f"Job {job.job_id} has no pod {', '.join(unknown)}; it has {', '.join(ids)}.")
    return list(nodes)
