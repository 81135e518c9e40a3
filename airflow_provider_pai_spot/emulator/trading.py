"""What a changed price or stock does to the jobs that hold machines and to those that wait for them."""

from __future__ import annotations

import random
from collections.abc import Callable

from airflow_provider_pai_spot.emulator.capacity import Capacity
from airflow_provider_pai_spot.emulator.journal import Journal
from airflow_provider_pai_spot.emulator.record import Job
from airflow_provider_pai_spot.emulator.timeline import Timeline

_LOOKS_PER_WINDOW = 60


class Trading:
    """
    Keeps holders and waiters in line with the market. Callers hold `timeline.changed`.

    :param lose: called with a job that must give its machines back, and why.
    :param seek: called with a job that may try again.
    :param average_seconds: window of Lingjun's rolling average.
    """

    def __init__(
        self,
        *,
        timeline: Timeline,
        capacity: Capacity,
        journal: Journal,
        rng: random.Random,
        average_seconds: float,
        lose: Callable[[Job, str], None],
        seek: Callable[[Job], None],
    ) -> None:
        self._timeline = timeline
        self._capacity = capacity
        self._market = capacity.market
        self._journal = journal
        self._rng = rng
        self._look_again_seconds = average_seconds / _LOOKS_PER_WINDOW
        self._lose = lose
        self._seek = seek
        self._looks: dict[str, int] = {}
        if self._market.model.volatility:
            timeline.after(self._market.model.step_seconds, self._drift)

    def set_price(self, instance_type: str, discount: float) -> float:
        """Let a type cost `discount` of its list price from now on; returns it within 0.1 and 1.0."""
        now = self._timeline.now
        price = self._market.set_discount(instance_type, now, discount)
        self._journal.write(now, "price", instance_type=instance_type, discount=price)
        self.settle(instance_type)
        return price

    def set_stock(self, instance_type: str, machines: int | None) -> None:
        """Let that many spot machines of a type exist, rented ones included; None: without end."""
        self._market.set_stock(instance_type, machines)
        self._journal.write(self._timeline.now, "stock", instance_type=instance_type, machines=machines)
        self.settle(instance_type)

    def settle(self, instance_type: str) -> None:
        """Take machines from who lost them and give them to who wins them, by the market as it is now."""
        for job, cause in self._capacity.losers(instance_type, self._timeline.now):
            self._lose(job, cause)
        for job in self._capacity.waiting_for(instance_type):
            self._seek(job)
        self._look_again(instance_type)

    def _look_again(self, instance_type: str) -> None:
        """A rolling average goes on moving though nothing else happens."""
        number = self._looks[instance_type] = self._looks.get(instance_type, 0) + 1
        if self._timeline.now >= self._market.settles_at(instance_type, self._timeline.now):
            return

        def look() -> None:
            if self._looks[instance_type] == number:
                self.settle(instance_type)

        self._timeline.after(self._look_again_seconds, look)

    def _drift(self) -> None:
        model = self._market.model
        for instance_type in self._market.types():
            now = self._market.discount(instance_type, self._timeline.now)
            self.set_price(instance_type, model.step(now, self._rng))
        self._timeline.after(model.step_seconds, self._drift)
