"""Wait for DLC's answer: a minute of trouble on its side must not use up a try of Airflow's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from airflow_provider_pai_spot.clock import Clock
from airflow_provider_pai_spot.exceptions import PaiDlcThrottled, PaiDlcUnavailable

PATIENCE = timedelta(minutes=5)
"""How long a worker waits before it gives the try up; a slot is held meanwhile."""
_ASK_EVERY = 5.0

Answer = TypeVar("Answer")


def answered(call: Callable[[], Answer], *, clock: Clock, log: Any) -> Answer:
    """
    Repeat a read until DLC answers.

    :raises PaiDlcError: DLC said no, or did not answer for `PATIENCE`.
    """
    give_up_at = clock.now() + PATIENCE
    while True:
        try:
            return call()
        except (PaiDlcUnavailable, PaiDlcThrottled) as error:
            if clock.now() >= give_up_at:
                raise
            log.warning("DLC could not be asked, asking again for up to %d s: %s", PATIENCE.total_seconds(), error)
            clock.sleep(_ASK_EVERY)
