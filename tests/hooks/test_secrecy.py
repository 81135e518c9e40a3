"""Secrets are planted and looked for: in exceptions, whatever one does with them, and in everything logged."""

from __future__ import annotations

import logging
import pickle
import traceback
from typing import Any

import pytest
from airflow.sdk._shared.secrets_masker import redact

from airflow_provider_pai_spot.exceptions import PaiDlcError
from airflow_provider_pai_spot.hooks import sdk
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.hooks.retrying import RetryRules

SECRET = "planted-access-key-secret"
TOKEN = "planted-security-token"
ENV = "planted-env-value"
PLANTED = (SECRET, TOKEN, ENV, "ACS3-HMAC-SHA256")
BODY = {"DisplayName": "job", "Envs": {"WANDB_API_KEY": ENV}}

FAILURES = [
    pytest.param({"status": 400, "body": {"Code": "InvalidParameter", "Message": "no"}}, id="4xx"),
    pytest.param({"status": 500, "body": {"Code": "InternalError", "Message": "no"}}, id="5xx"),
    pytest.param({"status": 429, "body": {}, "headers": {"x-acs-retry-after": "1"}}, id="throttled"),
    pytest.param({"status": 502, "body": b"<html>"}, id="html"),
    pytest.param({"body": b"null"}, id="null"),
    pytest.param({"hang_up": True}, id="broken connection"),
    pytest.param({"announce_more": 9}, id="truncated"),
    pytest.param(
        {
            "status": 403,
            "body": {
                "Code": "SignatureDoesNotMatch",
                "Message": f"Signature is not matched. server string to sign is:ACS3-HMAC-SHA256\n{TOKEN}\n{SECRET}",
            },
        },
        id="the string to sign, echoed",
    ),
    pytest.param(
        {"status": 400, "body": {"Code": "InvalidSecurityToken", "Message": f"{TOKEN} and {SECRET} are wrong"}},
        id="secrets, echoed",
    ),
]


@pytest.fixture
def printed(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Any:
    """Return a function that gives everything logged, at any level, and everything written."""
    caplog.set_level(logging.DEBUG)
    return lambda: "".join(capfd.readouterr()) + caplog.text


def is_of_the_vendor(value: object) -> bool:
    return any(base.__module__.split(".")[0] in ("Tea", "darabonba") for base in type(value).__mro__)


def failure_of(hook: Any) -> PaiDlcError:
    with pytest.raises(PaiDlcError) as raised:
        hook(security_token=TOKEN, retry_rules=RetryRules(attempts=1)).create_job(BODY)
    return raised.value


@pytest.mark.parametrize("failing", FAILURES)
def test_an_exception_holds_no_secret_in_any_form(hook: Any, dlc: Any, failing: Any) -> None:
    dlc.script(dlc.answer(**failing))
    error = failure_of(hook)
    forms = [str(error), repr(error), repr(error.__dict__), repr(pickle.dumps(error))]
    forms += traceback.format_exception(error)
    assert not [planted for planted in PLANTED for form in forms if planted in form]


@pytest.mark.parametrize("failing", FAILURES)
def test_an_exception_leads_to_nothing_of_the_vendor(hook: Any, dlc: Any, failing: Any) -> None:
    dlc.script(dlc.answer(**failing))
    error = failure_of(hook)
    assert (error.__context__, error.__cause__) == (None, None)
    assert not any(is_of_the_vendor(value) for value in error.__dict__.values())
    for frame, _ in traceback.walk_tb(error.__traceback__):
        assert not frame.f_globals["__name__"].startswith(("alibabacloud", "darabonba", "Tea"))
        assert not any(is_of_the_vendor(value) for value in frame.f_locals.values())


def test_an_exception_survives_pickling_with_its_facts(hook: Any, dlc: Any) -> None:
    dlc.script(dlc.answer(429, {"Code": "Throttling", "RequestId": "R"}, {"x-acs-retry-after": "1500"}))
    error = failure_of(hook)
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(copy) is type(error)
    assert (str(copy), copy.__dict__) == (str(error), error.__dict__)


@pytest.mark.parametrize("debug", ["", "sdk"])
def test_nothing_secret_is_logged_or_printed(
    hook: Any, dlc: Any, printed: Any, monkeypatch: pytest.MonkeyPatch, debug: Any
) -> None:
    """With DEBUG=sdk the SDK would log every header, signature and token included."""
    monkeypatch.setenv("DEBUG", debug)
    dlc.script(dlc.answer(503, {"Code": "ServiceUnavailable"}), dlc.answer(200, {"JobId": "dlc1", "Status": "Running"}))
    client = hook(security_token=TOKEN)
    client.get_job("dlc1")
    client.create_job(BODY)
    told = printed()
    assert not [planted for planted in PLANTED if planted in told]
    assert dlc.seen[0].headers["x-acs-security-token"] == TOKEN


def test_importing_the_sdk_leaves_no_handler_behind() -> None:
    sdk.load()
    handlers = {name: logging.getLogger(name).handlers for name in sdk._NOISY_LOGGERS}
    assert handlers == {name: [] for name in sdk._NOISY_LOGGERS}


def test_a_handler_of_the_users_own_stays() -> None:
    own = logging.StreamHandler()
    own.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("darabonba-core")
    logger.addHandler(own)
    try:
        sdk.load()
        assert logger.handlers == [own]
    finally:
        logger.removeHandler(own)


def test_the_hook_shows_no_secret(hook: Any) -> None:
    client = hook(security_token=TOKEN)
    assert not [planted for planted in PLANTED if planted in f"{client!r} {vars(client)!r} {client.fingerprint}"]


def test_secrets_of_a_connection_that_is_looked_up_are_known_to_airflows_masker(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {"security_token": "planted-to-be-masked", "https_proxy": "http://u:planted-proxy@p"}
    monkeypatch.setenv("AIRFLOW_CONN_PAI_MASKED", connection(password="planted-password", **secrets).as_json())
    PaiDlcHook("pai_masked").region_id  # noqa: B018 - looks the connection up
    assert "planted" not in redact(f"planted-password {' '.join(secrets.values())}")
