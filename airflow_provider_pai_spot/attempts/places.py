"""Where a task instance's jobs live, which is not always where the next one would be submitted to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from airflow.sdk.exceptions import AirflowException

from airflow_provider_pai_spot.exceptions import PaiDlcError, PaiDlcNotFound

if TYPE_CHECKING:
    from airflow_provider_pai_spot.attempts.ledger import AttemptLedger
    from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook


class Place(NamedTuple):
    """
    Where a job was sent to.

    :param region_id: '' where only an endpoint is known.
    :param endpoint: '' where the connection names none, and the region's own is meant.
    :param workspace_id: '' for the caller's default workspace.
    """

    conn_id: str = ""
    region_id: str = ""
    endpoint: str = ""
    workspace_id: str = ""

    @classmethod
    def read(cls, value: Any) -> Self:
        """Read what is stored; an older release stored none. TypeError for anything else."""
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise TypeError("place")
        place = cls(*value)
        if not all(isinstance(part, str) for part in place):
            raise TypeError("place")
        return place

    @classmethod
    def of(cls, hook: PaiDlcHook, workspace_id: str | None = None) -> Self:
        """
        Return where a hook's jobs are sent to.

        :param workspace_id: what the request names, instead of the hook's.
        """
        settings = hook.settings
        return cls(hook.pai_dlc_conn_id, settings.region_id, settings.endpoint, workspace_id or settings.workspace_id)

    @property
    def is_known(self) -> bool:
        """Whether it was stored at all."""
        return bool(self.conn_id)

    def is_other_region_than(self, other: Place) -> bool:
        """Whether both are known to be of different regions."""
        return bool(self.region_id and other.region_id) and self.region_id != other.region_id

    def has_same_jobs_as(self, other: Place) -> bool:
        """Whether a job id means the same in both; an endpoint may change within a region, to its VPC's and back."""
        if self.conn_id != other.conn_id or self.is_other_region_than(other):
            return False
        return self.endpoint == other.endpoint or bool(self.region_id and other.region_id)

    def __str__(self) -> str:
        where = f"region {self.region_id}" if self.region_id else f"endpoint {self.endpoint}"
        workspace = f", workspace {self.workspace_id}" if self.workspace_id else ""
        return f"{where}{workspace}, connection {self.conn_id!r}"


class PlaceUnreachable(PaiDlcError):
    """Something was sent to a place that cannot be reached now."""


NOWHERE = Place()
"""Of attempts that an older release stored."""


def hook_at(place: Place) -> PaiDlcHook:
    """
    Return a hook that speaks to a place, with the credentials that its connection has now.

    Never to a stored endpoint: whoever may edit what is stored must not name the host that signed requests go to.

    :raises AirflowException: the connection is gone, or wrong, or speaks to another endpoint now.
    """
    from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

    hook = PaiDlcHook(place.conn_id, place.region_id or None, place.workspace_id or None)
    endpoint = hook.settings.endpoint
    leads_there = bool(place.region_id) and (not endpoint or f".{place.region_id}." in endpoint)
    if endpoint != place.endpoint and not leads_there:
        raise PaiDlcError(f"the connection speaks to {endpoint or hook.region_id} now")
    return hook


class CallsByPlace:
    """
    The calls of a hook, of which those about one job go to where the ledger says that this job lives.

    :param hook: for new jobs, lists, and jobs whose place is not known.
    :param open_hook: opens a hook for another place.
    """

    def __init__(
        self, hook: PaiDlcHook, ledger: AttemptLedger, open_hook: Callable[[Place], PaiDlcHook] = hook_at
    ) -> None:
        self._own = hook
        self.ledger = ledger
        self._open_hook = open_hook
        self._opened: dict[Place, PaiDlcHook] = {}

    def place_elsewhere(self, job_id: str) -> Place | None:
        """Return where a job lives, None if that is where the next one would be submitted to."""
        attempt = self.ledger.find(job_id)
        if attempt is None or not attempt.place.is_known or attempt.place.has_same_jobs_as(Place.of(self._own)):
            return None
        return None if self._opened.get(attempt.place) is self._own else attempt.place

    def at(self, place: Place, what: str) -> PaiDlcHook:
        """
        Return a hook for a place.

        :param what: what was sent there, for the error's words.
        :raises PlaceUnreachable: it cannot be had.
        """
        if place.has_same_jobs_as(Place.of(self._own)):
            return self._own
        if place not in self._opened:
            try:
                self._opened[place] = self._open_hook(place)
            except AirflowException as error:
                raise _unreachable(what, place, error) from None
        return self._opened[place]

    def _of(self, job_id: str) -> PaiDlcHook:
        """A connection may have got another name: where the old one is gone, the job may be known here."""
        place = self.place_elsewhere(job_id)
        if place is None:
            return self._own
        try:
            return self.at(place, job_id)
        except PlaceUnreachable as error:
            return self._own_if_known(job_id, place, error)

    def _own_if_known(self, job_id: str, place: Place, error: PlaceUnreachable) -> PaiDlcHook:
        try:
            self._own.get_job(job_id)
        except PaiDlcNotFound:
            raise error from None
        return self._opened.setdefault(place, self._own)

    def create_job(self, body: Mapping[str, Any]) -> str:
        """As the hook's."""
        return self._own.create_job(body)

    def list_jobs(self, **query: Any) -> list[dict[str, Any]]:
        """As the hook's."""
        return self._own.list_jobs(**query)

    def list_ecs_specs(self, instance_types: Sequence[str], **options: Any) -> list[dict[str, Any]]:
        """As the hook's."""
        return self._own.list_ecs_specs(instance_types, **options)

    def get_job(self, job_id: str) -> dict[str, Any]:
        """As the hook's, where the job lives."""
        return self._of(job_id).get_job(job_id)

    def stop_job(self, job_id: str) -> bool:
        """As the hook's, where the job lives."""
        return self._of(job_id).stop_job(job_id)

    def get_job_events(self, job_id: str) -> list[str]:
        """As the hook's, where the job lives."""
        return self._of(job_id).get_job_events(job_id)

    def get_pod_events(self, job_id: str, pod_id: str) -> list[str]:
        """As the hook's, where the job lives."""
        return self._of(job_id).get_pod_events(job_id, pod_id)

    def get_pod_logs(self, job_id: str, pod_id: str, **options: Any) -> list[str]:
        """As the hook's, where the job lives."""
        return self._of(job_id).get_pod_logs(job_id, pod_id, **options)

    def get_quota_workload_diagnosis(self, quota_id: str, job_id: str) -> dict[str, Any]:
        """As the hook's, where the job lives."""
        return self._of(job_id).get_quota_workload_diagnosis(quota_id, job_id)


def _unreachable(what: str, place: Place, error: Exception) -> PlaceUnreachable:
    return PlaceUnreachable(
        f"{what} was sent to {place}, which cannot be reached now ({error}). It may run and be billed, so nothing is "
        "submitted in its place. Let the connection speak to that place again; or stop the job there, delete the key "
        "pai_spot in this task instance's Storage tab, and clear the task."
    )
