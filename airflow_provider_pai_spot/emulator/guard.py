"""
Let only programs of this machine talk to an emulator that runs commands.

A loopback port alone is no wall: any web page in a local browser can send requests to it, directly
(cross-origin) or by pointing its own name at 127.0.0.1 (DNS rebinding). Browsers give themselves away by
Host, Origin and Sec-Fetch-Site.
"""

from __future__ import annotations

import ipaddress
import json
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

REFUSAL_CODE = "Forbidden.LoopbackOnly"
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_DEFAULT_PORTS = frozenset({80, 443})


def loopback_hosts(ports: Iterable[int]) -> frozenset[str]:
    """Return the Host values by which a program reaches these ports on this machine."""
    hosts: set[str] = set()
    for port in ports:
        hosts.update(f"{name}:{port}" for name in _LOOPBACK_NAMES)
        if port in _DEFAULT_PORTS:
            hosts.update(_LOOPBACK_NAMES)
    return frozenset(hosts)


class LoopbackGuard:
    """
    ASGI middleware: refuse with 403 what does not come from a program of this machine.

    Needs the true peer address: run uvicorn with `proxy_headers=False`.

    :param app: the application behind the guard.
    :param allowed_hosts: called for each request, because a port is known only once it is bound;
        see `loopback_hosts`.
    """

    def __init__(self, app: ASGIApp, allowed_hosts: Callable[[], Collection[str]]) -> None:
        self._app = app
        self._allowed_hosts = allowed_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        reason = self._reason_to_refuse(scope)
        if reason is None:
            await self._app(scope, receive, _without_cors(send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": reason})
        else:
            await _send_refusal(send, reason)

    def _reason_to_refuse(self, scope: Scope) -> str | None:
        return (
            _foreign_client(scope)
            or self._foreign_host(_header_values(scope, b"host"))
            or _sent_by_a_page(_header_values(scope, b"origin"), _header_values(scope, b"sec-fetch-site"))
        )

    def _foreign_host(self, hosts: list[str]) -> str | None:
        if len(hosts) == 1 and hosts[0].lower() in self._allowed_hosts():
            return None
        return f"Host is {hosts!r}; use 127.0.0.1, localhost or [::1] with the emulator's port."


def _foreign_client(scope: Scope) -> str | None:
    client = scope.get("client")
    if client is not None and _is_loopback(client[0]):
        return None
    return f"Requests come from this machine only, not from {client[0] if client else 'an unknown address'!r}."


def _is_loopback(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _sent_by_a_page(origins: list[str], sites: list[str]) -> str | None:
    if origins:
        return f"Requests of web pages are refused (Origin {origins[0]!r})."
    foreign = [site for site in sites if site.lower() not in {"none", "same-origin"}]
    return f"Requests of web pages are refused (Sec-Fetch-Site {foreign[0]!r})." if foreign else None


def _header_values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for key, value in scope["headers"] if key.lower() == name]


def _without_cors(send: Send) -> Send:
    """No page may ever be told that it may read an answer, whatever the application behind says."""

    async def send_without_cors(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [
                (name, value)
                for name, value in message.get("headers", ())
                if not bytes(name).lower().startswith(b"access-control-")
            ]
            message = {**message, "headers": kept}
        await send(message)

    return send_without_cors


async def _send_refusal(send: Send, reason: str) -> None:
    body = json.dumps(
        {"Code": REFUSAL_CODE, "Message": reason, "RequestId": str(uuid.uuid4()).upper()}, ensure_ascii=False
    ).encode()
    headers = [
        (b"content-type", b"application/json; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})
