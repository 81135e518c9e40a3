"""GET JSON from Airflow with a token, and tell anything but an answer as `NoAnswer`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from airflow_provider_pai_spot.dlc.wire import mapping_of, text_of
from airflow_provider_pai_spot.sweep.airflow_address import AirflowAddress

if TYPE_CHECKING:
    import httpx

_TIMEOUT_SECONDS: Final = 20.0
_UNAUTHORIZED: Final = 401
_OK: Final = 200
_LOGGED_IN: Final = (200, 201)
_SHOWN_DETAIL: Final = 200


class NoAnswer(Exception):
    """
    Airflow gave no usable answer; the message says why and holds no credential.

    :param concerns_all: whether another question would fare the same, so that it need not be asked.
    """

    def __init__(self, message: str, *, concerns_all: bool = False) -> None:
        super().__init__(message)
        self.concerns_all = concerns_all


@dataclass(frozen=True, slots=True)
class Answer:
    """
    A JSON object, with its HTTP status.

    :param path: what was asked for.
    """

    status: int
    path: str
    body: dict[str, Any] = field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether it is what was asked for."""
        return self.status == _OK

    @property
    def summary(self) -> str:
        """The answer in one line."""
        detail = text_of(self.body.get("detail"))[:_SHOWN_DETAIL]
        return f"GET {self.path}: HTTP {self.status}{f', {detail}' if detail else ''}"


class JsonHttp:
    """
    The requests themselves; logs in at the first one.

    :param address: where Airflow is, and who asks.
    """

    def __init__(self, address: AirflowAddress) -> None:
        import httpx  # comes with Airflow, and costs a DAG parse too much

        self._address = address
        self._token = address.token
        self._down: NoAnswer | None = None
        # A proxy of the environment has nothing to do with loopback. Redirects lead to login pages: not followed.
        self._http = httpx.Client(timeout=_TIMEOUT_SECONDS, trust_env=not address.is_loopback)

    def close(self) -> None:
        """Close idle connections."""
        self._http.close()

    def forgive(self) -> None:
        """Try again although the last question showed that no other would be answered."""
        self._down = None

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Answer:
        """
        Return the answer to GET /api/v2<path>, whatever its status.

        :raises NoAnswer: none came, it is no JSON object, or the login was refused.
        """
        if self._down is not None:
            raise self._down
        try:
            if self._address.login and not self._token:
                self._token = self._log_in()
            return self._get(path, query)
        except NoAnswer as error:
            self._down = error if error.concerns_all else None
            raise

    def _get(self, path: str, query: Mapping[str, Any] | None) -> Answer:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        answer = self._send("GET", f"/api/v2{path}", params=dict(query or {}), headers=headers)
        if answer.status_code == _UNAUTHORIZED:
            raise NoAnswer(f"GET {path}: HTTP 401, {self._whose_credential}", concerns_all=True)
        return Answer(answer.status_code, path, _object_in(answer, f"GET {path}"))

    def _log_in(self) -> str:
        credential = {"username": self._address.login, "password": self._address.password}
        answer = self._send("POST", "/auth/token", json=credential)
        token = text_of(_object_in(answer, "POST /auth/token").get("access_token"))
        if answer.status_code not in _LOGGED_IN or not token:
            words = f"POST /auth/token: HTTP {answer.status_code}, login {self._address.login!r} was refused"
            raise NoAnswer(words, concerns_all=True)
        _mask(token)
        return token

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        import httpx

        try:
            return self._http.request(method, self._address.base_url + path, **options)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            words = f"{method} {self._address.base_url}{path}: {type(error).__name__}: {error}"
            raise NoAnswer(words, concerns_all=isinstance(error, httpx.TransportError)) from None

    @property
    def _whose_credential(self) -> str:
        if self._address.login:
            return f"the token of login {self._address.login!r} is not accepted"
        return "the access token is not accepted" if self._token else "no login and no access token was given"


def _object_in(answer: httpx.Response, request: str) -> dict[str, Any]:
    try:
        body = answer.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        kind = answer.headers.get("content-type", "nothing")
        # A refused login may answer in any shape; a page of HTML is no sign of Airflow.
        raise NoAnswer(f"{request}: HTTP {answer.status_code} with {kind}, expected a JSON object")
    return mapping_of(body)


def _mask(token: str) -> None:
    from airflow.sdk.log import mask_secret  # loads the logging stack

    mask_secret(token)
