"""
What to do after a loss of capacity: pure policy over what a try has come to.

Must not know Airflow, DLC's API, sockets or clocks: whoever asks says what happened, and acts on the answer.
"""

from __future__ import annotations

from airflow_provider_pai_spot.recovery.policy import (
    Ended,
    GiveUp,
    History,
    Resubmit,
    Step,
    StopSpending,
    bid_after,
    first_terms,
    next_step,
    terms_after_loss,
)
from airflow_provider_pai_spot.recovery.spot_recovery import SpotRecovery

__all__ = [
    "Ended",
    "GiveUp",
    "History",
    "Resubmit",
    "SpotRecovery",
    "Step",
    "StopSpending",
    "bid_after",
    "first_terms",
    "next_step",
    "terms_after_loss",
]
