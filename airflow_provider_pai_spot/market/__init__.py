"""
What spot capacity is offered, as values: pure readings of what DLC answers.

Must not know Airflow, the hook, sockets or clocks: whoever asks DLC hands the answer in.
"""

from __future__ import annotations

from airflow_provider_pai_spot.market.offers import Offer, read_offer, read_offers

__all__ = ["Offer", "read_offer", "read_offers"]
