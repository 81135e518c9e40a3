"""What is kept of a list item, and which errors mean what."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.queue_word import inquire
from airflow_provider_pai_spot.attempts.waiting_words import Findings, waiting_line
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.exceptions import (
    PaiDlcCredentialsError,
    PaiDlcError,
    PaiDlcNotFound,
    PaiDlcRefused,
    PaiDlcThrottled,
    PaiDlcUnavailable,
)
from airflow_provider_pai_spot.market import Offer
from airflow_provider_pai_spot.triggers.job_news import is_denied, is_too_large, is_usable, signature, slim

ITEM = {
    "JobId": "dlc1",
    "Status": "Running",
    "StatusHistory": [{"Status": "Running", "StartTime": "2026-11-30T12:00:00Z", "EndTime": ""}],
    "GmtCreateTime": "2026-11-30T11:00:00Z",
    "JobSpecs": [{"Type": "Worker", "Image": "i" * 500, "EcsSpec": "ecs.g7.xlarge", "SpotSpec": {"a": 1}}, "odd"],
    "Envs": {"TOKEN": "planted"},
    "UserCommand": "x" * 10_000,
}


def test_what_is_kept_says_the_same_of_a_job_that_is_waited_for() -> None:
    whole, kept = Job(ITEM), Job(slim(ITEM))
    for name in ("job_id", "status", "phase", "timeline", "created_at", "running_since", "spot_specs", "is_spot"):
        assert getattr(kept, name) == getattr(whole, name), name
    assert signature(slim(ITEM)) == signature(ITEM)


WAITING = {**ITEM, "Status": "Queuing", "StatusHistory": [], "ReasonMessage": "no stock"}
MARKET = [Offer(instance_type="ecs.g7.xlarge", spot_discount=Decimal("0.55"))]
WAITS: dict[str, dict[str, Any]] = {
    "for public resources": {},
    "for a quota": {"ResourceId": "quota1"},
    "for Lingjun's machines": {"ResourceType": "Lingjun"},
    "with the bid of old": {"JobSpecs": [{"EcsSpec": "ecs.g7.xlarge", "UseSpotInstance": True}]},
    "for its image": {"Status": "EnvPreparing", "Pods": [{"PodId": "p0"}]},
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_what_is_kept_explains_a_wait_as_well_as_the_whole(wait: dict[str, Any]) -> None:
    whole, kept = Job({**WAITING, **wait}), Job(slim({**WAITING, **wait}))
    now, found = datetime(2026, 11, 30, 12, 0, tzinfo=UTC), Findings(offers=MARKET, diagnosis={})
    assert waiting_line(kept, now, found) == waiting_line(whole, now, found)
    assert (kept.is_spot, list(inquire(kept))) == (whole.is_spot, list(inquire(whole)))


def test_neither_secrets_nor_long_texts_are_kept() -> None:
    assert "planted" not in str(slim(ITEM))
    assert len(str(slim(ITEM))) < 500


def test_equal_texts_of_two_jobs_are_one() -> None:
    parsed = [slim({"JobId": name, "Status": "Running"}) for name in ("a", "b")]
    assert parsed[0]["Status"] is parsed[1]["Status"]


@pytest.mark.parametrize(
    ("item", "usable"),
    [
        ({"JobId": "a", "Status": "Running"}, True),
        ({"JobId": "a", "Status": "NeverHeardOf"}, True),
        ({"JobId": "a", "Status": ""}, False),
        ({"JobId": "a"}, False),
        ({"JobId": 7, "Status": "Running"}, False),
        (None, False),
        (["Running"], False),
    ],
)
def test_an_item_is_of_use_if_it_names_a_job_and_its_status(item: Any, usable: bool) -> None:
    assert is_usable(item) is usable


@pytest.mark.parametrize(
    ("error", "denied", "too_large"),
    [
        (PaiDlcCredentialsError("none"), True, False),
        (PaiDlcRefused("", status_code=403), True, False),
        (PaiDlcRefused("", status_code=401), True, False),
        (PaiDlcRefused("", status_code=404, code="InvalidAccessKeyId.NotFound"), True, False),
        (PaiDlcRefused("", status_code=400, code="SignatureDoesNotMatch"), True, False),
        (PaiDlcRefused("", status_code=400, code="InvalidParameter"), False, True),
        (PaiDlcRefused("", status_code=400), False, True),
        (PaiDlcRefused("", status_code=414), False, True),
        (PaiDlcRefused("", status_code=400, code="SecurityTokenExpired"), True, False),
        (PaiDlcRefused("", status_code=400, code="InvalidTimeStamp.Expired"), False, False),
        (PaiDlcRefused("", status_code=400, code="SignatureNonceUsed"), False, False),
        (PaiDlcRefused("", status_code=400, code="MissingSecurityToken"), False, False),
        (PaiDlcThrottled("", status_code=400, code="Throttling.User"), False, False),
        (PaiDlcThrottled("", status_code=403, code="Throttling"), False, False),
        (PaiDlcNotFound("", status_code=404), False, False),
        (PaiDlcUnavailable("", status_code=503), False, False),
        (PaiDlcUnavailable("broken connection"), False, False),
    ],
)
def test_the_kinds_of_errors(error: PaiDlcError, denied: bool, too_large: bool) -> None:
    assert (is_denied(error), is_too_large(error)) == (denied, too_large)
