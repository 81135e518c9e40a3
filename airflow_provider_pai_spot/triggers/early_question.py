"""
Ask Airflow early, so that it can answer quickly when a task is ended.

At the first question of a triggerer Airflow builds its execution API inside that process: seconds, and on a busy
machine more than a minute. If that question is `on_kill`'s, no answer comes in time, and no answer is not a yes: the
job would go on until a sweep.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class EarlyQuestion:
    """One question for each process, whoever comes first; nobody waits for its answer."""

    def __init__(self) -> None:
        self._asked: asyncio.Future[bool] | None = None

    def ask(self, question: Callable[[], Awaitable[bool]]) -> None:
        """Ask in the background unless it has been asked already; `question` deals with its own errors."""
        if self._asked is None:
            self._asked = asyncio.ensure_future(question())


EARLY_QUESTION = EarlyQuestion()
"""The triggerer's."""
