"""A clock without waiting, connections, and a server that answers what the emulator cannot: raw and broken bytes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from airflow.sdk import Connection

from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

ACCESS_KEY_ID = "LTAI-planted-id"
ACCESS_KEY_SECRET = "planted-access-key-secret"


class ManualClock:
    """Time passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.time = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.pass_(seconds)

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)

    def pass_(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@dataclass
class Answer:
    """What the server does with one request."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    announce_more: int = 0
    """Bytes announced and never sent."""
    hang_up: bool = False
    """Close the connection instead of answering."""
    silent: bool = False
    """Read the request and never answer."""

    def raw(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


class ScriptedDlc:
    """Answers requests in the order of its script; the last answer is repeated."""

    answer = Answer

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self._script: list[Answer] = [Answer()]
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.port: int = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def reset(self) -> None:
        self.seen.clear()
        self.script(Answer())

    def script(self, *answers: Answer) -> None:
        self._script = list(answers)

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def next_answer(self) -> Answer:
        return self._script.pop(0) if len(self._script) > 1 else self._script[0]

    def _handler(dlc) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler below
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                parts = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                query = {key: values[0] for key, values in parse_qs(parts.query).items()}
                headers = {key.lower(): value for key, value in self.headers.items()}
                dlc.seen.append(Seen(self.command, parts.path, query, headers, body))
                self.send(dlc.next_answer())

            def send(self, answer: Answer) -> None:
                self.close_connection = answer.silent or answer.hang_up or bool(answer.announce_more)
                if answer.silent:
                    dlc._closing.wait(30)
                if answer.silent or answer.hang_up:
                    return
                raw = answer.raw()
                self.send_response(answer.status)
                headers = {"content-type": "application/json", **answer.headers}
                for key, value in {**headers, "content-length": str(len(raw) + answer.announce_more)}.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(raw)

            do_GET = do_POST = do_DELETE = answer  # noqa: N815 - http.server looks for these names

            def log_message(self, *args: object) -> None:
                """Stay quiet."""

        return Handler


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK obeys HTTP(S)_PROXY and not NO_PROXY, so a proxy of this machine would catch loopback calls."""
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="session")
def scripted() -> Iterator[ScriptedDlc]:
    """One server for all tests: the SDK builds a TLS context, 0.1 s of CPU, for each new port, http or not."""
    server = ScriptedDlc()
    yield server
    server.close()


@pytest.fixture
def dlc(scripted: ScriptedDlc) -> ScriptedDlc:
    scripted.reset()
    return scripted


@pytest.fixture
def connection() -> Callable[..., Connection]:
    """Return a function that makes a `pai_dlc` connection; keywords that are not its own fields go into the extra."""

    def make(**values: Any) -> Connection:
        own = {"host": None, "port": None, "login": ACCESS_KEY_ID, "password": ACCESS_KEY_SECRET}
        own |= {key: values.pop(key) for key in list(values) if key in own}
        extra = json.dumps({"region_id": "cn-hangzhou", "workspace_id": "7", **values})
        return Connection(conn_id="pai_test", conn_type="pai_dlc", extra=extra, **own)

    return make


@pytest.fixture
def hook(dlc: ScriptedDlc, clock: ManualClock, connection: Callable[..., Connection]) -> Callable[..., PaiDlcHook]:
    """Return a function that makes a hook on the scripted server."""

    def make(**values: Any) -> PaiDlcHook:
        rules = values.pop("retry_rules", None)
        target = {"host": "127.0.0.1", "port": dlc.port, "protocol": "http", **values}
        return PaiDlcHook.from_connection(connection(**target), clock=clock, retry_rules=rules)

    return make
