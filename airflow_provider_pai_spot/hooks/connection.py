"""
What a `pai_dlc` connection says, checked once and kept as one value. No look-ups, no SDK, no network.

The connection's own fields: login = AccessKey ID, password = AccessKey Secret, host and port = endpoint.
Everything else is in the extra; `provider_info` draws the form for it.
"""

from __future__ import annotations

import ipaddress
import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast

from airflow_provider_pai_spot.exceptions import PaiDlcCredentialsError, PaiDlcError

CONN_TYPE = "pai_dlc"
ACCESS_KEY_ID_LABEL = "AccessKey ID"
ACCESS_KEY_SECRET_LABEL = "AccessKey Secret"  # noqa: S105 - the label of a form field
DEFAULT_CONSOLE_BASE_URL = "https://pai.console.aliyun.com"

CredentialSource = Literal["auto", "access_key", "rrsa", "ecs_ram_role", "profile", "uri"]
CREDENTIAL_SOURCES: tuple[CredentialSource, ...] = (
    "auto",
    "access_key",
    "rrsa",
    "ecs_ram_role",
    "profile",
    "uri",
)
EXTRA_FIELDS = (
    "region_id",
    "workspace_id",
    "protocol",
    "network",
    "credential_source",
    "security_token",
    "role_arn",
    "role_session_name",
    "connect_timeout",
    "read_timeout",
    "http_proxy",
    "https_proxy",
    "console_base_url",
    "studio_endpoint",
    "namespace",
)

_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?")
# Region and network become part of the host name that signed requests go to.
_REGION = re.compile(r"[a-z0-9-]{1,64}")
_NETWORK = re.compile(r"[a-z0-9-]{1,32}")
_REGIONAL_HOST = re.compile(r"pai-dlc(?:-[a-z]+)?\.(?P<region>[a-z0-9-]+)\.aliyuncs\.com")


class ConnectionLike(Protocol):
    """The attributes of an Airflow connection that are read here."""

    conn_id: str
    host: str | None
    port: int | None
    login: str | None
    password: str | None
    extra: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """
    A checked `pai_dlc` connection; its repr shows no secret.

    :param conn_id: the connection's id, for messages.
    :param endpoint: `host[:port]`, or '' for the SDK's own endpoint of region and network.
    :param connect_timeout: milliseconds, None for the SDK's 5,000.
    :param read_timeout: milliseconds for each read, None for the SDK's 10,000.
    :param studio_endpoint: `host[:port]` of PAI Studio, or '' for the public one of the region, if that is known.
    :param unknown_extras: keys of the extra that mean nothing here, perhaps misspelt.
    """

    conn_id: str
    endpoint: str = ""
    region_id: str = ""
    workspace_id: str = ""
    protocol: str = "https"
    network: str = ""
    credential_source: CredentialSource = "auto"
    access_key_id: str = ""
    access_key_secret: str = field(default="", repr=False)
    security_token: str = field(default="", repr=False)
    role_arn: str = ""
    role_session_name: str = ""
    connect_timeout: int | None = None
    read_timeout: int | None = None
    http_proxy: str = field(default="", repr=False)  # may hold a password
    https_proxy: str = field(default="", repr=False)
    console_base_url: str = DEFAULT_CONSOLE_BASE_URL
    studio_endpoint: str = ""
    namespace: str = ""
    unknown_extras: tuple[str, ...] = ()

    @property
    def has_access_key(self) -> bool:
        """Whether the connection itself holds an AccessKey pair."""
        return bool(self.access_key_id and self.access_key_secret)

    @property
    def sends_in_clear(self) -> bool:
        """Whether requests leave this machine unencrypted."""
        return self.protocol == "http" and not is_loopback(self.endpoint)


