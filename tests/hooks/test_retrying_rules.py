"""When a call is repeated, how long one waits, and when it stops."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.exceptions import (
    PaiDlcCredentialsError,
    PaiDlcError,
    PaiDlcNotFound,
    PaiDlcRefused,
    PaiDlcThrottled,
    PaiDlcUnavailable,
)
from airflow_provider_pai_spot.hooks.retrying import RetryRules, full_jitter, is_worth_retrying, with_retries


class Calls:
    """Raises the given errors one after another, then returns."""

    def __init__(self, *errors: PaiDlcError) -> None:
        self.errors = list(errors)
        self.made = 0

    def __call__(self) -> str:
        self.made += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


def longest(upper: float) -> float:
    return upper


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (PaiDlcThrottled("x"), True),
        (PaiDlcUnavailable("x"), True),
        (PaiDlcUnavailable("x", ambiguous=False), True),
        (PaiDlcRefused("x"), False),
        (PaiDlcNotFound("x"), False),
        (PaiDlcCredentialsError("x"), False),
        (PaiDlcError("x"), False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, PaiDlcError) else "",
)
def test_only_what_a_moment_may_mend_is_repeated(error: Any, expected: Any) -> None:
    assert is_worth_retrying(error) is expected


def test_waits_double_up_to_the_longest(clock: Any) -> None:
    calls = Calls(*[PaiDlcUnavailable("x")] * 4)
    rules = RetryRules(attempts=5, first_wait=1, longest_wait=5, total=60)
    assert with_retries(calls, rules=rules, clock=clock, jitter=longest) == "answer"
    assert clock.slept == [1, 2, 4, 5]


def test_the_last_error_comes_out_when_attempts_are_used_up(clock: Any) -> None:
    calls = Calls(*[PaiDlcUnavailable(f"failure {n}") for n in range(1, 9)])
    with pytest.raises(PaiDlcUnavailable, match="failure 3"):
        with_retries(calls, rules=RetryRules(attempts=3), clock=clock)
    assert calls.made == 3


def test_a_definite_no_is_not_repeated(clock: Any) -> None:
    calls = Calls(PaiDlcRefused("no"))
    with pytest.raises(PaiDlcRefused):
        with_retries(calls, rules=RetryRules(), clock=clock)
    assert (calls.made, clock.slept) == (1, [])


@pytest.mark.parametrize("kind", [PaiDlcThrottled, PaiDlcUnavailable])
def test_what_dlc_asks_for_is_waited_even_beyond_the_longest(clock: Any, kind: Any) -> None:
    with_retries(Calls(kind("x", retry_after=20)), rules=RetryRules(longest_wait=5), clock=clock, jitter=longest)
    assert clock.slept == [20]


def test_a_wait_beyond_the_total_is_not_begun(clock: Any) -> None:
    calls = Calls(PaiDlcThrottled("x", retry_after=90))
    with pytest.raises(PaiDlcThrottled):
        with_retries(calls, rules=RetryRules(total=45), clock=clock)
    assert clock.slept == []


def test_time_spent_in_calls_counts_towards_the_total(clock: Any) -> None:
    def slow() -> None:
        clock.pass_(20)
        raise PaiDlcUnavailable("read timeout")

    with pytest.raises(PaiDlcUnavailable):
        with_retries(slow, rules=RetryRules(attempts=50, total=45), clock=clock)
    assert len(clock.slept) == 2


def test_each_repeat_is_told(clock: Any) -> None:
    told = []
    with_retries(
        Calls(PaiDlcUnavailable("a"), PaiDlcThrottled("b")),
        rules=RetryRules(first_wait=1),
        clock=clock,
        jitter=longest,
        on_retry=lambda error, wait: told.append((str(error), wait)),
    )
    assert told == [("a", 1), ("b", 2)]


def test_no_attempts_at_all_is_a_mistake(clock: Any) -> None:
    with pytest.raises(ValueError, match="attempts is 0"):
        with_retries(Calls(), rules=RetryRules(attempts=0), clock=clock)


@given(st.floats(min_value=0, max_value=1e6))
def test_jitter_stays_within_zero_and_its_bound(upper: Any) -> None:
    assert 0 <= full_jitter(upper) <= upper
