"""What a caller sees for every way DLC, or something in between, can answer. Through real HTTP and the real SDK."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from airflow_provider_pai_spot.exceptions import (
    PaiDlcError,
    PaiDlcNotFound,
    PaiDlcRefused,
    PaiDlcThrottled,
    PaiDlcUnavailable,
)
from airflow_provider_pai_spot.hooks.retrying import RetryRules

ONCE = RetryRules(attempts=1)
HTML = b"<html><body>502 Bad Gateway</body></html>"


def failure_of(hook: Any, **values: Any) -> PaiDlcError:
    with pytest.raises(PaiDlcError) as raised:
        hook(retry_rules=ONCE, **values).get_job("dlc1")
    return raised.value


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (400, "InvalidParameter", PaiDlcRefused),
        (401, "Unauthorized", PaiDlcRefused),
        (403, "Forbidden.RAM", PaiDlcRefused),
        (404, "NotFound", PaiDlcNotFound),
        (404, "", PaiDlcNotFound),
        (400, "NotFound", PaiDlcNotFound),
        (404, "InvalidAccessKeyId.NotFound", PaiDlcRefused),
        (400, "InvalidAccessKeyId.NotFound", PaiDlcRefused),
        (404, "InvalidAction.NotFound", PaiDlcRefused),
        (429, "", PaiDlcThrottled),
        (429, "TooMany", PaiDlcThrottled),
        (400, "Throttling", PaiDlcThrottled),
        (400, "Throttling.User", PaiDlcThrottled),
        (400, "Throttling.Api", PaiDlcThrottled),
        (503, "Throttling", PaiDlcThrottled),
        (400, "ThrottlingException", PaiDlcThrottled),
        (403, "RequestThrottled", PaiDlcThrottled),
        (408, "RequestTimeout", PaiDlcUnavailable),
        (500, "InternalError", PaiDlcUnavailable),
        (502, "", PaiDlcUnavailable),
        (503, "ServiceUnavailable", PaiDlcUnavailable),
        (504, "GatewayTimeout", PaiDlcUnavailable),
    ],
)
def test_status_and_code_decide_the_type(hook: Any, dlc: Any, status: Any, code: Any, expected: Any) -> None:
    dlc.script(dlc.answer(status, {"Code": code, "Message": "told by DLC", "RequestId": "REQ-1"}))
    error = failure_of(hook)
    assert type(error) is expected
    assert (error.status_code, error.code, error.request_id) == (status, code, "REQ-1")
    assert isinstance(error, PaiDlcUnavailable) is getattr(error, "ambiguous", False)


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (429, "Throttling", PaiDlcThrottled),
        (400, "Busy", PaiDlcThrottled),
        (503, "ServiceUnavailable", PaiDlcUnavailable),
    ],
)
def test_the_retry_header_is_milliseconds_and_comes_out_as_seconds(
    hook: Any, dlc: Any, status: Any, code: Any, expected: Any
) -> None:
    dlc.script(dlc.answer(status, {"Code": code}, {"x-acs-retry-after": "2500"}))
    error = failure_of(hook)
    assert type(error) is expected
    assert error.retry_after == 2.5


def test_a_message_names_operation_endpoint_region_connection_code_and_request_id(
    hook: Any,
    dlc: Any,
) -> None:
    dlc.script(dlc.answer(403, {"Code": "Forbidden.RAM", "Message": "No permission", "RequestId": "REQ-1"}))
    message = str(failure_of(hook))
    for part in ("GetJob", f"127.0.0.1:{dlc.port}", "cn-hangzhou", "'pai_test'", "403", "Forbidden.RAM"):
        assert part in message
    assert "No permission. Request id REQ-1." in message
    assert "paidlc:GetJob" in message


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("InvalidAccessKeyId.NotFound", "'AccessKey ID'"),
        ("SignatureDoesNotMatch", "'AccessKey Secret'"),
        ("InvalidSecurityToken.Expired", "security token"),
        ("InvalidTimeStamp.Expired", "clock"),
    ],
)
def test_what_to_do_next_is_said_where_it_is_known(hook: Any, dlc: Any, code: Any, hint: Any) -> None:
    dlc.script(dlc.answer(400, {"Code": code, "Message": "m"}))
    assert hint in str(failure_of(hook))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({}, id="no fields"),
        pytest.param({"code": "Camel", "message": "m", "requestId": "R"}, id="camel case"),
        pytest.param({"Code": None, "Message": None, "RequestId": None}, id="nulls"),
        pytest.param({"Code": 7, "Message": ["a"], "RequestId": 8}, id="other types"),
    ],
)
def test_an_error_body_may_lack_anything(hook: Any, dlc: Any, body: Any) -> None:
    dlc.script(dlc.answer(400, body))
    error = failure_of(hook)
    assert type(error) is PaiDlcRefused
    assert "None" not in f"{error.code}{error.request_id}"


def test_an_endless_message_is_cut(hook: Any, dlc: Any) -> None:
    dlc.script(dlc.answer(400, {"Code": "InvalidParameter", "Message": "m" * 5_000}))
    assert len(str(failure_of(hook))) < 800


@pytest.mark.parametrize("status", [400, 404, 500, 502, 200])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(HTML, id="html"),
        pytest.param(b"", id="empty"),
        pytest.param(b'{"JobId": "dl', id="half a JSON"),
        pytest.param(b"null", id="null"),
        pytest.param([{"JobId": "dlc1"}], id="list"),
        pytest.param('"text"', id="text"),
        pytest.param(b"\xff\xfe\x00", id="bytes"),
    ],
)
def test_an_answer_that_is_no_json_object_is_ambiguous_whatever_its_status(
    hook: Any, dlc: Any, status: Any, body: Any
) -> None:
    """The SDK loses the status of such answers, so not even a 4xx can be believed."""
    dlc.script(dlc.answer(status, body.encode() if isinstance(body, str) else body))
    error = failure_of(hook)
    assert type(error) is PaiDlcUnavailable
    assert error.ambiguous


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"hang_up": True}, id="closed before the answer"),
        pytest.param({"announce_more": 50, "body": {"JobId": "dlc1"}}, id="closed within the answer"),
        pytest.param({"silent": True}, id="no answer in time"),
    ],
)
def test_a_connection_that_breaks_after_sending_is_ambiguous(hook: Any, dlc: Any, broken: Any) -> None:
    dlc.script(dlc.answer(**broken))
    error = failure_of(hook, read_timeout=200)
    assert type(error) is PaiDlcUnavailable
    assert error.ambiguous
    assert "no usable answer came back" in str(error)


def test_a_connection_that_was_never_made_is_a_definite_no(hook: Any) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound, not listening: refuses
        error = failure_of(hook, port=held.getsockname()[1])
    assert type(error) is PaiDlcUnavailable
    assert not error.ambiguous
    assert "no connection was made (ConnectionRefusedError)" in str(error)


def test_a_proxy_that_cannot_be_reached_is_a_definite_no(hook: Any) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        error = failure_of(hook, http_proxy=f"http://user:planted-p@127.0.0.1:{held.getsockname()[1]}")
    assert not error.ambiguous
    assert "planted-p" not in str(error)


def test_a_proxy_of_the_environment_is_named_because_no_proxy_is_not_obeyed(
    hook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HTTP_PROXY", f"http://user:planted-p@127.0.0.1:{held.getsockname()[1]}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        message = str(failure_of(hook))
    assert "proxy of HTTP_PROXY and does not obey NO_PROXY" in message
    assert "planted-p" not in message


def test_https_to_a_plain_port_fails_as_unavailable(hook: Any) -> None:
    assert type(failure_of(hook, protocol="https")) is PaiDlcUnavailable


def test_a_body_that_cannot_be_sent_is_told_apart_from_dlc_being_away(hook: Any, dlc: Any) -> None:
    with pytest.raises(PaiDlcError, match="could not be prepared") as raised:
        hook().create_job({"DisplayName": object()})
    assert type(raised.value) is PaiDlcError
    assert dlc.seen == []
