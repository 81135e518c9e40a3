"""
What to do after a loss of capacity: pure policy over what a try has come to.

Must not know Airflow, DLC's API, sockets or clocks: whoever asks says what happened, and acts on the answer. What is
decided in a try is in `policy`, which a DAG parse does not load.
"""

from __future__ import annotations

from airflow_provider_pai_spot.recovery.spot_recovery import SpotRecovery

__all__ = ["SpotRecovery"]
