"""
A process of its own with many triggers on one loop under asyncio's debug mode; writes what it saw as JSON.

Arguments: the job ids' file, the result's file, and `blocking` to plant a blocking call that must be seen.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import sys
import threading
import time
from pathlib import Path
from typing import Any

from airflow.sdk import BaseHook

from airflow_provider_pai_spot.triggers.spot_job import SpotJobTrigger

SLOW_CALLBACK = 0.1
SLOW_CONNECTION = 0.3


class PatientLoop(asyncio.SelectorEventLoop):
    """
    A loop whose time stands still while its thread is ready to run and another process has the core.

    So a callback's time is what it computed and what it waited for, however busy the machine is.
    """

    def __init__(self) -> None:
        self._schedstat = open(f"/proc/self/task/{threading.get_native_id()}/schedstat", "rb", buffering=0)  # noqa: SIM115, PTH123
        super().__init__()

    def time(self) -> float:
        """Return the monotonic time less the time spent waiting for a core."""
        self._schedstat.seek(0)
        return super().time() - int(self._schedstat.read().split()[1]) / 1e9

    def close(self) -> None:
        """Close the loop."""
        super().close()
        self._schedstat.close()


class Kept(logging.Handler):
    """Keeps what asyncio says of callbacks that took too long."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if line.startswith("Executing") and "took" in line:
            self.lines.append(line)


def be_slow() -> None:
    """Let Airflow take its time with a connection."""
    quick = BaseHook.aget_connection

    async def slow(conn_id: str) -> Any:
        await asyncio.sleep(SLOW_CONNECTION)
        return await quick(conn_id)

    BaseHook.aget_connection = slow  # type: ignore[method-assign, assignment]


async def ended(job_id: str, blocking: bool = False) -> str:
    if blocking:
        time.sleep(2 * SLOW_CALLBACK)  # noqa: ASYNC251 - the planted fault
    trigger = SpotJobTrigger(job_id=job_id, pai_dlc_conn_id="pai_dlc_default", poll_interval=1.0)
    [event] = [event.payload async for event in trigger.run()]
    return str(event["verdict"])


async def main(jobs: list[str], kept: Kept, blocking: bool) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    first, *others = jobs
    # While a thread imports the SDK, everything is slow on a machine whose cores are busy; it is measured without.
    loop.slow_callback_duration = 60.0
    verdicts = [await ended(first)]
    gc.collect()
    gc.disable()  # a collection walks all of Airflow and takes longer than what is looked for
    await asyncio.sleep(0)  # and the one above was part of this step
    loop.slow_callback_duration = SLOW_CALLBACK
    waiting = []
    for job in others:
        waiting.append(asyncio.create_task(ended(job, blocking)))
        await asyncio.sleep(0)  # in debug mode creating a task is slow; a triggerer creates 50 in a second
    verdicts += [await task for task in waiting]
    return {"verdicts": sorted(set(verdicts)), "ended": len(verdicts), "slow": kept.lines}


if __name__ == "__main__":
    keeper = Kept()
    logging.getLogger("asyncio").addHandler(keeper)
    be_slow()
    with asyncio.Runner(debug=True, loop_factory=PatientLoop) as runner:
        result = runner.run(main(Path(sys.argv[1]).read_text().split(), keeper, "blocking" in sys.argv))
    Path(sys.argv[2]).write_text(json.dumps(result))
