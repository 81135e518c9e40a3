"""A triggerer asks Airflow about a task before it has to, so that the answer at a kill comes quickly."""

from __future__ import annotations

import asyncio

from airflow_provider_pai_spot.triggers.early_question import EarlyQuestion


async def test_only_the_first_one_asks_and_nobody_waits_for_the_answer() -> None:
    asked, answered = [], asyncio.Event()

    async def question() -> bool:
        asked.append(1)
        await answered.wait()
        return True

    early = EarlyQuestion()
    early.ask(question)
    early.ask(question)
    await asyncio.sleep(0)
    assert asked == [1]
    answered.set()
