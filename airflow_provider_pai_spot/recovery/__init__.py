"""
What to do after a loss of capacity: pure policy over an outcome's verdict and a count.

Must not know Airflow, DLC's API, sockets or clocks: whoever asks says what happened, and acts on the answer.
"""

from __future__ import annotations

from airflow_provider_pai_spot.recovery.policy import GiveUp, Resubmit, bid_after, next_step
from airflow_provider_pai_spot.recovery.spot_recovery import SpotRecovery

__all__ = ["GiveUp", "Resubmit", "SpotRecovery", "bid_after", "next_step"]
