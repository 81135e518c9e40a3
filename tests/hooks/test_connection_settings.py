"""What a connection may say, and what each mistake is answered with."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from airflow.sdk import Connection
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.exceptions import PaiDlcCredentialsError, PaiDlcError
from airflow_provider_pai_spot.hooks.connection import (
    DEFAULT_CONSOLE_BASE_URL,
    is_loopback,
    parse_connection,
)


@pytest.mark.parametrize(
    ("host", "port", "protocol", "expected"),
    [
        pytest.param(None, None, None, ("https", ""), id="no host: the SDK's endpoint, https"),
        pytest.param("dlc.example.com", None, None, ("https", "dlc.example.com"), id="host"),
        pytest.param("dlc.example.com", 8443, None, ("https", "dlc.example.com:8443"), id="host and port field"),
        pytest.param("dlc.example.com:1", 2, None, ("https", "dlc.example.com:1"), id="the host's own port wins"),
        pytest.param("http://127.0.0.1", 9001, None, ("http", "127.0.0.1:9001"), id="a scheme is the protocol"),
        pytest.param("https://dlc.example.com/", None, "https", ("https", "dlc.example.com"), id="scheme agrees"),
        pytest.param("::1", 9001, "http", ("http", "[::1]:9001"), id="IPv6 gets its brackets"),
        pytest.param("[::1]:9001", None, "http", ("http", "[::1]:9001"), id="IPv6 with port"),
    ],
)
def test_endpoint_and_protocol(connection: Any, host: Any, port: Any, protocol: Any, expected: Any) -> None:
    extra = {} if protocol is None else {"protocol": protocol}
    settings = parse_connection(connection(host=host, port=port, **extra))
    assert (settings.protocol, settings.endpoint) == expected


@pytest.mark.parametrize(
    ("values", "named"),
    [
        pytest.param({"host": "dlc.example.com/path"}, ["endpoint", "dlc.example.com/path"], id="path"),
        pytest.param({"host": "user@dlc.example.com"}, ["endpoint", "host or host:port"], id="user"),
        pytest.param({"host": "ftp://dlc.example.com"}, ["endpoint", "ftp"], id="scheme"),
        pytest.param({"host": "http://a.b", "protocol": "https"}, ["http://", "'https'"], id="two protocols"),
        pytest.param({"protocol": "gopher"}, ["protocol", "'gopher'", "https, http"], id="protocol"),
        pytest.param({"credential_source": "magic"}, ["credential_source", "'magic'", "rrsa"], id="source"),
        pytest.param({"connect_timeout": "5s"}, ["connect_timeout", "'5s'", "milliseconds"], id="unit"),
        pytest.param({"read_timeout": 0}, ["read_timeout", "'0'"], id="zero"),
        pytest.param({"region_id": "Hangzhou!"}, ["region_id", "'Hangzhou!'", "cn-hangzhou"], id="region"),
        pytest.param({"region_id": None}, ["region_id", "endpoint", "Region ID"], id="nowhere to go"),
        pytest.param({"network": "vpc.example.com/"}, ["network", "'vpc.example.com/'", "vpc"], id="network"),
        pytest.param({"network": "VPC"}, ["network", "'VPC'"], id="network in capitals"),
        pytest.param({"network": "v" * 33}, ["network", "'vvv"], id="network of 33 characters"),
    ],
)
def test_a_wrong_field_is_named_with_its_value_and_what_is_allowed(connection: Any, values: Any, named: Any) -> None:
    with pytest.raises(PaiDlcError) as raised:
        parse_connection(connection(**values))
    assert all(word in str(raised.value) for word in ["pai_test", *named])


@pytest.mark.parametrize("extra", ["{not json", '["a list"]', '"text"', "5"])
def test_an_extra_that_is_not_an_object_is_refused_without_being_shown(extra: Any) -> None:
    connection = Connection(conn_id="pai_test", conn_type="pai_dlc", extra=extra)
    with pytest.raises(PaiDlcError, match="not a JSON object") as raised:
        parse_connection(connection)
    assert extra not in str(raised.value)
    assert raised.value.__context__ is None


@pytest.mark.parametrize(
    ("values", "empty"),
    [
        pytest.param({"password": None}, "'AccessKey Secret' empty", id="no secret"),
        pytest.param({"login": ""}, "'AccessKey ID' empty", id="no id"),
        pytest.param(
            {"login": None, "password": None, "credential_source": "access_key"},
            "'AccessKey ID' and 'AccessKey Secret' empty",
            id="access_key without a pair",
        ),
        pytest.param(
            {"login": None, "password": None, "security_token": "planted-token"},
            "'Security token' is filled",
            id="a token alone",
        ),
    ],
)
def test_half_a_pair_is_an_error_that_names_the_empty_field_and_both_ways_out(
    connection: Any, values: Any, empty: Any
) -> None:
    with pytest.raises(PaiDlcCredentialsError) as raised:
        parse_connection(connection(**values))
    message = str(raised.value)
    assert empty in message
    assert "Fill it, or empty" in message
    assert "credential_source to auto" in message


@pytest.mark.parametrize("source", ["rrsa", "ecs_ram_role", "profile", "uri"])
def test_a_source_outside_the_connection_needs_no_pair(connection: Any, source: Any) -> None:
    settings = parse_connection(connection(login=None, password=None, credential_source=source))
    assert settings.credential_source == source


def test_no_pair_at_all_means_the_default_chain(connection: Any) -> None:
    settings = parse_connection(connection(login=None, password=None))
    assert (settings.credential_source, settings.has_access_key) == ("auto", False)


def test_arguments_override_the_connection(connection: Any) -> None:
    settings = parse_connection(connection(), region_id="cn-wulanchabu", workspace_id="99")
    assert (settings.region_id, settings.workspace_id) == ("cn-wulanchabu", "99")


@pytest.mark.parametrize(
    "region_id",
    ["x@127.0.0.1:8080/", "evil.example.com#", "evil.example.com/x?", "cn-hangzhou.example.com", "EVIL", "r" * 65],
)
def test_an_argument_cannot_choose_the_host_that_signed_requests_go_to(connection: Any, region_id: str) -> None:
    with pytest.raises(PaiDlcError) as raised:
        parse_connection(connection(), region_id=region_id)
    message = str(raised.value)
    assert all(word in message for word in ["pai_test", "argument region_id", repr(region_id), "cn-hangzhou"])


@given(st.text(max_size=40))
def test_any_region_and_network_that_are_accepted_keep_to_the_characters_of_a_host_label(text: Any) -> None:
    extra = json.dumps({"region_id": "r", "network": text})
    connection = Connection(conn_id="c", conn_type="pai_dlc", login="i", password="s", extra=extra)
    try:
        settings = parse_connection(connection, region_id=text)
    except PaiDlcError:
        return
    assert re.fullmatch(r"[a-z0-9-]*", settings.region_id + settings.network)


def test_a_regional_endpoint_tells_the_region(connection: Any) -> None:
    settings = parse_connection(connection(host="pai-dlc-vpc.cn-beijing.aliyuncs.com", region_id=None))
    assert settings.region_id == "cn-beijing"


def test_empty_form_fields_are_absent_fields(connection: Any) -> None:
    fields = {"protocol": "", "network": None, "connect_timeout": "", "console_base_url": " ", "namespace": ""}
    settings = parse_connection(connection(**fields))
    assert settings.protocol == "https"
    assert settings.connect_timeout is None
    assert settings.console_base_url == DEFAULT_CONSOLE_BASE_URL


def test_misspelt_extras_are_remembered_for_the_test_button(connection: Any) -> None:
    assert parse_connection(connection(regionid="x", name_space="y")).unknown_extras == ("name_space", "regionid")


def test_the_repr_shows_no_secret(connection: Any) -> None:
    settings = parse_connection(
        connection(
            security_token="planted-token",
            http_proxy="http://u:planted-p@proxy",
            https_proxy="http://u:planted-p@proxy",
        )
    )
    assert "planted-access-key-secret" not in repr(settings)
    assert "planted-token" not in repr(settings)
    assert "planted-p" not in repr(settings)


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ("127.0.0.1:9001", True),
        ("127.8.9.10", True),
        ("localhost", True),
        ("LocalHost:80", True),
        ("[::1]:9001", True),
        ("", False),
        ("10.0.0.1", False),
        ("127.0.0.1.example.com", False),
        ("localhost.example.com:80", False),
    ],
)
def test_loopback(endpoint: Any, expected: Any) -> None:
    assert is_loopback(endpoint) is expected


@given(st.text(max_size=40))
def test_any_host_is_either_understood_or_refused_with_our_own_error(host: Any) -> None:
    connection = Connection(
        conn_id="c", conn_type="pai_dlc", host=host, login="i", password="s", extra='{"region_id": "r"}'
    )
    try:
        settings = parse_connection(connection)
    except PaiDlcError:
        return
    assert not set(settings.endpoint) & set("/@ \t\n?#")
