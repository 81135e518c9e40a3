"""Between socket and service: who calls, how large the request is, and what is scripted to go wrong on the way."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from datetime import UTC, datetime
from typing import Any

from starlette.datastructures import Headers

from airflow_provider_pai_spot.emulator.errors import DlcError, invalid_parameter
from airflow_provider_pai_spot.emulator.faults import Fault, FaultKind
from airflow_provider_pai_spot.emulator.operations import operation_of
from airflow_provider_pai_spot.emulator.service import DlcService
from airflow_provider_pai_spot.emulator.signature import NonceStore, SignatureError, verify_v3

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Hangup = Callable[[Scope], None]

API = "/api/"
_CREDENTIAL = re.compile(r"Credential=([^,\s]+)")
_HTML = b"<html><head><title>502 Bad Gateway</title></head><body>Bad Gateway</body></html>"


class Gate:
    """
    ASGI middleware in front of DLC's operations.

    :param app: the operations.
    :param service: journal, faults, identities and limits.
    :param verify_signatures: whether a request must be signed with a known key.
    :param hang_up: closes the connection a request came over.
    """

    def __init__(self, app: ASGIApp, service: DlcService, *, verify_signatures: bool, hang_up: Hangup) -> None:
        self._app = app
        self._service = service
        self._verify = verify_signatures
        self._hang_up = hang_up
        self._nonces = NonceStore()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let it break as scripted."""
        if scope["type"] != "http" or not scope["path"].startswith(API):
            await self._app(scope, receive, send)
            return
        headers = Headers(raw=scope["headers"])  # keeps repeated names, which a signature must not hide
        operation = headers.get("x-acs-action") or operation_of(scope["method"], scope["path"])
        self._service.simulation.journal.requests[operation] += 1
        faults = self._service.faults.take_between(operation)
        self._write_down(operation, faults)
        await asyncio.sleep(sum(fault.seconds for fault in faults if fault.kind is FaultKind.DELAY))
        breaking = next((fault for fault in faults if fault.kind is not FaultKind.DELAY), None)
        await self._through(breaking, headers, scope, receive, send)

    async def _through(
        self, fault: Fault | None, headers: Mapping[str, str], scope: Scope, receive: Receive, send: Send
    ) -> None:
        if fault is None:
            await self._serve(headers, scope, receive, send)
        elif fault.kind is FaultKind.DROP:
            await self._break(scope, receive)
        elif fault.kind is FaultKind.LOST_ANSWER:
            await self._serve(headers, scope, receive, _into_the_void)
            await self._break(scope, receive)
        elif fault.kind is FaultKind.HTML_ERROR:
            await _answer(send, fault.http_status, _HTML, [(b"content-type", b"text/html")])
        else:
            await _answer_fault(send, fault)

    async def _serve(self, headers: Mapping[str, str], scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await self._read(receive)
            scope["emulator.caller"] = self._caller(headers, scope, body)
        except DlcError as error:
            await _answer_error(send, error)
            return
        await self._app(scope, _replay(body, receive), send)

    async def _read(self, receive: Receive) -> bytes:
        limit = int(self._service.behaviours["request_limit_bytes"])
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > limit:
                raise invalid_parameter(f"The request is larger than {limit} bytes.")
        return body

    def _caller(self, headers: Mapping[str, str], scope: Scope, body: bytes) -> str:
        if not self._verify:
            found = _CREDENTIAL.search(headers.get("authorization", ""))
            return found.group(1) if found else "anonymous"
        try:
            return verify_v3(
                scope["method"],
                scope["raw_path"].decode("latin-1"),
                scope["query_string"].decode("latin-1"),
                headers,
                body,
                self._service.identities.secret_of,
                datetime.now(UTC),
                self._nonces,
            )
        except SignatureError as error:
            raise DlcError(error.status, error.code, error.message) from error

    async def _break(self, scope: Scope, receive: Receive) -> None:
        self._hang_up(scope)
        while (await receive())["type"] != "http.disconnect":
            pass

    def _write_down(self, operation: str, faults: list[Fault]) -> None:
        simulation = self._service.simulation
        for fault in faults:
            now = simulation.timeline.clock.now()
            simulation.journal.write(now, "fault", operation=operation, fault=fault.kind.value)


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _into_the_void(message: Message) -> None:
    """Swallow an answer that will never arrive."""


async def _answer(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})


async def _answer_error(send: Send, error: DlcError, extra: list[tuple[bytes, bytes]] | None = None) -> None:
    body = json.dumps(error.body(request_id())).encode()
    await _answer(send, error.status, body, [(b"content-type", b"application/json"), *(extra or [])])


async def _answer_fault(send: Send, fault: Fault) -> None:
    extra = []
    if fault.retry_after is not None:
        extra.append((b"x-acs-retry-after", str(fault.retry_after).encode()))
    message = "Request was denied due to user flow control." if fault.kind is FaultKind.THROTTLE else "Try again."
    await _answer_error(send, DlcError(fault.http_status, fault.error_code, message), extra)


def request_id() -> str:
    """Return a new RequestId."""
    return str(uuid.uuid4()).upper()
