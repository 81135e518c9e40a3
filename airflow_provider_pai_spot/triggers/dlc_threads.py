"""
Where the triggerer talks to DLC: the vendor's sync client, in a few threads of our own.

Its async client builds a TLS context for each call, about 40 ms on the event loop, and refreshes credentials under a
lock that can freeze the loop for seconds; in a thread neither is felt. The threads are shared by all triggers of the
process, which also bounds how many calls are under way at once.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

_CALLS, _LISTS, _SINGLES, _STOPS, _ASIDE = (
    *("pai-dlc", "pai-dlc-watch", "pai-dlc-single"),
    *("pai-dlc-stop", "pai-dlc-aside"),
)
_THREADS = {_CALLS: 4, _LISTS: 4, _SINGLES: 4, _STOPS: 4, _ASIDE: 2}
LONGEST_CALL = 60.0
"""Seconds; a server that sends a byte now and then never runs into the client's read timeout."""
_LONGEST_QUEUE = 600.0
"""Seconds after which a call that no thread took up counts as unanswered: all threads hang."""
_pools: dict[str, ThreadPoolExecutor] = {}
_lock = threading.Lock()

Answer = TypeVar("Answer")


async def in_dlc_thread(call: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
    """Run a blocking call to DLC without blocking the event loop."""
    return await _in_pool(_CALLS, partial(call, *args, **kwargs))


async def in_watch_thread(call: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
    """The same for the lists that tell what happened to jobs: they must not queue behind logs and single jobs."""
    return await _in_pool(_LISTS, partial(call, *args, **kwargs))


async def in_single_thread(call: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
    """The same for looks at one job, of which a thousand can become due in one moment."""
    return await _in_pool(_SINGLES, partial(call, *args, **kwargs))


async def in_stop_thread(call: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
    """The same for what must not queue behind a thousand looks: a stop has 30 s, and then nobody is left to do it."""
    return await _in_pool(_STOPS, partial(call, *args, **kwargs))


async def in_aside_thread(call: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
    """The same for what goes to Airflow: its triggerer takes 5,000 log lines in seconds, or a minute if it is busy."""
    return await _in_pool(_ASIDE, partial(call, *args, **kwargs))


async def within(seconds: float, in_thread: Callable[..., Awaitable[Any]], call: Callable[..., Any], *args: Any) -> Any:
    """
    Run a blocking call in a thread and wait for it no longer than `seconds` from when the thread takes it up.

    :param in_thread: one of the above.
    :raises TimeoutError: it did not return; its thread goes on with it.
    """
    loop = asyncio.get_running_loop()

    def begun() -> None:
        if waiting and not limit.expired():
            limit.reschedule(loop.time() + seconds)

    def timed() -> Any:
        loop.call_soon_threadsafe(begun)
        return call(*args)

    waiting = True
    try:
        async with asyncio.timeout(_LONGEST_QUEUE) as limit:
            return await in_thread(timed)
    finally:
        waiting = False


def start_threads() -> None:
    """
    Start all threads, unless they run; not to be called on the event loop.

    Whoever starts a thread waits until it runs, which takes long while another one imports something big.
    """
    for name in _THREADS:
        _pool(name)


def _pool(name: str) -> ThreadPoolExecutor:
    with _lock:
        if name not in _pools:
            pool = ThreadPoolExecutor(_THREADS[name], thread_name_prefix=name)
            all_run = threading.Barrier(_THREADS[name])
            for started in [pool.submit(all_run.wait) for _ in range(_THREADS[name])]:
                started.result()
            _pools[name] = pool
        return _pools[name]


async def _in_pool(name: str, call: Callable[[], Answer]) -> Answer:
    pool = _pools.get(name) or await asyncio.to_thread(_pool, name)
    # The context tells Airflow whose log a line belongs to.
    return await asyncio.get_running_loop().run_in_executor(pool, contextvars.copy_context().run, call)
