"""
What is noted down of the log lines that a try has shown, so that a restarted triggerer goes on where the last one was.

A trigger can reach XComs and nothing else that belongs to its task instance: Airflow's task state store hangs there.
Airflow wipes them when the next try begins; its log is a new one, too.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Protocol, Self

from airflow_provider_pai_spot.attempts.ledger import StateStore
from airflow_provider_pai_spot.attempts.log_cursor import Cursor
from airflow_provider_pai_spot.dlc.wire import time_of

XCOM_LOG = "pai_spot_log"
_VERSION = 1
_MAX_PARTS = 20

Cursors = Mapping[str, Cursor]
"""How far each log of a job was read, by `PodUid` (or `PodId` where DLC shows none)."""

THIS_PROCESS = uuid.uuid4().hex[:12]
"""Tells triggerers apart: each has one process for its triggers, and one log file for each task of them."""


class Notes(Protocol):
    """Where the notes of one task instance are kept. May block; may raise anything."""

    def read(self) -> Any:
        """Return what was written last, None if nothing was."""
        ...

    def write(self, value: Any) -> None:
        """Keep a JSON value."""
        ...


@dataclass(frozen=True, slots=True)
class XComNotes:
    """An XCom of the task instance; works on workers, and in a triggerer from any thread but its event loop's."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1

    def read(self) -> Any:
        """Return what was written last, None if nothing was."""
        from airflow.sdk.execution_time.xcom import XCom

        return XCom.get_one(key=XCOM_LOG, **self._place())

    def write(self, value: Any) -> None:
        """Keep a JSON value."""
        from airflow.sdk.execution_time.xcom import XCom

        XCom.set(key=XCOM_LOG, value=value, **self._place())

    def _place(self) -> dict[str, Any]:
        return {
            "dag_id": self.dag_id,
            "run_id": self.run_id,
            "task_id": self.task_id,
            "map_index": self.map_index,
        }


@dataclass(frozen=True, slots=True)
class StoreNotes:
    """The task state store; on workers only. A sensor in reschedule mode begins each look without its XComs."""

    store: StateStore

    def read(self) -> Any:
        """Return what was written last, None if nothing was."""
        return self.store.get(XCOM_LOG)

    def write(self, value: Any) -> None:
        """Keep a JSON value."""
        self.store.set(XCOM_LOG, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """
    What one writer has shown of one job.

    :param writer: `THIS_PROCESS` of a triggerer; '' for workers, whose log stays.
    :param begin: how far the logs had been shown before.
    :param end: how far they have been shown by it.
    :param since: no log of the job begins before it.
    :param has_ended: whether the writer's trigger ended in order, upon which Airflow uploads its log.
    """

    job_id: str
    writer: str
    since: datetime
    begin: Cursors = field(default_factory=dict)
    end: Cursors = field(default_factory=dict)
    has_ended: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the form that is stored."""
        return {
            "job_id": self.job_id,
            "writer": self.writer,
            "since": self.since.isoformat(),
            "has_ended": self.has_ended,
            "begin": {key: cursor.to_json() for key, cursor in self.begin.items()},
            "end": {key: cursor.to_json() for key, cursor in self.end.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSoFar:
    """
    What was shown in the log of one try, oldest part first.

    :param parts: a new one begins with each job and each writer.
    :param offset: how far the lines' times are ahead of UTC, once that was found out.
    :param at: when this was noted down.
    :param copying: where the newest part stood before the lines that are being copied right now; None if none are.
    """

    try_number: int
    parts: tuple[Part, ...] = ()
    offset: timedelta | None = None
    at: datetime | None = None
    copying: Cursors | None = None

    def cursors(self, job_id: str) -> Cursors:
        """Return how far the job's logs have been shown, by anybody."""
        known: dict[str, Cursor] = {}
        for part in self.parts:
            if part.job_id == job_id:
                known |= part.end
        return known

    @property
    def in_doubt(self) -> bool:
        """Whether nobody knows if the lines of the last look have arrived."""
        return self.copying is not None and bool(self.parts)

    def taken_over(self, parts: Iterable[Part], writer: str) -> Self:
        """Return the notes after a writer has shown the parts of others again."""
        again = [*parts]
        now = (replace(part, writer=writer, has_ended=False) if part in again else part for part in self.parts)
        return replace(self, parts=tuple(now), copying=None)

    def ended(self, writer: str) -> Self:
        """Return the notes after a writer's trigger came to its end."""
        now = (replace(part, has_ended=part.has_ended or part.writer == writer) for part in self.parts)
        return replace(self, parts=tuple(now))

    def advanced(self, part: Part, *, offset: timedelta | None, at: datetime, copying: Cursors | None = None) -> Self:
        """
        Return the notes after more of a job was shown, or, with `copying`, before it is.

        :param part: what its writer has shown of it then; where it began is filled in here.
        """
        last = self.parts[-1] if self.parts else None
        if last is not None and (last.job_id, last.writer) == (part.job_id, part.writer):
            parts = (*self.parts[:-1], replace(part, begin=last.begin))
        else:
            parts = (*self.parts, replace(part, begin=self.cursors(part.job_id)))[-_MAX_PARTS:]
        return replace(self, parts=parts, offset=offset, at=at, copying=copying)

    def without_last_look(self) -> Self:
        """Return the notes as they were before that look."""
        last = replace(self.parts[-1], end=self.copying or {})
        return replace(self, parts=(*self.parts[:-1], last), copying=None)

    def to_json(self) -> dict[str, Any]:
        """Return the form that is stored."""
        return {
            "version": _VERSION,
            "try": self.try_number,
            "parts": [part.to_json() for part in self.parts],
            "offset": None if self.offset is None else self.offset.total_seconds(),
            "at": None if self.at is None else self.at.isoformat(),
            "copying": None if self.copying is None else {key: one.to_json() for key, one in self.copying.items()},
        }

    @classmethod
    def from_json(cls, value: Any, try_number: int) -> Self:
        """Read the stored form; of another try, or not as it was written, it reads as nothing shown."""
        if not isinstance(value, Mapping) or (value.get("version"), value.get("try")) != (_VERSION, try_number):
            return cls(try_number=try_number)
        parts = value.get("parts")
        read = [_part(part) for part in parts] if isinstance(parts, list) else []
        offset = value.get("offset")
        return cls(
            try_number=try_number,
            parts=tuple(part for part in read if part is not None),
            offset=timedelta(seconds=offset) if isinstance(offset, (int, float)) else None,
            at=time_of(value.get("at")),
            copying=None if value.get("copying") is None else _cursors(value.get("copying")),
        )


def _part(value: Any) -> Part | None:
    if not isinstance(value, Mapping):
        return None
    job_id, writer, since = value.get("job_id"), value.get("writer"), time_of(value.get("since"))
    if not isinstance(job_id, str) or not isinstance(writer, str) or since is None:
        return None
    begin, end = _cursors(value.get("begin")), _cursors(value.get("end"))
    has_ended = value.get("has_ended") is True
    return Part(job_id=job_id, writer=writer, since=since, begin=begin, end=end, has_ended=has_ended)


def _cursors(value: Any) -> dict[str, Cursor]:
    return {str(key): Cursor.from_json(one) for key, one in value.items()} if isinstance(value, Mapping) else {}
