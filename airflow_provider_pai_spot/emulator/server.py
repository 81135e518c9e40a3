"""uvicorn in a thread: starts when asked, is ready when `start` returns, leaves nothing when stopped."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

if TYPE_CHECKING:
    from airflow_provider_pai_spot.emulator.gate import ASGIApp

_GRACE_SECONDS = 1
_START_SECONDS = 30.0
_LOOK_SECONDS = 0.2


class OpenConnections:
    """The transports of connections that are open, by the client's address, so that one can be cut."""

    def __init__(self) -> None:
        self._transports: dict[Any, asyncio.Transport] = {}

    def opened(self, transport: asyncio.Transport) -> Any:
        """Remember a connection; returns what `closed` needs."""
        client = _address(transport.get_extra_info("peername"))
        self._transports[client] = transport
        return client

    def closed(self, client: Any) -> None:
        """Forget a connection."""
        self._transports.pop(client, None)

    def cut(self, scope: MutableMapping[str, Any]) -> None:
        """Close the connection a request came over, at once and without an answer."""
        self._transports[_address(scope["client"])].abort()


def _address(client: Any) -> tuple[str, int]:
    return str(client[0]), int(client[1])


def _remembering(connections: OpenConnections) -> type[asyncio.Protocol]:
    """Return uvicorn's HTTP protocol with its connections remembered."""
    base: Any = AutoHTTPProtocol

    class RememberingProtocol(base):  # type: ignore[misc]
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._pai_spot_client = connections.opened(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            connections.closed(self._pai_spot_client)
            super().connection_lost(exc)

    return RememberingProtocol


class _ReadyServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


class ServerThread:
    """
    A listening socket, and a thread that serves it.

    The port is bound at once, so that it is known before anything runs.

    :param host: address to listen on.
    :param port: port to listen on; 0: a free one.
    :param certificate: certificate and key files for https.
    """

    def __init__(self, host: str, port: int, certificate: tuple[Path, Path] | None = None) -> None:
        self.connections = OpenConnections()
        self._certificate = certificate
        self._socket = socket.create_server((host, port), family=_family(host), backlog=1024)
        self.port = int(self._socket.getsockname()[1])
        self._server: _ReadyServer | None = None
        self._thread: threading.Thread | None = None

    def start(self, app: ASGIApp) -> None:
        """Serve `app`; returns when it can be called. Raises RuntimeError if the server does not come up."""
        certificate, key = self._certificate or (None, None)
        config = uvicorn.Config(
            app,
            http=_remembering(self.connections),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            timeout_keep_alive=60,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        server = self._server = _ReadyServer(config)
        self._thread = threading.Thread(
            target=server.run, kwargs={"sockets": [self._socket]}, name="dlc-emulator", daemon=True
        )
        self._thread.start()
        if not self._came_up(server.ready, self._thread):
            self.stop()
            raise RuntimeError(f"The DLC emulator did not come up on port {self.port}.")

    def _came_up(self, ready: threading.Event, thread: threading.Thread) -> bool:
        deadline = time.monotonic() + _START_SECONDS
        while not ready.wait(_LOOK_SECONDS):
            if not thread.is_alive() or time.monotonic() > deadline:
                return False
        return True

    def stop(self) -> None:
        """End the thread and close every socket."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
        self._socket.close()
        self._server = self._thread = None


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