def parse_connection(
    connection: ConnectionLike, *, region_id: str | None = None, workspace_id: str | None = None
) -> ConnectionSettings:
    """
    Read and check a connection; `region_id` and `workspace_id` override its own.

    :raises PaiDlcError: a field cannot be right; the message names it and what is allowed.
    :raises PaiDlcCredentialsError: a half-filled AccessKey pair.
    """
    reader = _Reader(connection)
    scheme, endpoint = reader.endpoint()
    settings = ConnectionSettings(
        conn_id=connection.conn_id,
        endpoint=endpoint,
        region_id=reader.region_argument(region_id) or reader.region_id() or _region_of(endpoint),
        workspace_id=_text(workspace_id) or reader.text("workspace_id"),
        protocol=reader.protocol(scheme),
        network=reader.network(),
        credential_source=cast(
            "CredentialSource", reader.choice("credential_source", CREDENTIAL_SOURCES, default="auto")
        ),
        access_key_id=_text(connection.login),
        access_key_secret=_text(connection.password),
        security_token=reader.text("security_token"),
        role_arn=reader.text("role_arn"),
        role_session_name=reader.text("role_session_name"),
        connect_timeout=reader.milliseconds("connect_timeout"),
        read_timeout=reader.milliseconds("read_timeout"),
        http_proxy=reader.text("http_proxy"),
        https_proxy=reader.text("https_proxy"),
        console_base_url=reader.text("console_base_url") or DEFAULT_CONSOLE_BASE_URL,
        studio_endpoint=reader.studio_endpoint(),
        namespace=reader.text("namespace"),
        unknown_extras=reader.unknown(),
    )
    _require_somewhere_to_go(settings)
    _require_whole_key_pair(settings)
    return settings


def is_loopback(endpoint: str) -> bool:
    """Whether `host[:port]` is this machine itself."""
    found = _HOST.fullmatch(endpoint)
    name = found["name"].strip("[]") if found else ""
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def describe(settings: ConnectionSettings, endpoint: str) -> str:
    """Return one line that says which DLC answered, and as whom; no secret."""
    whose = "the connection's AccessKey" if settings.has_access_key else "the default chain"
    source = whose if settings.credential_source == "auto" else settings.credential_source
    parts = [
        f"DLC answered at {settings.protocol}://{endpoint}",
        f"region {settings.region_id or 'unknown: set region_id, console links need it'}",
        f"workspace {settings.workspace_id or 'not set: the default workspace of the caller'}",
        f"credentials from {source}{f', assuming {settings.role_arn}' if settings.role_arn else ''}",
    ]
    if settings.unknown_extras:
        parts.append(f"not understood in the extra: {', '.join(settings.unknown_extras)}")
    return "; ".join(parts) + "."


