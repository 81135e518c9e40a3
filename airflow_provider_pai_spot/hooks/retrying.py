"""
Asking again: exponential backoff with full jitter, bounded in attempts and in time.

Only calls that may be repeated come here: reads, and StopJob (stopping twice is stopping once). CreateJob
never does.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from airflow_provider_pai_spot.exceptions import PaiDlcError, PaiDlcThrottled, PaiDlcUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_pai_spot.clock import Clock

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRules:
    """
    How often and for how long.

    :param attempts: calls at most, the first one included.
    :param first_wait: upper end of the first wait, in seconds; doubled each time.
    :param longest_wait: upper end of any wait that DLC did not ask for, in seconds.
    :param total: seconds after which no further attempt starts.
    """

    attempts: int = 5
    first_wait: float = 0.5
    longest_wait: float = 8.0
    total: float = 45.0


def is_worth_retrying(error: PaiDlcError) -> bool:
    """Whether the same call may well succeed a moment later: throttled, 5xx, broken connection."""
    return isinstance(error, PaiDlcThrottled | PaiDlcUnavailable)


def full_jitter(upper: float) -> float:
    """Return a random wait between 0 and `upper` seconds, so that many tasks do not come back together."""
    return random.uniform(0, upper)  # noqa: S311 - spreads load, guards nothing


def with_retries(
    call: Callable[[], T],
    *,
    rules: RetryRules,
    clock: Clock,
    jitter: Callable[[float], float] = full_jitter,
    on_retry: Callable[[PaiDlcError, float], None] = lambda _error, _wait: None,
) -> T:
    """
    Return what `call` returns, calling it again after failures that a moment may mend.

    :param on_retry: told the error and the seconds until the next attempt.
    :raises PaiDlcError: the last failure, when attempts or time are used up or it is a definite no.
    """
    started = clock.now()
    for attempt in range(1, rules.attempts + 1):
        try:
            return call()
        except PaiDlcError as error:
            wait = _wait_after(error, attempt, rules, jitter)
            elapsed = (clock.now() - started).total_seconds()
            last = attempt == rules.attempts or elapsed + wait > rules.total
            if last or not is_worth_retrying(error):
                raise
            on_retry(error, wait)
        clock.sleep(wait)
    raise ValueError(f"attempts is {rules.attempts!r}: expected at least 1.")


def _wait_after(error: PaiDlcError, attempt: int, rules: RetryRules, jitter: Callable[[float], float]) -> float:
    own = jitter(min(rules.longest_wait, rules.first_wait * 2 ** (attempt - 1)))
    asked = getattr(error, "retry_after", None)
    return max(own, asked) if asked is not None else own
