"""
One call to DLC: a plain dict goes out, a plain dict comes back.

The SDK signs and sends; its models are not used, because they drop fields they do not know and turn a whole
answer into None when one field has another shape.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import threading
from collections import OrderedDict
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_pai_spot import __version__
from airflow_provider_pai_spot.clock import SYSTEM_CLOCK, Clock
from airflow_provider_pai_spot.exceptions import PaiDlcError, PaiDlcRefused
from airflow_provider_pai_spot.hooks import sdk
from airflow_provider_pai_spot.hooks.credentials import RememberedCredential, provider_finder
from airflow_provider_pai_spot.hooks.errors import CallSite, translate, unreadable
from airflow_provider_pai_spot.hooks.shared_answers import SharedAnswers
from airflow_provider_pai_spot.hooks.studio import studio_endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_pai_spot.hooks.connection import ConnectionSettings

log = logging.getLogger(__name__)

_API_VERSION = "2020-12-03"
_CLIENTS_KEPT = 32
_STUDIO = ("paistudio",)


class Operation(NamedTuple):
    """An operation of the DLC API, or of PAI Studio's; `{}` in the path stands for an id."""

    action: str
    method: str
    path: str
    read_timeout: int | None = None
    """Milliseconds, where the SDK's 10 s would be too short and the connection says nothing."""
    lists: str = ""
    """The key of the answer that holds its list."""
    version: str = _API_VERSION
    of_studio: bool = False
    """Whether PAI Studio answers it, another product at another address."""


# A lost answer to CreateJob costs a search for the job; waiting a little longer for it is cheaper.
CREATE_JOB = Operation("CreateJob", "POST", "/api/v1/jobs", read_timeout=30_000)
LIST_JOBS = Operation("ListJobs", "GET", "/api/v1/jobs", lists="Jobs")
GET_JOB = Operation("GetJob", "GET", "/api/v1/jobs/{}")
STOP_JOB = Operation("StopJob", "POST", "/api/v1/jobs/{}/stop")
DELETE_JOB = Operation("DeleteJob", "DELETE", "/api/v1/jobs/{}")
GET_JOB_EVENTS = Operation("GetJobEvents", "GET", "/api/v1/jobs/{}/events", lists="Events")
GET_POD_EVENTS = Operation("GetPodEvents", "GET", "/api/v1/jobs/{}/pods/{}/events", lists="Events")
GET_POD_LOGS = Operation("GetPodLogs", "GET", "/api/v1/jobs/{}/pods/{}/logs", lists="Logs")
LIST_ECS_SPECS = Operation("ListEcsSpecs", "GET", "/api/v1/ecsspecs", lists="EcsSpecs")
GET_QUOTA_WORKLOAD_DIAGNOSIS = Operation(
    "GetQuotaWorkloadDiagnosis",
    "GET",
    "/api/v1/quotas/{}/workloads/{}/diagnosis",
    version="2022-01-12",
    of_studio=True,
)


