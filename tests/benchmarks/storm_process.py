"""
One process in which many triggers start at the same time; tells of each when it first looked and when it fired.

`storm_process.py PERIOD`, the job ids on its input. Prints `{"looked": seconds after its own run() began, ...}` once
all have looked, then one line for each that fires: `{"fired": job id, "at": seconds since the epoch}`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time

from fleet_process import limits

from airflow_provider_pai_spot.triggers.spot_job import SpotJobTrigger


class FirstLines(logging.Handler):
    """When the first line about each job was written: the word that its trigger has looked at it."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.at: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Note the time; lines begin with the job's id."""
        self.at.setdefault(record.getMessage().partition(":")[0], time.monotonic())


class Trigger(SpotJobTrigger):
    """Ours, with a log that is read here."""

    log = logging.getLogger("storm")


async def fire(job_id: str, period: float, began: dict[str, float]) -> None:
    """Wait for one job as the provider does, and tell when the event came."""
    trigger = Trigger(job_id=job_id, **limits(period))
    began[job_id] = time.monotonic()
    async for _event in trigger.run():
        print(json.dumps({"fired": job_id, "at": time.time()}), flush=True)
        return


async def main(jobs: list[str], period: float, lines: FirstLines) -> None:
    """Start all at once, tell when each looked, and wait until all have fired."""
    began: dict[str, float] = {}
    waiting = [asyncio.create_task(fire(job, period, began)) for job in jobs]
    while not lines.at.keys() >= set(jobs):  # noqa: ASYNC110 - lines are written by other threads as well
        await asyncio.sleep(0.05)
    print(json.dumps({"looked": [lines.at[job] - began[job] for job in jobs]}), flush=True)
    await asyncio.gather(*waiting)


if __name__ == "__main__":
    keeper = FirstLines()
    Trigger.log.setLevel(logging.INFO)
    Trigger.log.addHandler(keeper)
    Trigger.log.propagate = False
    asyncio.run(main(sys.stdin.read().split(), float(sys.argv[1]), keeper))
