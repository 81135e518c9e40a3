from __future__ import annotations

import http.server
import socket
import ssl
import stat
import threading
from typing import TYPE_CHECKING

import pytest

from airflow_provider_pai_spot.emulator.tls import self_signed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return self_signed(tmp_path_factory.mktemp("tls") / "new")


def server_context(pair: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    return context


def handshake(pair: tuple[Path, Path], name: str) -> str | None:
    """Shake hands as strictly as Python 3.13 does by default; return the version agreed on."""
    client_context = ssl.create_default_context(cafile=str(pair[0]))
    client_context.verify_flags |= ssl.VERIFY_X509_STRICT
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(20)
        server = threading.Thread(target=_serve_one, args=(server_context(pair), theirs))
        server.start()
        try:
            with client_context.wrap_socket(ours, server_hostname=name) as wrapped:
                return wrapped.version()
        finally:
            ours.close()
            server.join()


def _serve_one(context: ssl.SSLContext, connection: socket.socket) -> None:
    connection.settimeout(20)
    try:
        with context.wrap_socket(connection, server_side=True) as wrapped:
            wrapped.recv(1)
    except OSError:  # the client hung up: what it saw is what the test asserts
        return


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1"])
def test_a_strict_client_trusts_it_for_this_machine(pair: tuple[Path, Path], name: str) -> None:
    assert handshake(pair, name) == "TLSv1.3"


@pytest.mark.parametrize("name", ["pai-dlc.cn-hangzhou.aliyuncs.com", "127.0.0.2"])
def test_nobody_trusts_it_for_anything_else(pair: tuple[Path, Path], name: str) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(pair, name)


def test_the_key_is_its_owners_alone(pair: tuple[Path, Path]) -> None:
    assert stat.S_IMODE(pair[1].stat().st_mode) == 0o600


def test_a_second_call_replaces_both_and_they_still_fit(tmp_path: Path) -> None:
    first = self_signed(tmp_path)
    before = first[0].read_bytes()
    second = self_signed(tmp_path)
    assert second == first
    assert second[0].read_bytes() != before
    assert handshake(second, "localhost") is not None


def test_a_link_in_the_keys_place_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    folder = tmp_path / "tls"
    folder.mkdir()
    (folder / "emulator-key.pem").symlink_to(target)
    self_signed(folder)
    assert target.read_text() == "precious"


class _Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        body = b'{"JobId": "dlc1", "RequestId": "r"}'
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Stay silent."""


@pytest.fixture
def https_port(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    for name in ("HTTPS_PROXY", "https_proxy"):  # the SDK obeys them even for this machine
        monkeypatch.delenv(name, raising=False)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        server.socket = server_context(pair).wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_the_vendors_client_connects_with_the_certificate_as_its_ca(
    pair: tuple[Path, Path], https_port: int, asynchronous: bool
) -> None:
    from alibabacloud_pai_dlc20201203.client import Client
    from alibabacloud_pai_dlc20201203.models import GetJobRequest
    from alibabacloud_tea_openapi.utils_models import Config

    config = Config(endpoint=f"127.0.0.1:{https_port}", access_key_id="ak", access_key_secret="sk", ca=str(pair[0]))
    client, request = Client(config), GetJobRequest()
    answer = await client.get_job_async("dlc1", request) if asynchronous else client.get_job("dlc1", request)
    assert answer.body.job_id == "dlc1"
