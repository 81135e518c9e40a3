"""Where Airflow's public API is and who asks: from a URL, an Airflow connection of type `http`, or both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, Self
from urllib.parse import urlsplit

from airflow_provider_pai_spot.exceptions import PaiSpotError

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class AirflowApiError(PaiSpotError):
    """Airflow's public API cannot be used as it is set up; says what to change."""


class HttpConnection(Protocol):
    """The fields of an Airflow connection that are read."""

    @property
    def host(self) -> str | None:
        """Host, or a whole URL."""
        ...

    @property
    def schema(self) -> str | None:
        """`http` or `https`."""
        ...

    @property
    def port(self) -> int | None:
        """Port."""
        ...

    @property
    def login(self) -> str | None:
        """User name."""
        ...

    @property
    def password(self) -> str | None:
        """Password, or without a login an access token."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AirflowAddress:
    """
    One Airflow API server and the credential for it.

    :param base_url: such as `https://airflow.example.com/prod`, without `/api/v2`.
    :param login: user name; with `password` exchanged for a token at POST /auth/token.
    :param token: an access token, instead of the exchange. Neither: requests carry no credential.
    :raises AirflowApiError: the URL is none, or holds a password.
    """

    base_url: str
    login: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        url = urlsplit(self.base_url)
        if url.username is not None or url.password is not None:
            raise AirflowApiError(
                f"Airflow's URL ({url.hostname}) holds a login: put login and password into the connection instead."
            )
        if url.scheme not in ("http", "https") or not url.hostname:
            raise AirflowApiError(
                f"Airflow's URL is {self.base_url!r}: expected one such as https://airflow.example.com. Set [api] "
                "base_url, the host of the connection, or --airflow-url."
            )
        object.__setattr__(self, "base_url", self.base_url.rstrip("/").removesuffix("/api/v2"))

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine, where no proxy belongs in between."""
        return urlsplit(self.base_url).hostname in _LOOPBACK

    @classmethod
    def build(cls, *, url: str = "", connection: HttpConnection | None = None, token: str = "", fallback: str) -> Self:
        """
        Return the address.

        :param url: goes before the connection's host.
        :param token: goes before the connection's credential.
        :param fallback: used if neither names a host: `[api] base_url`.
        """
        base_url = url or _url_of(connection) or fallback
        if token or connection is None or not connection.password:
            return cls(base_url=base_url, token=token)
        if not connection.login:
            return cls(base_url=base_url, token=connection.password)
        return cls(base_url=base_url, login=connection.login, password=connection.password)


def _url_of(connection: HttpConnection | None) -> str:
    """Read host, schema and port as Airflow's HttpHook does."""
    if connection is None or not connection.host:
        return ""
    if "://" in connection.host:
        url, _, path = connection.host.partition("://")
        host, slash, rest = path.partition("/")
        port = f":{connection.port}" if connection.port and ":" not in host else ""
        return f"{url}://{host}{port}{slash}{rest}"
    port = f":{connection.port}" if connection.port else ""
    return f"{connection.schema or 'http'}://{connection.host}{port}"
