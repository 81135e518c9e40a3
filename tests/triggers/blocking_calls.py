"""Which calls that may block were made on this thread. A rule, where a stopwatch would also measure the machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_FUNCTIONS = frozenset({"time.sleep", "io.open", "_socket.getaddrinfo", "select.select"})
_METHODS = frozenset(
    {
        "_SSLContext.load_verify_locations",
        "_SSLContext.set_default_verify_paths",
        "_SSLSocket.do_handshake",
        "_SSLSocket.read",
        "_SSLSocket.write",
        "socket.connect",
        "socket.recv_into",
        "socket.sendall",
    }
)
"""What http.client and requests do. The loop itself waits by `epoll.poll` and empties its own pipe by `recv`."""


@contextmanager
def blocking_calls() -> Iterator[list[str]]:
    """Yield the names of the C functions this thread calls meanwhile that may block it, with who called."""
    seen: list[str] = []

    def note(frame: FrameType, event: str, function: Any) -> None:
        if event != "c_call":
            return
        name = function.__qualname__
        if f"{function.__module__}.{name}" in _FUNCTIONS or name in _METHODS:
            seen.append(f"{name} in {frame.f_code.co_filename}:{frame.f_lineno}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield seen
    finally:
        sys.setprofile(before)
