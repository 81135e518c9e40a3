"""
What the triggers of one event loop share: a watcher for each connection, and connections that were just read.

Kept by loop, never by its id, which a later loop may have again.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from airflow_provider_pai_spot import settings
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.triggers.job_watcher import JobWatcher
from airflow_provider_pai_spot.triggers.pace import Pace

log = logging.getLogger(__name__)

_CONNECTION_GOOD_FOR = 30.0
"""Seconds: a thousand triggers that start together ask Airflow once."""
_FAILURE_GOOD_FOR = 4.0
"""Seconds: a thousand triggers that start while Airflow's database is away do not ask for it one after the other."""


@dataclass(slots=True)
class _ReadConnection:
    """A connection as Airflow told it last; the lock lets one ask while the others wait."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    connection: Any = None
    read_at: float = float("-inf")
    error: Exception | None = None
    failed_at: float = float("-inf")


@dataclass(slots=True)
class _Shared:
    watchers: dict[str, JobWatcher] = field(default_factory=dict)
    paces: WeakValueDictionary[str, Pace] = field(default_factory=WeakValueDictionary)
    connections: dict[str, _ReadConnection] = field(default_factory=dict)


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _Shared] = WeakKeyDictionary()


def watcher_for(hook: PaiDlcHook) -> JobWatcher:
    """Return the running loop's watcher for everything that this hook's connection, region and workspace tell apart."""
    watchers, key = _of_this_loop().watchers, hook.fingerprint
    if key not in watchers:
        watchers[key] = JobWatcher(
            hook.list_page,
            batch_size=settings.jobs_per_list(),
            name=repr(hook.pai_dlc_conn_id),
            pace=pace_of(hook),
            on_empty=partial(_forget, watchers, key),
        )
    return watchers[key]


def _forget(watchers: dict[str, JobWatcher], key: str) -> None:
    watchers.pop(key, None)


def pace_of(hook: PaiDlcHook) -> Pace:
    """Return the pace of all of a caller's calls; it outlives the watcher for those who still stop a job."""
    paces, key = _of_this_loop().paces, hook.caller_fingerprint
    pace = paces.get(key)
    if pace is None:
        pace = paces[key] = Pace(repr(hook.pai_dlc_conn_id))
    return pace


async def connection_of(conn_id: str, ask: Callable[[str], Awaitable[Any]] | None = None) -> Any:
    """
    Return a connection that was read by this loop within the last half minute.

    :param ask: how Airflow is asked; by `BaseHook.aget_connection` if None.
    :raises AirflowNotFoundException: there is no such connection, or Airflow could not look it up: its triggerer does
        not tell one from the other.
    """
    known = _of_this_loop().connections.setdefault(conn_id, _ReadConnection())
    async with known.lock:
        now = asyncio.get_running_loop().time()
        if now - known.read_at < _CONNECTION_GOOD_FOR:
            return known.connection
        if known.error is not None and now - known.failed_at < _FAILURE_GOOD_FOR:
            raise known.error.with_traceback(None)
        try:
            known.connection = await (ask or PaiDlcHook.aget_connection)(conn_id)
        except Exception as error:
            _failed(conn_id, known, error)
            raise
        _answered(conn_id, known)
        return known.connection


def _failed(conn_id: str, known: _ReadConnection, error: Exception) -> None:
    if known.error is None:
        _say(logging.WARNING, "Connection %r cannot be read from Airflow, trying again: %s", conn_id, error)
    known.error, known.failed_at = error, asyncio.get_running_loop().time()


def _answered(conn_id: str, known: _ReadConnection) -> None:
    if known.error is not None:
        _say(logging.INFO, "Connection %r can be read again", conn_id)
    known.error, known.read_at = None, asyncio.get_running_loop().time()


def _say(level: int, text: str, *args: object) -> None:
    """Log what concerns all triggers, not into the log of the task whose trigger happened to ask."""
    contextvars.Context().run(log.log, level, text, *args)


def _of_this_loop() -> _Shared:
    for loop in [loop for loop in _by_loop if loop.is_closed()]:  # its watchers refer to it and keep it alive
        del _by_loop[loop]
    return _by_loop.setdefault(asyncio.get_running_loop(), _Shared())
