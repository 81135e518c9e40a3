"""
The vendor's exceptions, translated once.

They are not let out, because each of them keeps the request it was sent with: signature, security token and
body. What leaves this room has the type a caller decides by, and a message that names operation, endpoint,
region, connection, DLC's code and request id. `translate` returns the exception; the caller raises it
outside its `except` block, so that Python links no vendor exception to it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_pai_spot.exceptions import (
    PaiDlcCredentialsError,
    PaiDlcError,
    PaiDlcNotFound,
    PaiDlcRefused,
    PaiDlcThrottled,
    PaiDlcUnavailable,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_THROTTLED = re.compile(r"(?i)throttl|TooManyRequests|FlowControl|QpsLimit")
_NOT_A_MISSING_JOB = re.compile(r"Invalid(AccessKeyId|SecurityToken|Action|Api|Version)|Forbidden|Unsupported")
_ECHO = re.compile(r"(?is)(server )?(string to sign|stringtosign|canonical ?request).*")
_TOO_MANY_REQUESTS = 429
_NOT_FOUND = 404
_TIMED_OUT = 408
_SERVER_ERROR = 500
_LONGEST_TEXT = 500
_PROXIES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy")
# No byte of the request left this machine if one of these is at the root of the failure.
_NEVER_CONNECTED = frozenset(
    {
        "ConnectTimeout",
        "ConnectTimeoutError",
        "NewConnectionError",
        "NameResolutionError",
        "ProxyError",
        "SSLCertVerificationError",
        "InvalidURL",
        "LocationParseError",
        "InvalidProxyURL",
    }
)
_HINTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"InvalidAccessKeyId"),
        "Check 'AccessKey ID' of the connection, and that the key is enabled.",
    ),
    (re.compile(r"SignatureDoesNotMatch|IncompleteSignature"), "Check 'AccessKey Secret' of the connection."),
    (re.compile(r"InvalidSecurityToken|SecurityTokenExpired"), "The security token is wrong or has expired."),
    (re.compile(r"InvalidTimeStamp"), "This machine's clock is off by more than 15 minutes."),
    (
        re.compile(r"Forbidden|NoPermission|Unauthorized"),
        "Grant the RAM action {grants}, and check the workspace.",
    ),
)


@dataclass(frozen=True, slots=True)
class CallSite:
    """Which call to which DLC; what every message starts with."""

    operation: str
    endpoint: str
    region_id: str
    conn_id: str
    ram_names: tuple[str, ...] = ("paidlc", "pai")
    """What the product is called in RAM policies; of DLC sources differ."""

    @property
    def grants(self) -> str:
        """The RAM actions that allow the call, any of which may be the one that counts."""
        actions = " or ".join(f"{name}:{self.operation}" for name in self.ram_names)
        return actions if len(self.ram_names) == 1 else f"{actions} (sources differ)"

    def __str__(self) -> str:
        region = self.region_id or "unknown"
        return f"{self.operation} at {self.endpoint} (region {region}, connection {self.conn_id!r})"


def translate(error: Exception, site: CallSite, secrets: Iterable[str] = ()) -> PaiDlcError:
    """
    Return the exception that a caller may see instead of what the SDK raised.

    :param secrets: values cut out of DLC's own words, should it echo them.
    """
    if isinstance(error, PaiDlcError):
        return error
    if getattr(error, "status_code", None) is not None:
        return _answered(error, site, tuple(secrets))
    inner = getattr(error, "inner_exception", error)
    if isinstance(inner, PaiDlcCredentialsError):
        return PaiDlcCredentialsError(f"{site} was not sent. {inner}")
    if type(inner).__name__ == "RetryError":
        return _broken(inner, site)
    if getattr(error, "last_request", None) is None:
        return PaiDlcError(f"{site} was not sent: it could not be prepared ({type(inner).__name__}).")
    return unreadable(site, f"not JSON, or not a JSON object ({type(inner).__name__} while reading it)")


def unreadable(site: CallSite, seen: str) -> PaiDlcUnavailable:
    """Return the error for an answer that cannot be used; the call may have taken effect all the same."""
    return PaiDlcUnavailable(
        f"{site} was answered, but the answer is {seen}. "
        "A proxy or gateway in between may have answered instead of DLC."
    )


def _answered(error: Any, site: CallSite, secrets: tuple[str, ...]) -> PaiDlcError:
    status, code, request_id = int(error.status_code), _word(error.code), _word(error.request_id)
    told = f"{site}: HTTP {status}{' ' + code if code else ''}: {_words(error, secrets)}"
    message = " ".join(filter(None, (told, f"Request id {request_id}." if request_id else "", _hint(code, site))))
    retry_after = error.retry_after / 1000 if getattr(error, "retry_after", None) else None
    facts: dict[str, Any] = {"code": code, "status_code": status, "request_id": request_id}
    if status == _TOO_MANY_REQUESTS or _THROTTLED.search(code):
        return PaiDlcThrottled(message, **facts, retry_after=retry_after)
    if status >= _SERVER_ERROR or status == _TIMED_OUT:
        return PaiDlcUnavailable(message, **facts, retry_after=retry_after)
    if retry_after is not None:
        return PaiDlcThrottled(message, **facts, retry_after=retry_after)
    if code == "NotFound" or (status == _NOT_FOUND and not _NOT_A_MISSING_JOB.match(code)):
        return PaiDlcNotFound(message, **facts)
    return PaiDlcRefused(message, **facts)


def _word(value: object) -> str:
    text = str(value or "")
    return "" if text == "None" else text  # the SDK formats a missing field as 'None'


def _words(error: Any, secrets: tuple[str, ...]) -> str:
    """Return DLC's message without secrets, and without the request that a signature error quotes."""
    data = error.data if isinstance(error.data, dict) else {}
    text = _ECHO.sub("", str(data.get("Message") or data.get("message") or "no message")).strip()
    for secret in secrets:
        text = text.replace(secret, "***")
    text = text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _hint(code: str, site: CallSite) -> str:
    hints = (hint.format(grants=site.grants) for pattern, hint in _HINTS if pattern.search(code))
    return next(hints, "")


def _broken(error: BaseException, site: CallSite) -> PaiDlcUnavailable:
    names = [type(cause).__name__ for cause in _causes(error)]
    ambiguous = _NEVER_CONNECTED.isdisjoint(names)
    # The deepest name says most: RetryError <- ConnectionError <- MaxRetryError <- NameResolutionError.
    seen = next((name for name in reversed(names) if name != "RetryError"), "RetryError")
    effect = "no usable answer came back" if ambiguous else "no connection was made"
    return PaiDlcUnavailable(f"{site}: {effect} ({seen}).{_proxy_hint()}", ambiguous=ambiguous)


def _causes(error: BaseException | None) -> Iterable[BaseException]:
    """Walk from the SDK's RetryError to the socket error: contexts, and urllib3's `reason` and arguments."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        nested = [getattr(error, "reason", None), *error.args, error.__cause__, error.__context__]
        error = next((one for one in nested if isinstance(one, BaseException)), None)


def _proxy_hint() -> str:
    used = [name for name in _PROXIES if os.environ.get(name)]
    if not used:
        return ""
    return f" The SDK goes through the proxy of {' and '.join(used)} and does not obey NO_PROXY."
