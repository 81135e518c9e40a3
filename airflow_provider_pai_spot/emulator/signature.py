"""
Check Alibaba Cloud's V3 request signature (ACS3-HMAC-SHA256), as DLC's gateway would.

Documented: the algorithm, the fifteen minutes a date is good for, the nonce that serves once. Assumed: the
HTTP statuses of two codes (other products answer `InvalidAccessKeyId.NotFound` with 404 or 400 and
`SignatureDoesNotMatch` with 403 or 400), `MissingAuthorization`, `IncompleteSignature` and
`InvalidTimeStamp.Format`.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, unquote_plus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ALGORITHM = "ACS3-HMAC-SHA256"
DATE_TOLERANCE = timedelta(minutes=15)
REQUIRED_SIGNED_HEADERS = frozenset(
    {
        "host",
        "x-acs-action",
        "x-acs-content-sha256",
        "x-acs-date",
        "x-acs-signature-nonce",
        "x-acs-version",
    }
)

_AUTHORIZATION = re.compile(
    rf"{ALGORITHM} Credential=(?P<key>[^,\s]+), ?SignedHeaders=(?P<signed>[^,\s]+), ?"
    r"Signature=(?P<signature>[0-9a-f]{64})"
)
_DATE_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


class SignatureError(Exception):
    """
    The request is not signed as it must be.

    :param code: the platform's error code.
    :param message: what is wrong; never holds a secret or the expected signature.
    :param status: HTTP status.
    """

    def __init__(self, code: str, message: str, status: int) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


class NonceStore:
    """
    Remember nonces until a request that carries them is too old anyway. Safe to share between threads.

    :param limit: how many to remember; beyond it the oldest is forgotten. Only correctly signed requests get
        in, so a stranger cannot push others' nonces out.
    """

    def __init__(self, limit: int = 200_000) -> None:
        self._limit = limit
        self._expiry: OrderedDict[tuple[str, str], datetime] = OrderedDict()
        self._lock = threading.Lock()

    def use(self, access_key_id: str, nonce: str, now: datetime) -> bool:
        """Return whether this nonce is new, and remember it."""
        with self._lock:
            self._forget_expired(now)
            if (access_key_id, nonce) in self._expiry:
                return False
            # A date may lie ahead of our clock by the tolerance: its request is good for twice as long.
            self._expiry[access_key_id, nonce] = now + 2 * DATE_TOLERANCE
            if len(self._expiry) > self._limit:
                self._expiry.popitem(last=False)
            return True

    def _forget_expired(self, now: datetime) -> None:
        while self._expiry and next(iter(self._expiry.values())) < now:
            self._expiry.popitem(last=False)


@dataclass(frozen=True)
class _Authorization:
    access_key_id: str
    signed_headers: str
    signature: str

    @property
    def signed_names(self) -> list[str]:
        return self.signed_headers.split(";")


def verify_v3(  # noqa: PLR0917 - the parts of a request in their order on the wire
    method: str,
    path: str,
    raw_query: str,
    headers: Mapping[str, str],
    body: bytes,
    secret_of: Callable[[str], str | None],
    now: datetime,
    seen_nonces: NonceStore,
) -> str:
    """
    Return the access key id that signed this request, or raise SignatureError.

    :param path: as it came over the wire (ASGI's `raw_path`), still percent-encoded, without the query.
    :param raw_query: the query as it came over the wire, without the question mark.
    :param headers: a repeated name with two values is refused if its mapping yields both.
    :param secret_of: access key id -> secret, None for a key that does not exist.
    :param now: real, aware time; the client signs with its own clock, not with a simulated one.
    """
    sent = _single_valued(headers)
    authorization = _parse_authorization(sent)
    _check_signed_names(authorization, sent)
    _check_date(sent["x-acs-date"], now)
    secret = _secret(authorization, sent, secret_of)
    _check_body(sent["x-acs-content-sha256"], body)
    canonical = _canonical_request(method, path, raw_query, sent, authorization)
    if not hmac.compare_digest(_sign(canonical, secret), authorization.signature):
        raise _does_not_match("the signature is not the one this request and this access key's secret give")
    # Last, so that only someone who knows the secret can use a nonce up.
    nonce = sent["x-acs-signature-nonce"]
    if not seen_nonces.use(authorization.access_key_id, nonce, now):
        raise SignatureError("SignatureNonceUsed", f"x-acs-signature-nonce {nonce!r} was used before.", 400)
    return authorization.access_key_id


def _single_valued(headers: Mapping[str, str]) -> dict[str, str]:
    """Lower-case the names; two values under one name would let the signed one hide the one that is read."""
    sent: dict[str, str] = {}
    for name, value in headers.items():
        if sent.setdefault(name.lower(), value) != value:
            raise SignatureError("IncompleteSignature", f"Header {name.lower()!r} was sent twice.", 400)
    return sent


def _parse_authorization(sent: Mapping[str, str]) -> _Authorization:
    text = sent.get("authorization")
    if not text:
        raise SignatureError("MissingAuthorization", "The request carries no Authorization header.", 400)
    match = _AUTHORIZATION.fullmatch(text.strip())
    if match is None:
        expected = f"{ALGORITHM} Credential=…,SignedHeaders=…,Signature=…"
        raise SignatureError("IncompleteSignature", f"Authorization is not of the form {expected}.", 400)
    return _Authorization(match["key"], match["signed"], match["signature"])


def _check_signed_names(authorization: _Authorization, sent: Mapping[str, str]) -> None:
    signed = set(authorization.signed_names)
    # What is read but not signed could be exchanged on the way: what the platform reads must be signed.
    required = REQUIRED_SIGNED_HEADERS | {name for name in sent if name.startswith("x-acs-")}
    if unsigned := sorted(required - signed):
        raise SignatureError("IncompleteSignature", f"Not among SignedHeaders: {', '.join(unsigned)}.", 400)
    if absent := sorted(signed - set(sent)):
        raise SignatureError("IncompleteSignature", f"Signed but not sent: {', '.join(absent)}.", 400)


def _check_date(text: str, now: datetime) -> None:
    try:
        signed_at = datetime.strptime(text, _DATE_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        raise SignatureError(
            "InvalidTimeStamp.Format", f"x-acs-date is {text!r}: expected YYYY-MM-DDTHH:MM:SSZ.", 400
        ) from None
    if abs(now - signed_at) > DATE_TOLERANCE:
        minutes = int(DATE_TOLERANCE.total_seconds() // 60)
        raise SignatureError(
            "InvalidTimeStamp.Expired", f"x-acs-date {text} is more than {minutes} minutes from {now}.", 400
        )


def _secret(authorization: _Authorization, sent: Mapping[str, str], secret_of: Callable[[str], str | None]) -> str:
    key = authorization.access_key_id
    secret = secret_of(key)
    if not secret or sent.get("x-acs-accesskey-id", key) != key:
        raise SignatureError("InvalidAccessKeyId.NotFound", f"Access key id {key!r} does not exist.", 404)
    return secret


def _check_body(announced: str, body: bytes) -> None:
    if not hmac.compare_digest(announced.lower().encode(), hashlib.sha256(body).hexdigest().encode()):
        raise _does_not_match("x-acs-content-sha256 is not the hash of the body that arrived")


def _does_not_match(reason: str) -> SignatureError:
    return SignatureError("SignatureDoesNotMatch", f"The request signature does not match: {reason}.", 403)


def _canonical_request(
    method: str, path: str, raw_query: str, sent: Mapping[str, str], authorization: _Authorization
) -> str:
    headers = "".join(f"{name}:{sent[name].strip()}\n" for name in authorization.signed_names)
    return "\n".join(
        (
            method.upper(),
            _canonical_path(path),
            _canonical_query(raw_query),
            headers,
            authorization.signed_headers,
            sent["x-acs-content-sha256"],
        )
    )


def _canonical_path(path: str) -> str:
    """Re-encode each segment: clients rewrite the path after signing (`%2A` leaves as `*`)."""
    return "/".join(_encode(unquote(segment)) for segment in path.split("/")) or "/"


def _canonical_query(raw_query: str) -> str:
    """Decode and re-encode: some clients send a space as `+` or a comma as it is and sign neither so."""
    pairs = [part.partition("=") for part in raw_query.split("&") if part]
    return "&".join(f"{key}={value}" for key, value in sorted(_encoded_pair(k, v) for k, _, v in pairs))


def _encoded_pair(key: str, value: str) -> tuple[str, str]:
    return _encode(unquote_plus(key)), _encode(unquote_plus(value))


def _encode(text: str) -> str:
    return quote(text, safe="~")


def _sign(canonical: str, secret: str) -> str:
    string_to_sign = f"{ALGORITHM}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    return hmac.new(secret.encode(), string_to_sign.encode(), hashlib.sha256).hexdigest()
