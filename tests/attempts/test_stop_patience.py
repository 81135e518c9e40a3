"""How long a stop is waited for: DLC may be slow to take it, and then it must show."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.stop_patience import StopPatience
from airflow_provider_pai_spot.exceptions import PaiDlcError, PaiDlcRefused, PaiDlcThrottled, PaiDlcUnavailable
from airflow_provider_pai_spot.operators import flow as operators
from airflow_provider_pai_spot.sensors import flow as sensors

THROTTLED = PaiDlcThrottled("StopJob: HTTP 429", status_code=429)
UNAVAILABLE = PaiDlcUnavailable("StopJob: HTTP 503", status_code=503)
FORBIDDEN = PaiDlcRefused("StopJob: HTTP 403", status_code=403)


def waited(clock: Any, *answers: Any, good: bool = True) -> float:
    """Return the seconds until the patience with these answers, one every ten seconds, is over."""
    began, patience, last = clock.now(), StopPatience(clock.now), len(answers) - 1
    for number in range(1000):
        patience.told(answers[min(number, last)])
        patience.looked(good=good)
        if patience.is_over:
            return float((clock.now() - began).total_seconds())
        clock.sleep(10.0)
    raise AssertionError("endless patience")


@pytest.mark.parametrize("error", [THROTTLED, UNAVAILABLE], ids=["throttled", "unavailable"])
def test_the_minute_begins_when_dlc_answers(clock: Any, error: PaiDlcError) -> None:
    assert waited(clock, True) == 60.0
    assert waited(clock, *[error] * 12, True) == 180.0


def test_a_refusal_is_an_answer(clock: Any) -> None:
    assert waited(clock, FORBIDDEN) == 60.0


def test_nobody_waits_for_an_answer_for_ever_and_all_is_over_before_airflow_ends_the_trigger(clock: Any) -> None:
    assert waited(clock, THROTTLED) == 540.0
    assert waited(clock, True, good=False) == 540.0
    assert min(operators._BACKSTOP, sensors._BACKSTOP) > timedelta(seconds=540)


def test_a_look_from_before_the_answer_does_not_count(clock: Any) -> None:
    patience = StopPatience(clock.now)
    patience.told(THROTTLED)
    patience.looked(good=True)
    patience.told(True)
    patience.looked(good=False)
    clock.sleep(100.0)
    assert not patience.is_over
    patience.looked(good=True)
    assert patience.is_over
