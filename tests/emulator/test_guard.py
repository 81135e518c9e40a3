from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from airflow_provider_pai_spot.emulator.guard import REFUSAL_CODE, LoopbackGuard, loopback_hosts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


async def careless_app(scope: Any, _receive: Any, send: Any) -> None:
    """Answers everybody, and tells browsers that any page may read it."""
    assert scope["type"] == "http"
    headers = [(b"Access-Control-Allow-Origin", b"*"), (b"content-length", b"2"), (b"x-kept", b"yes")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"hi"})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        app = LoopbackGuard(careless_app, lambda: loopback_hosts([port]))
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="error", proxy_headers=False, ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield port
        server.should_exit = True
        thread.join()


def request(port: int, headers: Mapping[str, str]) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.putrequest("POST", "/api/v1/jobs", skip_host=True)
        for name, value in headers.items():
            connection.putheader(name, value.format(port=port))
        connection.endheaders()
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Host": "127.0.0.1:{port}"}, id="IPv4"),
        pytest.param({"Host": "localhost:{port}"}, id="localhost"),
        pytest.param({"Host": "LOCALHOST:{port}"}, id="case does not matter"),
        pytest.param({"Host": "[::1]:{port}"}, id="IPv6"),
        pytest.param({"Host": "localhost:{port}", "Sec-Fetch-Site": "none"}, id="typed into a browser"),
        pytest.param({"Host": "localhost:{port}", "Sec-Fetch-Site": "same-origin"}, id="the emulator's own page"),
    ],
)
def test_a_program_of_this_machine_passes(port: int, headers: dict[str, str]) -> None:
    status, _, body = request(port, headers)
    assert (status, body) == (200, b"hi")


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Host": "attacker.example:{port}"}, id="a name bound to this address"),
        pytest.param({"Host": "127.0.0.1"}, id="no port"),
        pytest.param({"Host": "127.0.0.1:1"}, id="another port"),
        pytest.param({"Host": "127.0.0.1:{port}.attacker.example"}, id="a name that begins well"),
        pytest.param({"Host": "localhost.attacker.example:{port}"}, id="a name that begins with localhost"),
        pytest.param({"Host": "0.0.0.0:{port}"}, id="the address of all addresses"),
        pytest.param({"Host": ""}, id="empty"),
        pytest.param({"Host": "localhost:{port}", "Origin": "https://attacker.example"}, id="a page elsewhere"),
        pytest.param({"Host": "localhost:{port}", "Origin": "null"}, id="a page that hides where it is from"),
        pytest.param({"Host": "localhost:{port}", "Origin": "http://localhost:{port}"}, id="even a page of ours"),
        pytest.param({"Host": "localhost:{port}", "Sec-Fetch-Site": "cross-site"}, id="an image of a page"),
        pytest.param({"Host": "localhost:{port}", "Sec-Fetch-Site": "same-site"}, id="a page on another port"),
    ],
)
def test_a_browsers_page_is_refused_in_dlcs_shape(port: int, headers: dict[str, str]) -> None:
    status, answer_headers, body = request(port, headers)
    answer = json.loads(body)
    assert (status, answer["Code"]) == (403, REFUSAL_CODE)
    assert set(answer) == {"Code", "Message", "RequestId"}
    assert answer_headers.get_content_type() == "application/json"


@pytest.mark.parametrize("origin", [None, "https://attacker.example"])
def test_no_answer_ever_carries_a_cors_header(port: int, origin: str | None) -> None:
    _, headers, _ = request(port, {"Host": "localhost:{port}"} | ({"Origin": origin} if origin else {}))
    assert not [name for name in headers if name.lower().startswith("access-control-")]


def test_other_headers_of_the_application_stay(port: int) -> None:
    assert request(port, {"Host": "localhost:{port}"})[1]["x-kept"] == "yes"


def answers(scope: Mapping[str, Any]) -> list[Any]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    guard = LoopbackGuard(careless_app, lambda: loopback_hosts([8080]))
    asyncio.run(guard(dict(scope), receive, send))
    return sent


@pytest.mark.parametrize(
    ("client", "status"),
    [
        (("127.0.0.1", 5), 200),
        (("127.8.9.10", 5), 200),
        (("::1", 5), 200),
        (("::ffff:127.0.0.1", 5), 200),
        (("192.168.1.5", 5), 403),
        (("10.0.0.1", 5), 403),
        (("::ffff:10.0.0.1", 5), 403),
        (("2001:db8::1", 5), 403),
        (("not-an-address", 5), 403),
        (None, 403),
    ],
    ids=str,
)
def test_the_peer_must_be_this_machine(client: tuple[str, int] | None, status: int) -> None:
    scope = {"type": "http", "client": client, "headers": [(b"host", b"localhost:8080")]}
    assert answers(scope)[0]["status"] == status


@pytest.mark.parametrize("hosts", [[], [b"localhost:8080", b"attacker.example"]], ids=["none", "two"])
def test_exactly_one_host_is_needed(hosts: list[bytes]) -> None:
    scope = {"type": "http", "client": ("127.0.0.1", 5), "headers": [(b"host", host) for host in hosts]}
    assert answers(scope)[0]["status"] == 403


def test_a_pages_websocket_is_closed_before_it_opens() -> None:
    headers = [(b"host", b"localhost:8080"), (b"origin", b"https://attacker.example")]
    scope = {"type": "websocket", "client": ("127.0.0.1", 5), "headers": headers}
    assert [message["type"] for message in answers(scope)] == ["websocket.close"]


def test_the_default_ports_need_no_number_in_the_host() -> None:
    assert "localhost" in loopback_hosts([443])
    assert "localhost" not in loopback_hosts([8080])
