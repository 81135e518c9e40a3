"""
Where the triggerer talks to DLC: the vendor's sync client, in a few threads of our own.

Its async client builds a TLS context for each call, about 40 ms on the event loop, and refreshes credentials under a
lock that can freeze the loop for seconds; in a thread neither is felt. The threads are shared by all triggers of the
process, which also bounds how many calls are under way at once.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

_LOOKS_AT_ONCE = 4
_STOPS_AT_ONCE = 4
_pools: dict[str, ThreadPoolExecutor] = {}

Answer = TypeVar("Answer")


async def in_dlc_thread(call: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
    """Run a blocking call to DLC without blocking the event loop."""
    return await _in_pool("pai-dlc", _LOOKS_AT_ONCE, partial(call, *args, **kwargs))


async def in_stop_thread(call: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
    """The same for what must not queue behind a thousand looks: a stop has 30 s, and then nobody is left to do it."""
    return await _in_pool("pai-dlc-stop", _STOPS_AT_ONCE, partial(call, *args, **kwargs))


async def _in_pool(name: str, threads: int, call: Callable[[], Answer]) -> Answer:
    pool = _pools.get(name)
    if pool is None:  # one of each name for a process, made when first needed
        pool = _pools[name] = ThreadPoolExecutor(threads, thread_name_prefix=name)
    # The context tells Airflow whose log a line belongs to.
    return await asyncio.get_running_loop().run_in_executor(pool, contextvars.copy_context().run, call)