class _Reader:
    """One connection's fields, each with its own check and its own complaint."""

    def __init__(self, connection: ConnectionLike) -> None:
        self._connection = connection
        self._extra = self._read_extra(connection.extra)

    def _read_extra(self, extra: str | None) -> dict[str, Any]:
        try:
            values = json.loads(extra) if extra else {}
        except ValueError:
            values = None  # the text may hold a token, and so would the decoder's message: neither is shown
        if not isinstance(values, dict):
            raise self._wrong("the extra is not a JSON object", 'write it as {"region_id": "cn-hangzhou"}')
        return values

    def _wrong(self, seen: str, remedy: str) -> PaiDlcError:
        return PaiDlcError(f"Connection {self._connection.conn_id!r}: {seen}; {remedy}.")

    def text(self, name: str) -> str:
        return _text(self._extra.get(name))

    def unknown(self) -> tuple[str, ...]:
        return tuple(sorted(str(key) for key in self._extra if key not in EXTRA_FIELDS))

    def choice(self, name: str, allowed: tuple[str, ...], *, default: str) -> str:
        value = self.text(name) or default
        if value not in allowed:
            raise self._wrong(f"{name} is {value!r}", f"allowed are {', '.join(allowed)}")
        return value

    def milliseconds(self, name: str) -> int | None:
        value = self.text(name)
        if not value:
            return None
        if not value.isdecimal() or int(value) == 0:
            raise self._wrong(f"{name} is {value!r}", "give whole milliseconds, for example 5000")
        return int(value)

    def region_id(self) -> str:
        return self._region("region_id", self.text("region_id"))

    def region_argument(self, region_id: str | None) -> str:
        """Check the override, which a DAG run's conf may reach through a template."""
        return self._region("the argument region_id", _text(region_id))

    def _region(self, where: str, value: str) -> str:
        if value and not _REGION.fullmatch(value):
            raise self._wrong(f"{where} is {value!r}", "give DLC's id of a region, for example cn-hangzhou")
        return value

    def network(self) -> str:
        value = self.text("network")
        if value and not _NETWORK.fullmatch(value):
            raise self._wrong(f"network is {value!r}", "give the network's name in small letters, for example vpc")
        return value

    def protocol(self, scheme: str) -> str:
        value = self.choice("protocol", ("https", "http"), default=scheme or "https")
        if scheme and scheme != value:
            raise self._wrong(f"the endpoint starts with {scheme}:// but protocol is {value!r}", "let one of them go")
        return value

    def studio_endpoint(self) -> str:
        text = self.text("studio_endpoint")
        if text and not _HOST.fullmatch(text):
            raise self._wrong(f"studio_endpoint is {text!r}", "give host or host:port, without a path")
        return text

    def endpoint(self) -> tuple[str, str]:
        """Return (scheme, host[:port]); both '' where the connection names none."""
        text = _text(self._connection.host).rstrip("/")
        scheme, separator, host = text.rpartition("://")
        if not host:
            return "", ""
        if host.count(":") > 1 and not host.startswith("["):
            host = f"[{host}]"
        found = _HOST.fullmatch(host)
        if not found or (separator and scheme not in ("http", "https")):
            raise self._wrong(f"the endpoint is {text!r}", "give host or host:port, without a path")
        port = self._connection.port
        return scheme, f"{host}:{port}" if port and not found["port"] else host


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()


def _region_of(endpoint: str) -> str:
    found = _REGIONAL_HOST.match(endpoint)
    return found["region"] if found else ""


def _require_somewhere_to_go(settings: ConnectionSettings) -> None:
    if settings.endpoint or settings.region_id:
        return
    raise PaiDlcError(
        f"Connection {settings.conn_id!r}: there is neither a region_id nor an endpoint, so it is unknown "
        "which DLC to call; fill the field 'Region ID' (for example cn-hangzhou), or pass region_id=..."
    )


def _require_whole_key_pair(settings: ConnectionSettings) -> None:
    if settings.credential_source not in ("auto", "access_key"):
        return
    missing = [
        label
        for label, value in (
            (ACCESS_KEY_ID_LABEL, settings.access_key_id),
            (ACCESS_KEY_SECRET_LABEL, settings.access_key_secret),
        )
        if not value
    ]
    both_empty_is_fine = settings.credential_source == "auto" and not settings.security_token
    if not missing or (len(missing) == 2 and both_empty_is_fine):  # noqa: PLR2004 - the pair
        return
    empty = " and ".join(f"'{label}'" for label in missing)
    raise PaiDlcCredentialsError(
        f"Connection {settings.conn_id!r}: {empty} empty although {_why_needed(settings, missing)}. "
        f"Fill it, or empty '{ACCESS_KEY_ID_LABEL}', '{ACCESS_KEY_SECRET_LABEL}' and 'Security token', and "
        "set credential_source to auto: credentials then come from the environment (RRSA, RAM role, ...)."
    )


def _why_needed(settings: ConnectionSettings, missing: list[str]) -> str:
    if len(missing) == 1:
        return "the other half of the pair is filled"
    if settings.credential_source == "access_key":
        return "credential_source is access_key"
    return "'Security token' is filled"
