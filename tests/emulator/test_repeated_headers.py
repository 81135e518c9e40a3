"""A header that is sent twice must not let the signed value hide the one that is read, as raw bytes over a socket."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from airflow_provider_pai_spot.emulator import DlcEmulator

EMPTY_HASH = hashlib.sha256(b"").hexdigest()
PATH = "/api/v1/jobs"


@pytest.fixture(scope="module")
def strict() -> Iterator[DlcEmulator]:
    with DlcEmulator(clock="manual", verify_signatures=True) as running:
        yield running


def signed_headers(emulator: DlcEmulator) -> list[tuple[str, str]]:
    """The headers of a ListJobs request, signed (ACS3-HMAC-SHA256)."""
    headers = {
        "host": emulator.endpoint,
        "x-acs-action": "ListJobs",
        "x-acs-content-sha256": EMPTY_HASH,
        "x-acs-date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "x-acs-signature-nonce": uuid.uuid4().hex,
        "x-acs-version": "2020-12-03",
    }
    names = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    canonical = f"GET\n{PATH}\n\n{lines}\n{names}\n{EMPTY_HASH}"
    to_sign = f"ACS3-HMAC-SHA256\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    signature = hmac.new(emulator.access_key_secret.encode(), to_sign.encode(), hashlib.sha256).hexdigest()
    authorization = f"ACS3-HMAC-SHA256 Credential={emulator.access_key_id},SignedHeaders={names},Signature={signature}"
    return [*headers.items(), ("authorization", authorization)]


def answer_to(emulator: DlcEmulator, headers: list[tuple[str, str]]) -> tuple[int, dict[str, Any]]:
    lines = [f"GET {PATH} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "connection: close", "", ""]
    with socket.create_connection(("127.0.0.1", emulator.port), timeout=20) as connection:
        connection.sendall("\r\n".join(lines).encode())
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def test_the_request_that_these_tests_change_is_accepted(strict: DlcEmulator) -> None:
    status, body = answer_to(strict, signed_headers(strict))
    assert (status, body["TotalCount"]) == (200, 0)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("X-Acs-Action", "CreateJob"),
        ("x-acs-date", "2020-01-01T00:00:00Z"),
        ("x-acs-version", "2019-01-01"),
        ("x-acs-signature-nonce", "used-before"),
        ("authorization", "ACS3-HMAC-SHA256 Credential=x,SignedHeaders=host,Signature=y"),
    ],
)
@pytest.mark.parametrize("first", [True, False], ids=["before the signed one", "after the signed one"])
def test_a_second_value_under_a_name_is_refused(strict: DlcEmulator, name: str, other: str, first: bool) -> None:
    headers = signed_headers(strict)
    headers.insert(0 if first else len(headers), (name, other))
    status, body = answer_to(strict, headers)
    assert (status, body.get("Code")) == (400, "IncompleteSignature")
    assert f"Header {name.lower()!r} was sent twice" in body["Message"]