class DlcClient:
    """
    The SDK's client for one connection; safe to share between threads, not between processes.

    :param settings: the checked connection.
    :param clock: what time a failed look-up of credentials happened, and how old a shared answer is.
    """

    def __init__(self, settings: ConnectionSettings, clock: Clock = SYSTEM_CLOCK) -> None:
        self._settings = settings
        self._sdk = sdk.load()
        find_provider = provider_finder(settings, self._sdk.providers)
        self._credential = RememberedCredential(settings, find_provider, self._sdk.CredentialClient, clock)
        self.sdk_client = self._sdk.Client(self._sdk_config(settings.endpoint))
        self._studio_client: Any = None
        self.endpoint = str(self.sdk_client._endpoint)  # noqa: SLF001 - the SDK tells it nowhere else
        self.shared = SharedAnswers(clock)
        self._said: set[str] = set()
        self._warn_about_clear_text()

    def _sdk_config(self, endpoint: str) -> Any:
        settings = self._settings
        return self._sdk.Config(
            credential=self._credential,
            endpoint=endpoint or None,
            region_id=settings.region_id or None,
            network=settings.network or None,
            protocol=settings.protocol,
            connect_timeout=settings.connect_timeout,
            read_timeout=settings.read_timeout,
            http_proxy=settings.http_proxy or None,
            https_proxy=settings.https_proxy or None,
            user_agent=f"airflow-provider-pai-spot/{__version__}",
        )

    def call(
        self,
        operation: Operation,
        *ids: str,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """
        Send one request, once, and return DLC's answer; its list is a list even if DLC sent null.

        :param query: parameters; None values are left out.
        :raises PaiDlcError: whatever went wrong; see `exceptions`.
        """
        site = self.site(operation)
        if not all(isinstance(one, str) and one.strip() for one in ids):
            # `/jobs/` with nothing after it would be another operation.
            raise PaiDlcRefused(f"{site} was not sent: it needs ids of DLC, got {ids!r}.")
        if not site.endpoint:
            raise PaiDlcRefused(f"{operation.action} was not sent: the connection has no studio_endpoint.")
        failure: PaiDlcError | None = None
        answer: Any = None
        try:
            answer = self._send(operation, ids, query, body)
        except Exception as error:  # noqa: BLE001 - nothing of the SDK may get out
            failure = translate(error, site, self._secrets())
        if failure is not None:
            raise failure
        return _checked(answer, operation, site)

    def site(self, operation: Operation) -> CallSite:
        """Return what a message about a call of this operation starts with."""
        settings = self._settings
        if operation.of_studio:
            return CallSite(operation.action, studio_endpoint(settings), settings.region_id, settings.conn_id, _STUDIO)
        return CallSite(operation.action, self.endpoint, settings.region_id, settings.conn_id)

    def first_time(self, what: str) -> bool:
        """Whether `what` is mentioned for the first time, for things that are logged once per connection."""
        if what in self._said:
            return False
        self._said.add(what)
        return True

    def said(self, what: str) -> bool:
        """Whether `what` was mentioned before."""
        return what in self._said

    def _send(
        self,
        operation: Operation,
        ids: tuple[str, ...],
        query: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
    ) -> Any:
        given = {key: value for key, value in (query or {}).items() if value is not None}
        request = self._sdk.OpenApiRequest(
            headers={}, query=self._sdk.to_query(given), body=dict(body) if body is not None else None
        )
        params = self._sdk.Params(
            action=operation.action,
            version=operation.version,
            protocol="HTTPS",
            pathname=operation.path.format(*(self._sdk.percent_encode(one) for one in ids)),
            method=operation.method,
            auth_type="AK",
            style="ROA",
            req_body_type="json",
            body_type="json",
        )
        own_timeout = None if self._settings.read_timeout else operation.read_timeout
        answer = self._client_of(operation).call_api(
            params, request, self._sdk.RuntimeOptions(read_timeout=own_timeout)
        )
        return answer.get("body")

    def _client_of(self, operation: Operation) -> Any:
        """Return what signs and sends; the generic half of the SDK's client does not mind whose operation it is."""
        if not operation.of_studio:
            return self.sdk_client
        if self._studio_client is None:  # two threads may both make one, and then one of the two is kept
            self._studio_client = self._sdk.Client(self._sdk_config(studio_endpoint(self._settings)))
        return self._studio_client

    def _secrets(self) -> tuple[str, ...]:
        own = (self._settings.access_key_secret, self._settings.security_token)
        return tuple(filter(None, (*own, *self._credential.secrets())))

    def _warn_about_clear_text(self) -> None:
        if self._settings.sends_in_clear:
            log.warning(
                "Connection %r: protocol is http and %s is not this machine: requests, with the environment "
                "variables of jobs in them, travel readable. Set protocol to https.",
                self._settings.conn_id,
                self.endpoint,
            )


def _checked(answer: Any, operation: Operation, site: CallSite) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise unreadable(site, f"a JSON {type(answer).__name__} where an object was expected")
    if not operation.lists:
        return answer
    items = answer.get(operation.lists)
    if items is not None and not isinstance(items, list):
        raise unreadable(site, f"without a list: {operation.lists} is a JSON {type(items).__name__}")
    return {**answer, operation.lists: items or []}


class ClientCache:
    """One client per connection and process: each costs a TLS context, some a thread as well."""

    def __init__(self, kept: int = _CLIENTS_KEPT) -> None:
        self._kept = kept
        self.forget()

    def get(self, settings: ConnectionSettings, clock: Clock) -> DlcClient:
        """Return the client for exactly these settings, building it on first use."""
        key = (fingerprint(settings), id(clock))
        with self._lock:
            if key not in self._clients:
                self._clients[key] = DlcClient(settings, clock)
                while len(self._clients) > self._kept:
                    self._clients.popitem(last=False)
            self._clients.move_to_end(key)
            return self._clients[key]

    def forget(self) -> None:
        """Start empty, with a lock that nobody holds; a forked child calls it."""
        self._lock = threading.Lock()
        self._clients: OrderedDict[tuple[str, int], DlcClient] = OrderedDict()


def fingerprint(settings: ConnectionSettings) -> str:
    """
    Return what tells these settings from any others, secrets included, within this process.

    Salted by process, so that it is worthless outside of it.
    """
    text = json.dumps(asdict(settings), sort_keys=True)
    return hashlib.blake2b(text.encode(), key=_SALT, digest_size=16).hexdigest()


def _after_fork() -> None:
    CLIENTS.forget()
    sdk.start_over_in_child()


_SALT = secrets.token_bytes(32)
CLIENTS = ClientCache()
os.register_at_fork(after_in_child=_after_fork)
