"""One client per connection and process."""

from __future__ import annotations

import hashlib
import json
import logging
import multiprocessing
import sys
import threading
from dataclasses import asdict
from typing import Any

import pytest

from airflow_provider_pai_spot.exceptions import PaiDlcCredentialsError
from airflow_provider_pai_spot.hooks import dlc_client, sdk
from airflow_provider_pai_spot.hooks.connection import parse_connection
from airflow_provider_pai_spot.hooks.dlc_client import ClientCache, fingerprint
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook


@pytest.fixture
def settings(connection: Any) -> Any:
    return lambda **values: parse_connection(connection(**values))


def test_equal_settings_share_a_client(settings: Any, clock: Any) -> None:
    cache = ClientCache()
    assert cache.get(settings(), clock) is cache.get(settings(), clock)


@pytest.mark.parametrize(
    "other",
    [
        {"password": "rotated"},
        {"login": "another"},
        {"security_token": "t"},
        {"region_id": "cn-beijing"},
        {"workspace_id": "8"},
        {"role_arn": "r"},
        {"host": "h"},
        {"connect_timeout": 1},
    ],
    ids=lambda value: next(iter(value)),
)
def test_any_difference_is_another_client(settings: Any, other: Any) -> None:
    assert fingerprint(settings()) != fingerprint(settings(**other))


def test_a_fingerprint_tells_no_secret_and_is_salted(settings: Any) -> None:
    plain = hashlib.blake2b(json.dumps(asdict(settings()), sort_keys=True).encode(), digest_size=16)
    assert fingerprint(settings()) not in ("", plain.hexdigest())
    assert "planted" not in fingerprint(settings())


def test_threads_that_come_at_once_get_one_client(settings: Any, clock: Any) -> None:
    cache, barrier, got = ClientCache(), threading.Barrier(8), []

    def come() -> None:
        barrier.wait()
        got.append(cache.get(settings(), clock))

    threads = [threading.Thread(target=come) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(client) for client in got}) == 1


def test_the_client_unused_longest_goes_first(settings: Any, clock: Any) -> None:
    cache = ClientCache(kept=2)
    first = cache.get(settings(workspace_id="1"), clock)
    cache.get(settings(workspace_id="2"), clock)
    cache.get(settings(workspace_id="1"), clock)
    cache.get(settings(workspace_id="3"), clock)
    assert cache.get(settings(workspace_id="1"), clock) is first


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_forked_child_shares_neither_clients_nor_sockets_nor_a_held_lock(hook: Any, dlc: Any) -> None:
    dlc.script(dlc.answer(body={"JobId": "dlc1", "Status": "Running"}))
    client = hook()
    client.get_job("dlc1")
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()

    def child() -> None:
        from darabonba.core import DaraCore

        before = (len(dlc_client.CLIENTS._clients), len(DaraCore._sessions))
        results.put((before, client.get_job("dlc1")["Status"]))

    with dlc_client.CLIENTS._lock, sdk._lock:
        process = context.Process(target=child)
        process.start()
    process.join(30)
    process.kill()
    assert process.exitcode == 0
    assert results.get() == ((0, 0), "Running")
    assert client.get_job("dlc1")["Status"] == "Running"


def test_two_hooks_on_one_connection_have_one_fingerprint(connection: Any) -> None:
    hooks = [PaiDlcHook.from_connection(connection()) for _ in range(2)]
    assert len({hook.fingerprint for hook in hooks}) == 1
    assert PaiDlcHook.from_connection(connection(), workspace_id="9").fingerprint != hooks[0].fingerprint


def test_plain_http_to_another_machine_warns_once(
    connection: Any, clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    for _ in range(2):
        given = connection(host="dlc.example.com", protocol="http")
        assert PaiDlcHook.from_connection(given, clock=clock).endpoint == "dlc.example.com"
    assert caplog.text.count("travel readable") == 1


def test_plain_http_with_a_token_is_refused_before_anything_is_sent(connection: Any, clock: Any) -> None:
    given = connection(host="dlc.example.com", protocol="http", security_token="planted-token")
    with pytest.raises(PaiDlcCredentialsError, match=r"CreateJob at dlc\.example\.com.*was not sent") as raised:
        PaiDlcHook.from_connection(given, clock=clock).create_job({"DisplayName": "job"})
    assert "planted" not in str(raised.value)
    assert raised.value.__context__ is None


def test_a_chain_without_credentials_fails_as_credentials_error_through_the_sdk(hook: Any, dlc: Any) -> None:
    with pytest.raises(PaiDlcCredentialsError, match="source 'uri'"):
        hook(login=None, password=None, credential_source="uri").get_job("dlc1")
    assert dlc.seen == []
