"""An append-only list of everything that happened, with its emulated time. Never holds request bodies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """
    One thing that happened.

    :param at: emulated seconds since the epoch.
    :param kind: `created`, `status`, `stop`, `bid`, `revoked`, `restarted`, `tagged`, `deleted`, `price`,
        `stock`, `fault`, `waiting`, `plan`.
    :param job_id: the job it happened to, '' if none.
    :param detail: what exactly, plain JSON.
    """

    at: float
    kind: str
    job_id: str
    detail: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"at": self.at, "kind": self.kind, "job_id": self.job_id, "detail": dict(self.detail)}


class Journal:
    """Everything that happened, oldest first."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self.requests: Counter[str] = Counter()
        """How often each operation was called, refused and dropped calls included."""

    def write(self, at: float, kind: str, job_id: str = "", **detail: Any) -> None:
        """Append one entry."""
        self._entries.append(Entry(at, kind, job_id, detail))

    def entries(self, kind: str | None = None, job_id: str | None = None) -> list[Entry]:
        """Return the entries of one kind and one job, or of all."""
        return [entry for entry in self._entries if kind in (None, entry.kind) and job_id in (None, entry.job_id)]
