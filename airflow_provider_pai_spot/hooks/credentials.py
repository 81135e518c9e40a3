"""
Where credentials come from, behind one object that the SDK asks before each request.

Sources: the connection's own pair (with a security token: STS), RRSA (OIDC), an ECS RAM role, a profile
file, a credentials URI, or the SDK's default chain through all of them. A `role_arn` in the connection is
assumed with whatever the source gives. Environment variables are read once, when the SDK is imported: that
is its way.
"""

from __future__ import annotations

import asyncio
import re
import threading
from typing import TYPE_CHECKING, Any

from airflow_provider_pai_spot.exceptions import PaiDlcCredentialsError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from airflow_provider_pai_spot.clock import Clock
    from airflow_provider_pai_spot.hooks.connection import ConnectionSettings

FAILURE_REMEMBERED_FOR = 60.0
"""Seconds. A chain that finds nothing takes about 2 s to say so (it probes ECS metadata), each time."""

_ANSWER = re.compile(r"result:.*", re.DOTALL)
_URL = re.compile(r"(?i)with url: \S+")
_CODE = re.compile(r'"Code"\s*:\s*"([A-Za-z0-9._-]+)"')
_LONGEST_REASON = 600


class RememberedCredential:
    """
    The credential object given to the SDK: asks its provider, and remembers a failure for a minute.

    :param find_provider: builds the SDK's credentials provider; called once, on first use.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        find_provider: Callable[[], Any],
        credential_client: Any,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._find_provider = find_provider
        self._credential_client = credential_client
        self._clock = clock
        self._lock = threading.Lock()
        self._client: Any = None
        self._failure = ""
        self._failed_at: datetime | None = None
        self._secrets: tuple[str, ...] = ()

    def get_credential(self) -> Any:
        """
        Return the SDK's credential model.

        :raises PaiDlcCredentialsError: there is none, or it must not travel over plain http.
        """
        with self._lock:
            model = None if self._still_failed() else self._ask()
        if model is None:
            raise PaiDlcCredentialsError(self._failure)
        self._refuse_token_in_clear(model)
        return model

    async def get_credential_async(self) -> Any:
        """Return the same without blocking the event loop; the SDK's own refresh would."""
        return await asyncio.to_thread(self.get_credential)

    def secrets(self) -> tuple[str, ...]:
        """Return what must not appear in a message: the secret and the token used last."""
        return self._secrets

    def _still_failed(self) -> bool:
        if self._failed_at is None:
            return False
        return (self._clock.now() - self._failed_at).total_seconds() < FAILURE_REMEMBERED_FOR

    def _ask(self) -> Any:
        try:
            if self._client is None:
                self._client = self._credential_client(provider=self._find_provider())
            model = self._client.get_credential()
        except Exception as error:  # noqa: BLE001 - the SDK raises whatever it met
            self._failure = self._describe(error)
            self._failed_at = self._clock.now()
            return None
        self._failed_at = None
        self._secrets = tuple(filter(None, (model.access_key_secret, model.security_token)))
        return model

    def _describe(self, error: Exception) -> str:
        return (
            "No credentials from source "
            f"{self._settings.credential_source!r}: {_safe_reason(error)}. Fill 'AccessKey ID' and "
            "'AccessKey Secret' in the connection, or set up the source where this process runs (worker and "
            "triggerer may differ). "
            f"Not asked again for {FAILURE_REMEMBERED_FOR:.0f} s."
        )

    def _refuse_token_in_clear(self, model: Any) -> None:
        if model.security_token and self._settings.sends_in_clear:
            raise PaiDlcCredentialsError(
                "The protocol is http and the endpoint "
                f"{self._settings.endpoint or 'of the SDK'!r} is not this machine, so the security "
                "token would travel readable; nothing was sent. Set protocol to https."
            )


def provider_finder(settings: ConnectionSettings, providers: Any) -> Callable[[], Any]:
    """Return a function that builds the SDK's provider for the settings; `providers` is the SDK's module."""

    def find() -> Any:
        if settings.credential_source == "rrsa":
            return providers.OIDCRoleArnCredentialsProvider(
                role_arn=settings.role_arn or None, role_session_name=settings.role_session_name or None
            )
        source = _sources(settings, providers)[settings.credential_source]()
        return _assuming_role(settings, providers, source) if settings.role_arn else source

    return find


def _sources(settings: ConnectionSettings, providers: Any) -> dict[str, Callable[[], Any]]:
    def own_pair() -> Any:
        if settings.security_token:
            return providers.StaticSTSCredentialsProvider(
                access_key_id=settings.access_key_id,
                access_key_secret=settings.access_key_secret,
                security_token=settings.security_token,
            )
        return providers.StaticAKCredentialsProvider(
            access_key_id=settings.access_key_id, access_key_secret=settings.access_key_secret
        )

    def ecs() -> Any:
        # Without the background scheduler that this provider would start, a thread that never ends.
        return providers.EcsRamRoleCredentialsProvider(async_update_enabled=False)

    profiles = [providers.CLIProfileCredentialsProvider, providers.ProfileCredentialsProvider]
    environment = [providers.EnvironmentVariableCredentialsProvider, providers.OIDCRoleArnCredentialsProvider]
    chain = [*environment, *profiles, ecs, providers.URLCredentialsProvider]
    return {
        "access_key": own_pair,
        "auto": own_pair if settings.has_access_key else lambda: FirstThatWorks(chain),
        "ecs_ram_role": ecs,
        "profile": lambda: FirstThatWorks(profiles),
        "uri": providers.URLCredentialsProvider,
    }


def _assuming_role(settings: ConnectionSettings, providers: Any, source: Any) -> Any:
    return providers.RamRoleArnCredentialsProvider(
        credentials_provider=source,
        role_arn=settings.role_arn,
        role_session_name=settings.role_session_name or "airflow-provider-pai-spot",
    )


class FirstThatWorks:
    """
    The first of several providers that has credentials; the SDK's default chain, without its scheduler thread.

    :param candidates: build a provider each, or raise where it is not configured; in the SDK's order.
    """

    def __init__(self, candidates: Sequence[Callable[[], Any]]) -> None:
        self._candidates = candidates
        self._working: Any = None

    def get_credentials(self) -> Any:
        """
        Return the SDK's credentials value.

        :raises LookupError: none has any; the message gives each one's reason.
        """
        found, self._working = self._working, None
        if found is None:
            return self._search()
        credentials = found.get_credentials()
        self._working = found  # only while it works: after a failure the search starts over
        return credentials

    def get_provider_name(self) -> str:
        """Return the SDK's name of what works, for the header that tells DLC."""
        return self._working.get_provider_name() if self._working is not None else "default"

    def _search(self) -> Any:
        reasons = []
        for build in self._candidates:
            try:
                provider = build()
                credentials = provider.get_credentials()
            except Exception as error:  # noqa: BLE001 - the SDK raises whatever it met
                reasons.append(_safe_reason(error))
            else:
                self._working = provider
                return credentials
        raise LookupError("; ".join(reasons))


def _safe_reason(error: Exception) -> str:
    """
    Return why a provider failed, without what may be secret in it.

    The SDK puts the whole answer of a credentials service into its message (half of a key pair may be in it),
    and the signed URL of a failed call to STS.
    """
    text = str(error)
    answer = _ANSWER.search(text)
    codes = _CODE.findall(answer.group()) if answer else []
    shown = _URL.sub("with url: (hidden)", _ANSWER.sub("(answer not shown)", text))
    return " ".join([shown[:_LONGEST_REASON], *(f"code {code}" for code in codes)]) or type(error).__name__
