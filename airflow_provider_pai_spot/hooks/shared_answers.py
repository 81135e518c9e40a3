"""
Answers that many tasks of one process want at the same time: asked for once, kept for a while.

A thousand jobs that wait for the same type would otherwise ask for its price a thousand times.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_pai_spot.exceptions import PaiDlcError

if TYPE_CHECKING:
    from airflow_provider_pai_spot.clock import Clock


@dataclass(slots=True)
class _Kept:
    """One answer. Who holds the lock asks; the others wait for what comes back."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    asked_at: datetime | None = None
    answer: Any = None
    refusal: PaiDlcError | None = None


class SharedAnswers:
    """
    What was answered lately; safe to share between threads.

    A refusal is an answer, too: somebody without a permission is not asked about it again by every task.

    :param clock: says how old an answer is.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[Hashable, _Kept] = {}

    def get(self, question: Hashable, max_age: float, ask: Callable[[], Any]) -> Any:
        """
        Return an answer that is at most `max_age` seconds old, asking if there is none.

        Whoever gets it must not change it: it is shared.

        :raises PaiDlcError: that is how the question was answered.
        """
        with self._lock:
            kept = self._kept.setdefault(question, _Kept())
        with kept.lock:
            if kept.asked_at is None or (self._clock.now() - kept.asked_at).total_seconds() > max_age:
                self._ask(kept, ask)
            if kept.refusal is not None:
                raise kept.refusal.with_traceback(None)  # raised often: it must not gather the frames of all who saw it
            return kept.answer

    def _ask(self, kept: _Kept, ask: Callable[[], Any]) -> None:
        try:
            kept.answer, kept.refusal = ask(), None
        except PaiDlcError as error:
            kept.answer, kept.refusal = None, error
        kept.asked_at = self._clock.now()
