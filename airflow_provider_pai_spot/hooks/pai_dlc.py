"""Talk to PAI DLC through an Airflow connection of type `pai_dlc`."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from airflow.sdk import BaseHook

from airflow_provider_pai_spot.clock import SYSTEM_CLOCK, Clock
from airflow_provider_pai_spot.dlc.status import Phase, phase_of
from airflow_provider_pai_spot.dlc.wire import mapping_of
from airflow_provider_pai_spot.exceptions import (
    PaiDlcError,
    PaiDlcNotFound,
    PaiDlcRefused,
    PaiDlcThrottled,
)
from airflow_provider_pai_spot.hooks import dlc_client, listing
from airflow_provider_pai_spot.hooks.connection import (
    ConnectionSettings,
    describe,
    parse_connection,
)
from airflow_provider_pai_spot.hooks.errors import unreadable
from airflow_provider_pai_spot.hooks.retrying import RetryRules, with_retries
from airflow_provider_pai_spot.settings import DEFAULT_CONN_ID, SHORTEST_MASKED_SECRET

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_pai_spot.hooks.connection import ConnectionLike

MAX_PAGES = 50
LOOK_BACK = timedelta(days=30)
"""How far ListJobs looks back when the caller names no start; DLC's default of 7 days hides longer waits."""
_FORBIDDEN = 403
_CANNOT_BE_STOPPED = (400, 409)


