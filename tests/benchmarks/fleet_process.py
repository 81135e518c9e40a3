"""
One process that waits for many jobs in one way; prints what that cost as one JSON line.

`fleet_process.py WAY PERIOD WARM_UP WINDOW`, the job ids on its input. Ways: `none`, the same loop without triggers;
`ours`; and three others on the same API: a task per job on the vendor's async client (`vendor`), the same with a
client per trigger as SageMaker's trigger has (`sagemaker`), and a kept aiohttp session per trigger as Databricks'
trigger has (`databricks`; unsigned, which favours it).
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import ssl
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from airflow_provider_pai_spot.triggers import watch  # noqa: F401 - all ways pay for the same imports
from airflow_provider_pai_spot.triggers.spot_job import SpotJobTrigger

TICK = 0.01
Wait = Callable[[str, float], Awaitable[Any]]
errors = 0


def limits(period: float) -> dict[str, Any]:
    """Return a trigger's arguments as a task with limits has them."""
    return {
        "pai_dlc_conn_id": "pai_dlc_default",
        "poll_interval": period,
        "pending_timeout": 24 * 3600.0,
        "run_timeout": 24 * 3600.0,
        "total_deadline": "2100-01-01T00:00:00+00:00",
    }


async def ours(job_id: str, period: float) -> None:
    """Wait as the provider does."""
    trigger = SpotJobTrigger(job_id=job_id, **limits(period))
    async for _event in trigger.run():
        return


def vendor_client() -> Any:
    """Return the vendor's client for the emulator."""
    from alibabacloud_pai_dlc20201203.client import Client
    from alibabacloud_tea_openapi.utils_models import Config

    uri = urlsplit(os.environ["AIRFLOW_CONN_PAI_DLC_DEFAULT"])
    region = parse_qs(uri.query)["region_id"][0]
    return Client(
        Config(
            access_key_id=unquote(uri.username or ""),
            access_key_secret=unquote(uri.password or ""),
            region_id=region,
            endpoint=uri.netloc.rpartition("@")[2],
            protocol="https",
            ca=os.environ["SSL_CERT_FILE"],
        )
    )


def one_task_per_job(client_of: Callable[[], Any]) -> Wait:
    """Return the obvious loop: ask, sleep, ask."""
    from alibabacloud_pai_dlc20201203.models import GetJobRequest

    async def wait(job_id: str, period: float) -> None:
        global errors  # noqa: PLW0603 - a count for the whole process
        client = client_of()
        await asyncio.sleep(random.uniform(0, period))
        while True:
            try:
                await client.get_job_async(job_id, GetJobRequest())
            except Exception:  # noqa: BLE001 - whatever it was, it is counted
                errors += 1
            await asyncio.sleep(period)

    return wait


def session_per_trigger() -> Wait:
    """Return the loop of a trigger that keeps a session of its own."""
    import aiohttp

    context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
    base = f"https://{urlsplit(os.environ['AIRFLOW_CONN_PAI_DLC_DEFAULT']).netloc.rpartition('@')[2]}"

    async def wait(job_id: str, period: float) -> None:
        global errors  # noqa: PLW0603 - a count for the whole process
        await asyncio.sleep(random.uniform(0, period))
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
            while True:
                try:
                    async with session.get(
                        f"{base}/api/v1/jobs/{job_id}", headers={"x-acs-action": "GetJob"}
                    ) as answer:
                        await answer.json()
                except Exception:  # noqa: BLE001 - whatever it was, it is counted
                    errors += 1
                await asyncio.sleep(period)

    return wait


def way_of(name: str) -> Wait:
    """Return how one job is waited for."""
    if name == "vendor":
        shared = vendor_client()
        return one_task_per_job(lambda: shared)
    if name == "sagemaker":
        return one_task_per_job(vendor_client)
    return session_per_trigger() if name == "databricks" else ours


async def lags(seconds: float) -> list[float]:
    """Return by how much each of many short sleeps took longer than asked for, in milliseconds."""
    found, loop = [], asyncio.get_running_loop()
    end = loop.time() + seconds
    while (now := loop.time()) < end:
        await asyncio.sleep(TICK)
        found.append((loop.time() - now - TICK) * 1000)
    return found


def resident_mb() -> float:
    """Return this process's memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


async def cost_of_window(seconds: float) -> dict[str, float]:
    """
    Return what this process costs: CPU in per cent of a core, lag of its loop, memory.

    First `seconds` for the CPU, then as many again for the lag: the short sleeps that show it cost more than the fleet.
    """
    cpu, began = time.process_time(), time.monotonic()
    await asyncio.sleep(seconds)
    cpu_percent = (time.process_time() - cpu) / (time.monotonic() - began) * 100
    sample = sorted(await lags(seconds))
    return {
        "cpu_percent": round(cpu_percent, 3),
        "lag_ms_p50": round(statistics.median(sample), 2),
        "lag_ms_p99": round(sample[int(len(sample) * 0.99)], 2),
        "lag_ms_max": round(sample[-1], 2),
        "memory_mb": round(resident_mb(), 1),
    }


async def measure(name: str, jobs: list[str], period: float, warm_up: float, window: float) -> dict[str, Any]:
    """Wait for all jobs; measure one window after the warm-up."""
    before = resident_mb()
    wait = None if name == "none" else way_of(name)
    tasks = [asyncio.create_task(wait(job, period)) for job in jobs] if wait else []  # type: ignore[arg-type]
    await asyncio.sleep(warm_up)
    print("measuring", flush=True)
    failed = errors
    result = await cost_of_window(window)
    result["memory_mb"] = round(result["memory_mb"] - before, 1)
    result |= {"errors": errors - failed, "waiting": sum(not task.done() for task in tasks)}
    print("measured", flush=True)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return result


if __name__ == "__main__":
    way, timing = sys.argv[1], [float(one) for one in sys.argv[2:5]]
    print(json.dumps(asyncio.run(measure(way, sys.stdin.read().split(), *timing))))
