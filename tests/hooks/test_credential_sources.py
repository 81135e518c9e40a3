"""Where credentials come from, what is remembered, and what is never sent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_pai_spot.exceptions import PaiDlcCredentialsError
from airflow_provider_pai_spot.hooks import sdk
from airflow_provider_pai_spot.hooks.connection import parse_connection
from airflow_provider_pai_spot.hooks.credentials import (
    FAILURE_REMEMBERED_FOR,
    FirstThatWorks,
    RememberedCredential,
    provider_finder,
)

ROLE = "acs:ram::1:role/airflow"


class Providers:
    """Stands for the SDK's provider module: each constructor returns its own name and arguments."""

    def __getattr__(self, name: str) -> Any:
        return lambda **arguments: (name.removesuffix("CredentialsProvider"), arguments)


class Source:
    """A provider that fails or gives what it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.error: Exception | None = None
        self.token = ""
        self.before_answering: Callable[[], object] = lambda: None

    def __call__(self, *, provider: Any) -> Source:
        del provider
        return self

    def get_credential(self) -> SimpleNamespace:
        self.asked += 1
        self.before_answering()
        if self.error:
            raise self.error
        return SimpleNamespace(access_key_id="id", access_key_secret="s3cret", security_token=self.token)


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def credential(source: Any, clock: Any, connection: Any) -> Any:
    def make(**values: Any) -> Any:
        settings = parse_connection(connection(login=None, password=None, **values))
        return RememberedCredential(settings, lambda: None, source, clock)

    return make


PAIR = {"access_key_id": "LTAI-planted-id", "access_key_secret": "planted-access-key-secret"}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({}, ("StaticAK", PAIR), id="the pair"),
        pytest.param({"credential_source": "access_key"}, ("StaticAK", PAIR), id="the pair by name"),
        pytest.param(
            {"security_token": "planted-token"},
            ("StaticSTS", {**PAIR, "security_token": "planted-token"}),
            id="the pair with a token",
        ),
        pytest.param(
            {"role_arn": ROLE},
            (
                "RamRoleArn",
                {
                    "credentials_provider": ("StaticAK", PAIR),
                    "role_arn": ROLE,
                    "role_session_name": "airflow-provider-pai-spot",
                },
            ),
            id="a role assumed with the pair",
        ),
        pytest.param(
            {"credential_source": "uri", "role_arn": ROLE, "role_session_name": "nightly"},
            (
                "RamRoleArn",
                {"credentials_provider": ("URL", {}), "role_arn": ROLE, "role_session_name": "nightly"},
            ),
            id="a role assumed with what a source gives",
        ),
        pytest.param(
            {"credential_source": "rrsa", "role_arn": ROLE},
            ("OIDCRoleArn", {"role_arn": ROLE, "role_session_name": None}),
            id="rrsa takes the role itself",
        ),
        pytest.param({"credential_source": "ecs_ram_role"}, ("EcsRamRole", {"async_update_enabled": False}), id="ecs"),
        pytest.param({"credential_source": "uri"}, ("URL", {}), id="uri"),
    ],
)
def test_the_connection_decides_the_provider(connection: Any, values: Any, expected: Any) -> None:
    assert provider_finder(parse_connection(connection(**values)), Providers())() == expected


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, "static_ak"),
        ({"security_token": "t"}, "static_sts"),
        ({"role_arn": ROLE}, "ram_role_arn"),
        ({"login": None, "password": None}, "default"),
        ({"credential_source": "profile"}, "default"),
    ],
)
def test_the_real_sdk_accepts_what_it_is_given(connection: Any, values: Any, name: Any) -> None:
    provider = provider_finder(parse_connection(connection(**values)), sdk.load().providers)()
    assert name in provider.get_provider_name()


class Place:
    """A provider that has credentials, or says why not."""

    def __init__(self, name: str, credentials: str = "") -> None:
        self.name, self.credentials, self.asked = name, credentials, 0

    def __call__(self) -> Place:
        return self

    def get_credentials(self) -> str:
        self.asked += 1
        if not self.credentials:
            raise FileNotFoundError(f"nothing in {self.name}")
        return self.credentials

    def get_provider_name(self) -> str:
        return self.name


def test_the_first_place_that_has_credentials_is_kept() -> None:
    empty, full, never = Place("a"), Place("b", "found"), Place("c", "other")
    chain = FirstThatWorks([empty, full, never])
    assert [chain.get_credentials(), chain.get_credentials()] == ["found", "found"]
    assert (empty.asked, full.asked, never.asked) == (1, 2, 0)
    assert chain.get_provider_name() == "b"


def test_a_place_that_stops_working_starts_the_search_over() -> None:
    first, second = Place("a", "one"), Place("b", "two")
    chain = FirstThatWorks([first, second])
    chain.get_credentials()
    first.credentials = ""
    with pytest.raises(FileNotFoundError):
        chain.get_credentials()
    assert chain.get_credentials() == "two"


def test_a_chain_that_finds_nothing_gives_each_reason() -> None:
    def not_configured() -> None:
        raise ValueError("c is not configured")

    with pytest.raises(LookupError, match=r"nothing in a; nothing in b; c is not configured"):
        FirstThatWorks([Place("a"), Place("b"), not_configured]).get_credentials()


def test_the_default_chain_has_the_order_of_the_sdks_own(connection: Any) -> None:
    asked = []

    class Recording:
        def __getattr__(self, name: Any) -> Any:
            def build(**_arguments: Any) -> None:
                asked.append(name.removesuffix("CredentialsProvider"))
                raise ValueError(name)

            return build

    settings = parse_connection(connection(login=None, password=None))
    with pytest.raises(LookupError):
        provider_finder(settings, Recording())().get_credentials()
    assert asked == ["EnvironmentVariable", "OIDCRoleArn", "CLIProfile", "Profile", "EcsRamRole", "URL"]


def test_a_failed_source_is_not_asked_again_for_a_minute(credential: Any, source: Any, clock: Any) -> None:
    source.error = LookupError("nothing in the chain")
    failing = credential()
    for _ in range(3):
        with pytest.raises(PaiDlcCredentialsError, match="nothing in the chain"):
            failing.get_credential()
    assert source.asked == 1
    clock.pass_(FAILURE_REMEMBERED_FOR)
    source.error = None
    assert failing.get_credential().access_key_id == "id"
    assert source.asked == 2


def test_a_source_that_works_is_asked_each_time_because_tokens_expire(credential: Any, source: Any) -> None:
    working = credential()
    working.get_credential()
    working.get_credential()
    assert source.asked == 2
    assert working.secrets() == ("s3cret",)


def test_a_provider_that_cannot_be_built_is_a_credentials_error_too(connection: Any, clock: Any, source: Any) -> None:
    def find() -> None:
        raise ValueError("oidc_provider_arn or environment variable ... cannot be empty")

    settings = parse_connection(connection(login=None, password=None, credential_source="rrsa"))
    with pytest.raises(PaiDlcCredentialsError, match=r"source 'rrsa'.*oidc_provider_arn") as raised:
        RememberedCredential(settings, find, source, clock).get_credential()
    assert (raised.value.__context__, raised.value.__cause__) == (None, None)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(
            'error refreshing from http://c, http_code=500, result: {"AccessKeySecret": "planted", "Code": "Busy"}',
            "code Busy",
            id="the answer of a credentials service",
        ),
        pytest.param(
            "Max retries exceeded with url: /?Signature=planted&SecurityToken=planted (Caused by X)",
            "(hidden) (Caused by X)",
            id="the signed URL of a call to STS",
        ),
        pytest.param("", "LookupError", id="nothing"),
    ],
)
def test_what_a_failed_source_says_is_told_without_secrets(credential: Any, source: Any, text: Any, shown: Any) -> None:
    source.error = LookupError(text)
    with pytest.raises(PaiDlcCredentialsError) as raised:
        credential().get_credential()
    assert shown in str(raised.value)
    assert "planted" not in str(raised.value)


@pytest.mark.parametrize(
    ("target", "token", "sent"),
    [
        ({"host": "dlc.example.com", "protocol": "http"}, "planted-token", False),
        ({"host": "dlc.example.com", "protocol": "http"}, "", True),
        ({"host": "dlc.example.com", "protocol": "https"}, "planted-token", True),
        ({"host": "127.0.0.1:9001", "protocol": "http"}, "planted-token", True),
        ({"host": None, "protocol": "http"}, "planted-token", False),
    ],
)
def test_a_security_token_never_travels_in_clear(
    credential: Any, source: Source, target: Any, token: str, sent: bool
) -> None:
    source.token = token
    given = credential(**target)
    if sent:
        assert given.get_credential().security_token == token
        return
    with pytest.raises(PaiDlcCredentialsError, match="nothing was sent") as raised:
        given.get_credential()
    assert "planted" not in str(raised.value)


async def test_the_async_side_leaves_the_loop_free_while_a_source_is_slow(credential: Any, source: Source) -> None:
    loop_moves_on = threading.Event()
    source.before_answering = lambda: loop_moves_on.wait(10)
    waiting = asyncio.create_task(credential().get_credential_async())
    await asyncio.sleep(0)
    loop_moves_on.set()
    assert (await waiting).access_key_id == "id"