class PaiDlcHook(BaseHook):
    """
    Interact with PAI DLC.

    Nothing happens before first use: no connection look-up, no SDK import. Credentials, first match wins:

    1. `credential_source` of the connection, if it names one: `access_key`, `rrsa`, `ecs_ram_role`,
       `profile`, `uri`;
    2. the connection's AccessKey pair (with a security token: STS). Half a pair is an error, not a reason
       to go on;
    3. the SDK's default chain: environment variables, RRSA, CLI profile, profile file, ECS RAM role, URI.

    A `role_arn` in the connection is assumed with what was found.

    Reads, and StopJob, are repeated after throttling, 5xx and broken connections; CreateJob and DeleteJob
    are sent exactly once. Every method raises `PaiDlcError` or one of its children, none of which carries
    the request.

    :param pai_dlc_conn_id: id of the connection.
    :param region_id: DLC's region, instead of the connection's.
    :param workspace_id: PAI workspace, instead of the connection's.
    :param retry_rules: how reads are repeated; somebody who polls anyway may pass `RetryRules(attempts=1)`.
    :param clock: replaced in tests.
    """

    conn_name_attr = "pai_dlc_conn_id"
    default_conn_name = DEFAULT_CONN_ID
    conn_type = "pai_dlc"
    hook_name = "Alibaba Cloud PAI DLC"

    def __init__(
        self,
        pai_dlc_conn_id: str = default_conn_name,
        region_id: str | None = None,
        workspace_id: str | None = None,
        *,
        retry_rules: RetryRules | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        super().__init__()
        self.pai_dlc_conn_id = pai_dlc_conn_id
        self._region_id = region_id
        self._workspace_id = workspace_id
        self._retry_rules = retry_rules or RetryRules()
        self._clock = clock
        self._settings: ConnectionSettings | None = None

    @classmethod
    def from_connection(
        cls,
        connection: ConnectionLike,
        *,
        region_id: str | None = None,
        workspace_id: str | None = None,
        retry_rules: RetryRules | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> Self:
        """
        Return a hook for a connection that is at hand; the triggerer fetches its own with `aget_connection`.

        :raises PaiDlcError: the connection cannot be right.
        """
        hook = cls(connection.conn_id, region_id, workspace_id, retry_rules=retry_rules, clock=clock)
        hook._settings = parse_connection(connection, region_id=region_id, workspace_id=workspace_id)
        return hook

    def in_workspace(self, workspace_id: str) -> Self:
        """Return a hook like this one, for another workspace."""
        settings = self.settings
        hook = type(self)(
            self.pai_dlc_conn_id, self._region_id, workspace_id, retry_rules=self._retry_rules, clock=self._clock
        )
        hook._settings = replace(settings, workspace_id=workspace_id)  # noqa: SLF001 - of the same class
        return hook

    # --- what the connection says -----------------------------------------------------------------

    @property
    def region_id(self) -> str:
        """DLC's region, '' where only an endpoint is known."""
        return self.settings.region_id

    @property
    def workspace_id(self) -> str:
        """PAI workspace, '' for the caller's default workspace."""
        return self.settings.workspace_id

    @property
    def endpoint(self) -> str:
        """`host[:port]` that requests go to. Loads the SDK, which knows the endpoints of its regions."""
        return self._client.endpoint

    @property
    def console_base_url(self) -> str:
        """Where the PAI console is, for links."""
        return self.settings.console_base_url

    @property
    def namespace(self) -> str:
        """What tells this Airflow installation's jobs from another's, '' if the connection does not say."""
        return self.settings.namespace

    @property
    def fingerprint(self) -> str:
        """Equal for two hooks of this process exactly if they speak to the same DLC as the same caller."""
        return dlc_client.fingerprint(self.settings)

    @property
    def caller_fingerprint(self) -> str:
        """The same whichever workspace is asked about: what DLC allows, it allows a caller."""
        return dlc_client.fingerprint(replace(self.settings, workspace_id=""))

    @property
    def settings(self) -> ConnectionSettings:
        """
        The checked connection; looked up on first use.

        :raises AirflowNotFoundException: there is no such connection.
        :raises PaiDlcError: it cannot be right.
        """
        if self._settings is None:
            connection = self.get_connection(self.pai_dlc_conn_id)
            self._settings = parse_connection(connection, region_id=self._region_id, workspace_id=self._workspace_id)
            _mask(self._settings)
        return self._settings

    def get_conn(self) -> Any:
        """Return the SDK's own client, for operations missing here; its exceptions carry secrets."""
        return self._client.sdk_client

    # --- jobs -------------------------------------------------------------------------------------

    def create_job(self, body: Mapping[str, Any]) -> str:
        """
        Submit a job, with exactly one request, and return its id.

        :param body: CreateJob's body in DLC's keys; the hook's workspace is added if it names none.
        :raises PaiDlcUnavailable: look at `ambiguous`: DLC may have created the job all the same.
        """
        own = {} if body.get("WorkspaceId") or not self.workspace_id else {"WorkspaceId": self.workspace_id}
        answer = self._client.call(dlc_client.CREATE_JOB, body={**body, **own})
        job_id = answer.get("JobId")
        if not isinstance(job_id, str) or not job_id:
            raise unreadable(self._client.site(dlc_client.CREATE_JOB), f"without a job: JobId is {job_id!r}")
        return job_id

    def get_job(self, job_id: str, *, need_detail: bool = True) -> dict[str, Any]:
        """
        Return the job as DLC tells it.

        :raises PaiDlcNotFound: DLC does not know it.
        """
        return self._repeatable(dlc_client.GET_JOB, job_id, query={"NeedDetail": need_detail})

    def list_jobs(
        self,
        *,
        tags: Mapping[str, str] | None = None,
        job_ids: Sequence[str] | None = None,
        start_time: datetime | None = None,
        show_own: bool | None = None,
        payment_type: str | None = None,
        display_name: str | None = None,
        status: str | None = None,
        workspace_id: str | None = None,
        max_pages: int = MAX_PAGES,
    ) -> list[dict[str, Any]]:
        """
        Return all jobs that match, newest first within each request; DLC's match is loose, so match again.

        :param tags: `Settings.Tags` to match, all of them.
        :param job_ids: any number of ids; asked for in batches of 100.
        :param start_time: created since then (aware); 30 days ago if not given.
        :param show_own: False also shows jobs of other RAM identities; where DLC refuses that, the caller's
            own are returned and a warning says so once. DLC's default is True.
        :param payment_type: `Spot`, `PostPaid` or `PrePaid`.
        :param display_name: case-insensitive part of the name.
        :param status: as DLC spells it.
        :param workspace_id: instead of the hook's.
        :param max_pages: requests per batch at most; what lies beyond is logged and left out.
        """
        query: dict[str, Any] = {
            "WorkspaceId": workspace_id or self.workspace_id or None,
            "Tags": _compact_json(tags) if tags else None,
            "StartTime": _timestamp(start_time or self._clock.now() - LOOK_BACK),
            "ShowOwn": show_own,
            "PaymentType": payment_type,
            "DisplayName": display_name,
            "Status": status,
            "SortBy": "GmtCreateTime",
            "Order": "desc",
        }
        if job_ids is None:
            return self._list_jobs(query, max_pages)
        found: list[dict[str, Any]] = []
        for batch in listing.batches(job_ids):
            found += listing.read_splitting(
                batch, lambda ids: self._list_jobs({**query, "JobIds": ",".join(ids)}, max_pages)
            )
        return found

    def list_page(self, job_ids: Sequence[str]) -> list[Any]:
        """
        Return what one ListJobs shows of these jobs, with one request and as DLC sent it: an item may be anything.

        For somebody who asks for many jobs again and again. Jobs of other RAM identities are shown as well, unless
        DLC refuses that; those created more than 30 days ago are not.

        :param job_ids: 100 at most, DLC's largest page.
        """
        query = {
            "WorkspaceId": self.workspace_id or None,
            "JobIds": ",".join(job_ids),
            "StartTime": _timestamp(self._clock.now() - LOOK_BACK),
            "ShowOwn": None if self._client.said("ShowOwn") else False,
            "PageNumber": 1,
            "PageSize": listing.PAGE_SIZE,
        }
        try:
            return list(self._repeatable(dlc_client.LIST_JOBS, query=query)["Jobs"])
        except PaiDlcRefused as refusal:
            if query["ShowOwn"] is None or refusal.status_code != _FORBIDDEN:
                raise
            refused = refusal
        jobs = list(self._repeatable(dlc_client.LIST_JOBS, query={**query, "ShowOwn": None})["Jobs"])
        self._say_only_own(refused)
        return jobs

    def stop_job(self, job_id: str) -> bool:
        """
        Stop a job; return True if DLC accepted (or is stopping it already), False if it is already over.

        :raises PaiDlcRefused: DLC refused although the job is not over.
        """
        try:
            self._repeatable(dlc_client.STOP_JOB, job_id)
        except PaiDlcRefused as refusal:
            if isinstance(refusal, PaiDlcNotFound | PaiDlcThrottled) or refusal.status_code not in _CANNOT_BE_STOPPED:
                raise
            return self._is_stopping(job_id, refusal)
        return True

    def delete_job(self, job_id: str) -> None:
        """Delete a job that is over, with exactly one request."""
        self._client.call(dlc_client.DELETE_JOB, job_id)

    # --- logs, events, specs ----------------------------------------------------------------------

    def get_pod_logs(
        self,
        job_id: str,
        pod_id: str,
        *,
        max_lines: int | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        pod_uid: str | None = None,
    ) -> list[str]:
        """
        Return log lines of a pod; DLC has no cursor, so poll with overlap and drop what was seen.

        :param max_lines: DLC's default is 2,000; whether the window's first or last lines is not documented.
        :param start_time: aware; DLC's default is 7 days ago.
        :param end_time: aware; DLC's default is now.
        :param pod_uid: one incarnation of the pod; an earlier one keeps its pod id.
        """
        query = {
            "MaxLines": max_lines,
            "StartTime": _timestamp(start_time) if start_time else None,
            "EndTime": _timestamp(end_time) if end_time else None,
            "PodUid": pod_uid,
        }
        answer = self._repeatable(dlc_client.GET_POD_LOGS, job_id, pod_id, query=query)
        return _lines(answer["Logs"])

    def get_job_events(self, job_id: str, *, max_events: int | None = None) -> list[str]:
        """Return the job's events as DLC words them; its default is 2,000 at most, of the last 7 days."""
        answer = self._repeatable(dlc_client.GET_JOB_EVENTS, job_id, query={"MaxEventsNum": max_events})
        return _lines(answer["Events"])

    def get_pod_events(self, job_id: str, pod_id: str, *, pod_uid: str | None = None) -> list[str]:
        """Return a pod's events as DLC words them."""
        answer = self._repeatable(dlc_client.GET_POD_EVENTS, job_id, pod_id, query={"PodUid": pod_uid})
        return _lines(answer["Events"])

    def list_ecs_specs(
        self,
        instance_types: Sequence[str] | None = None,
        *,
        accelerator_type: str | None = None,
        resource_type: str | None = None,
        max_age: float = 0.0,
    ) -> list[dict[str, Any]]:
        """
        Return instance types with their spot stock and current spot discount.

        :param instance_types: only these.
        :param accelerator_type: `CPU` or `GPU`.
        :param resource_type: `ECS` or `Lingjun`.
        :param max_age: seconds for which an answer that this process has got from the same DLC will do.
        """
        query = {
            "InstanceTypes": ",".join(instance_types) if instance_types else None,
            "AcceleratorType": accelerator_type,
            "ResourceType": resource_type,
        }

        def ask() -> list[dict[str, Any]]:
            specs, _ = listing.read_all(
                lambda page: self._repeatable(dlc_client.LIST_ECS_SPECS, query={**query, **page}),
                items_key="EcsSpecs",
                identity="InstanceType",
                max_pages=MAX_PAGES,
            )
            return specs

        if not max_age:
            return ask()
        question = (dlc_client.LIST_ECS_SPECS, *query.values())
        return list(self._client.shared.get(question, max_age, ask))

    def get_quota_workload_diagnosis(self, quota_id: str, job_id: str) -> dict[str, Any]:
        """
        Return PAI Studio's `Diagnosis` of a job that queues for a quota; {} if its answer holds none.

        :raises PaiDlcRefused: the job does not queue (400 or 404), or it is not known where PAI Studio is.
        """
        answer = self._repeatable(dlc_client.GET_QUOTA_WORKLOAD_DIAGNOSIS, quota_id, job_id)
        return mapping_of(mapping_of(answer.get("body") or answer).get("Diagnosis"))

    # --- the form's test button -------------------------------------------------------------------

    def test_connection(self) -> tuple[bool, str]:
        """List one job with one request; say what was tried, as whom, and what failed. Never raises."""
        try:
            settings = self.settings
            self._client.call(
                dlc_client.LIST_JOBS,
                query={"WorkspaceId": settings.workspace_id or None, "PageNumber": 1, "PageSize": 1},
            )
        except PaiDlcError as error:
            return False, str(error)
        except Exception as error:  # noqa: BLE001 - a button shows what it met
            return False, f"Connection {self.pai_dlc_conn_id!r}: {type(error).__name__}: {error}"
        return True, describe(settings, self.endpoint)

    # --- how calls are made -----------------------------------------------------------------------

    @property
    def _client(self) -> dlc_client.DlcClient:
        return dlc_client.CLIENTS.get(self.settings, self._clock)

    def _repeatable(
        self, operation: dlc_client.Operation, *ids: str, query: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Send a request that may be repeated."""

        def told(error: PaiDlcError, wait: float) -> None:
            self.log.info("%s Trying again in %.1f s.", error, wait)

        return with_retries(
            lambda: self._client.call(operation, *ids, query=query),
            rules=self._retry_rules,
            clock=self._clock,
            on_retry=told,
        )

    def _is_stopping(self, job_id: str, refusal: PaiDlcRefused) -> bool:
        """Tell Stopping from over; an earlier StopJob whose answer was lost looks like a refusal, too."""
        phase = phase_of(str(self.get_job(job_id).get("Status")))
        if phase not in (Phase.TERMINAL, Phase.STOPPING):
            raise refusal
        return phase is Phase.STOPPING

    def _list_jobs(self, query: Mapping[str, Any], max_pages: int) -> list[dict[str, Any]]:
        try:
            jobs, cut = listing.read_all(
                lambda page: self._repeatable(dlc_client.LIST_JOBS, query={**query, **page}),
                items_key="Jobs",
                identity="JobId",
                max_pages=max_pages,
            )
        except PaiDlcRefused as refusal:
            if query.get("ShowOwn") is not False or refusal.status_code != _FORBIDDEN:
                raise
            self._say_only_own(refusal)
            return self._list_jobs({**query, "ShowOwn": None}, max_pages)
        if cut:
            self.log.warning("ListJobs has more than %d pages; the oldest jobs were not read.", max_pages)
        return jobs

    def _say_only_own(self, refusal: PaiDlcRefused) -> None:
        if self._client.first_time("ShowOwn"):
            self.log.warning("%s Looking only at the caller's own jobs from now on.", refusal)


def _lines(items: list[Any]) -> list[str]:
    return [str(item) for item in items]


def _timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _compact_json(value: Mapping[str, str]) -> str:
    return json.dumps(dict(value), ensure_ascii=False, separators=(",", ":"))


def _mask(settings: ConnectionSettings) -> None:
    """Register what Airflow does not mask by itself when a connection comes from a preset or a cache."""
    from airflow.sdk.log import mask_secret  # loads the logging stack

    secrets = (settings.access_key_secret, settings.security_token, settings.http_proxy, settings.https_proxy)
    for secret in secrets:
        if secret and len(secret) >= SHORTEST_MASKED_SECRET:
            mask_secret(secret)
