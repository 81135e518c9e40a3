"""
Where the triggerer talks to DLC: the vendor's sync client, in a few threads of our own.

Its async client builds a TLS context for each call, about 40 ms on the event loop, and refreshes credentials under a
lock that can freeze the loop for seconds; in a thread neither is felt. The threads are shared by all triggers of the
process, which also bounds how many calls are under way at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

_MAX_CALLS_AT_ONCE = 4
_pool: ThreadPoolExecutor | None = None

Answer = TypeVar("Answer")


def _threads() -> ThreadPoolExecutor:
    global _pool  # noqa: PLW0603 - one pool for each process, made when first needed
    if _pool is None:
        _pool = ThreadPoolExecutor(_MAX_CALLS_AT_ONCE, thread_name_prefix="pai-dlc")
    return _pool


async def in_dlc_thread(call: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
    """Run a blocking call to DLC without blocking the event loop."""
    return await asyncio.get_running_loop().run_in_executor(_threads(), partial(call, *args, **kwargs))
