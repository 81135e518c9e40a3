"""Whether a created job really bids."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.spot_terms import (
    SpotTerms,
    TermsCheck,
    TermsReader,
    compare,
    compare_presence,
)
from airflow_provider_pai_spot.exceptions import (
    PaiDlcNotFound,
    PaiDlcRefused,
    PaiDlcThrottled,
    PaiDlcUnavailable,
)

BID = {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.4}
FLOAT32 = struct.unpack("f", struct.pack("f", 0.4))[0]
"""0.4 as a service shows it that keeps limits in 32 bits: 0.4000000059604645."""


def body(*roles: dict[str, Any]) -> dict[str, Any]:
    return {"JobSpecs": list(roles)}


def role(spot: Any = None, name: str = "Worker") -> dict[str, Any]:
    return {"Type": name, **({"SpotSpec": spot} if spot is not None else {})}


@pytest.mark.parametrize(
    ("seen", "terms"),
    [
        (body(role(BID)), SpotTerms.CONFIRMED),
        (body(role({**BID, "SpotDiscountLimit": "0.40"})), SpotTerms.CONFIRMED),
        (body(role({"SpotDiscountLimit": 0.4})), SpotTerms.CONFIRMED),
        (body(role({**BID, "SpotDiscountLimit": FLOAT32})), SpotTerms.CONFIRMED),
        (body(role({**BID, "SpotDiscountLimit": str(FLOAT32)})), SpotTerms.CONFIRMED),
        (body(role({**BID, "SpotDiscountLimit": 0.4, "SpotPriceLimit": 0})), SpotTerms.CONFIRMED),
        (body(role({"SpotDiscountLimit": 0, "SpotPriceLimit": 0})), SpotTerms.ABSENT),
        (body(role({"SpotStrategy": "", "SpotDiscountLimit": "0"})), SpotTerms.ABSENT),
        (body(role({"SpotDiscountLimit": "0.00"})), SpotTerms.ABSENT),
        (body(role({"SpotDiscountLimit": None})), SpotTerms.ABSENT),
        (body(role({"SpotStrategy": "NoSpot", "SpotDiscountLimit": 0})), SpotTerms.CONTRADICTED),
        (body(role({**BID, "SpotDiscountLimit": 0.5})), SpotTerms.CONTRADICTED),
        (body(role({**BID, "SpotDiscountLimit": 0.40001})), SpotTerms.CONTRADICTED),
        (body(role({**BID, "SpotDiscountLimit": "nan"})), SpotTerms.CONTRADICTED),
        (body(role({**BID, "SpotDiscountLimit": [0.4]})), SpotTerms.CONTRADICTED),
        (body(role({**BID, "SpotStrategy": "NoSpot"})), SpotTerms.CONTRADICTED),
        (body(role()), SpotTerms.ABSENT),
        (body(role({})), SpotTerms.ABSENT),
        (body(role("odd")), SpotTerms.ABSENT),
        ({}, SpotTerms.ABSENT),
        ({"JobSpecs": "odd"}, SpotTerms.ABSENT),
    ],
)
def test_what_the_created_job_shows(seen: dict[str, Any], terms: SpotTerms) -> None:
    assert compare(body(role(BID)), seen).terms is terms


@pytest.mark.parametrize("seen", [body(role()), body(role(BID)), {}])
def test_a_job_that_was_sent_without_a_bid_has_no_terms_to_be_stopped_for(seen: dict[str, Any]) -> None:
    assert compare(body(role()), seen).terms is SpotTerms.CONFIRMED


def test_a_price_that_went_through_32_bits_is_the_price_that_was_sent() -> None:
    sent = body(role({"SpotStrategy": "SpotWithPriceLimit", "SpotPriceLimit": 57.0123}))
    seen = body(role({"SpotPriceLimit": struct.unpack("f", struct.pack("f", 57.0123))[0]}))
    assert compare(sent, seen).terms is SpotTerms.CONFIRMED


def test_a_role_that_did_not_bid_needs_no_terms() -> None:
    sent = body(role(BID), role(name="Master"))
    assert compare(sent, body(role(BID), role(name="Master"))).terms is SpotTerms.CONFIRMED


def test_what_is_missing_is_named() -> None:
    check = compare(body(role(BID)), body(role()))
    assert check.detail == (
        "asked for role Worker: SpotStrategy 'SpotWithPriceLimit', SpotDiscountLimit 0.4; GetJob shows no SpotSpec"
    )


@pytest.mark.parametrize(
    ("seen", "terms"),
    [
        (body(role({**BID, "SpotDiscountLimit": 0.9})), SpotTerms.CONFIRMED),
        (body(role(), role(BID, name="Master")), SpotTerms.CONFIRMED),
        (body(role()), SpotTerms.ABSENT),
        ({}, SpotTerms.ABSENT),
    ],
)
def test_of_an_earlier_try_s_job_only_whether_it_bids_is_compared(seen: dict[str, Any], terms: SpotTerms) -> None:
    assert compare_presence(body(role(BID)), seen).terms is terms


JOB = "dlc1"
UNSEEN, SPOT, POST_PAID, BOTH = (), ("Spot",), ("PostPaid",), ("Spot", "PostPaid")


class Lists:
    """ListJobs, look for look: the PaymentTypes that show the job, or what the look raises; the last one stays."""

    def __init__(self, *looks: Any) -> None:
        self.looks = list(looks)

    def __call__(self, payment_type: str) -> list[dict[str, Any]]:
        look = self.looks[0]
        if len(self.looks) > 1 and payment_type == "PostPaid":
            del self.looks[0]
        if isinstance(look, Exception):
            if len(self.looks) > 1:
                del self.looks[0]
            raise look
        return [{"JobId": JOB}] if payment_type in look else []


class Shows:
    """GetJob, answer for answer; the last one stays."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def get_job(self, job_id: str) -> dict[str, Any]:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return {"JobId": job_id, **answer}


