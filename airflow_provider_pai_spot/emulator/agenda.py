"""What is due when: a heap of moments and what to do at each."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

Action = Callable[[], object]


class Agenda:
    """Actions in the order of their moments; those of one moment in the order they were entered."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Action]] = []
        self._numbers = itertools.count()

    def enter(self, at: float, action: Action) -> None:
        """Have `action` done at `at`."""
        heapq.heappush(self._heap, (at, next(self._numbers), action))

    def next_at(self) -> float | None:
        """Return the next moment something is due, None if nothing is."""
        return self._heap[0][0] if self._heap else None

    def take_due(self, until: float) -> tuple[float, Action] | None:
        """Remove and return the first action due at or before `until`."""
        if not self._heap or self._heap[0][0] > until:
            return None
        at, _, action = heapq.heappop(self._heap)
        return at, action
