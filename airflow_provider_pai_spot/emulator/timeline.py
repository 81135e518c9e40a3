"""Emulated time that things happen in: a clock, an agenda, one lock, and a thread that keeps pace."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from airflow_provider_pai_spot.emulator.agenda import Action, Agenda
from airflow_provider_pai_spot.emulator.clock import EmulatorClock, ManualClock

log = logging.getLogger(__name__)


class Timeline:
    """
    Does what is due, in order, each thing at its own moment.

    Whoever reads or changes the state first calls `catch_up`, so that answers never depend on a thread having
    been quick; the pace thread only makes sure that things also happen when nobody asks.
    """

    def __init__(self, clock: EmulatorClock) -> None:
        self.clock = clock
        self.changed = threading.Condition(threading.RLock())
        """Guards everything that lives in emulated time; notified when something happened."""
        self._agenda = Agenda()
        self._now = clock.now()
        self._closed = False
        self._pace: threading.Thread | None = None

    @property
    def now(self) -> float:
        """The emulated moment that is being lived through."""
        return self._now

    def after(self, seconds: float, action: Action) -> None:
        """Have `action` done `seconds` from this moment."""
        with self.changed:
            self._agenda.enter(self._now + max(0.0, seconds), action)
            self.changed.notify_all()

    def catch_up(self) -> None:
        """Do everything that is due by the clock."""
        with self.changed:
            target = self.clock.now()
            while (due := self._agenda.take_due(target)) is not None:
                self._now = max(self._now, due[0])
                due[1]()
                self.changed.notify_all()
            self._now = max(self._now, target)

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass at once. Raises RuntimeError unless the clock is a manual one."""
        if not isinstance(self.clock, ManualClock):
            raise RuntimeError(  # noqa: TRY004 - the wrong moment, not the wrong argument
                f"advance() needs clock='manual'; the clock is a {type(self.clock).__name__}."
            )
        with self.changed:
            self.clock.advance(seconds)
            self.catch_up()

    def wait_for(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Wait up to `timeout` real seconds until `condition` holds; returns whether it does."""
        with self.changed:
            self.catch_up()
            return self.changed.wait_for(condition, timeout)

    def start(self) -> None:
        """Keep pace with the clock in a thread, unless it stands still by itself."""
        if self.clock.real_seconds(1.0) is None:
            return
        self._pace = threading.Thread(target=self._keep_pace, name="dlc-emulator-pace", daemon=True)
        self._pace.start()

    def close(self) -> None:
        """End the thread."""
        with self.changed:
            self._closed = True
            self.changed.notify_all()
        if self._pace is not None:
            self._pace.join()

    def _keep_pace(self) -> None:
        with self.changed:
            while not self._closed:
                try:
                    self.catch_up()
                except Exception:
                    log.exception("Something that was due in the emulator went wrong")
                self.changed.wait(self._seconds_until_due())

    def _seconds_until_due(self) -> float | None:
        due = self._agenda.next_at()
        if due is None:
            return None
        return self.clock.real_seconds(max(0.0, due - self.clock.now()))