def read(clock: Any, shows: Shows, lists: Lists) -> TermsCheck:
    reader = TermsReader(hook=shows, list_as=lists, patience=60.0, clock=clock)
    return reader.of_new(body(role(BID)), JOB)


@pytest.mark.parametrize(
    ("lists", "terms", "seconds"),
    [
        (Lists(SPOT), SpotTerms.ABSENT, 0),
        (Lists(BOTH), SpotTerms.ABSENT, 0),
        (Lists(UNSEEN, UNSEEN, SPOT), SpotTerms.ABSENT, 10),
        (Lists(POST_PAID, SPOT), SpotTerms.ABSENT, 5),
        (Lists(POST_PAID), SpotTerms.CONTRADICTED, 5),
        (Lists(UNSEEN, UNSEEN, UNSEEN, UNSEEN, POST_PAID), SpotTerms.CONTRADICTED, 25),
        (Lists(UNSEEN), SpotTerms.ABSENT, 60),
        (Lists(PaiDlcUnavailable("down"), POST_PAID), SpotTerms.CONTRADICTED, 10),
        (Lists(PaiDlcUnavailable("down")), SpotTerms.UNREAD, 60),
        (Lists(PaiDlcRefused("Forbidden")), SpotTerms.UNREAD, 0),
    ],
)
def test_the_list_is_the_second_witness(clock: Any, lists: Lists, terms: SpotTerms, seconds: int) -> None:
    began = clock.now()
    assert read(clock, Shows(body(role())), lists).terms is terms
    assert (clock.now() - began).total_seconds() == seconds


@pytest.mark.parametrize("passing", [PaiDlcUnavailable("down"), PaiDlcThrottled("later"), PaiDlcNotFound("not yet")])
def test_a_job_that_cannot_be_read_yet_is_read_later(clock: Any, passing: Exception) -> None:
    contradicts = body(role({**BID, "SpotDiscountLimit": 0.9}))
    assert read(clock, Shows(passing, passing, contradicts), Lists(UNSEEN)).terms is SpotTerms.CONTRADICTED
    assert read(clock, Shows(passing), Lists(UNSEEN)).terms is SpotTerms.UNREAD


def test_a_job_that_may_not_be_read_is_not_waited_for(clock: Any) -> None:
    began = clock.now()
    check = read(clock, Shows(PaiDlcRefused("Forbidden")), Lists(UNSEEN))
    assert (check.terms, check.detail) == (SpotTerms.UNREAD, "Forbidden")
    assert clock.now() == began
