"""
How far a log was read, for a service that has no cursor: what is new in lines that were asked for with an overlap.

Lines are told apart by their text and counted, for as long as their second lies in the overlap: equal lines within one
second are as many as DLC shows, in whatever order it shows them. Pure; it knows neither the time nor the service.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Self

from airflow_provider_pai_spot.dlc.stamps import SECOND_FORMAT, second_of

_DIGEST_BYTES = 6
_LONGEST_STORED = 1_000
"""Digests that are stored at most, about 16 kB; of a log that writes faster, only the newest seconds are remembered."""


class Line(NamedTuple):
    """
    One line of a log.

    :param second: when it was written, as its own or an earlier line's stamp says (`dlc.stamps.second_of`).
    """

    second: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """
    What was read of one log.

    :param newest: the newest second of all lines so far, '' before the first.
    :param seen: of each second in the overlap, how often each line was read, by its digest.
    :param floor: what is older counts as read, though it lies in the overlap.
    """

    newest: str = ""
    seen: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    floor: str = ""

    def take(self, lines: Sequence[str], overlap: timedelta) -> tuple[list[Line], Cursor]:
        """
        Return what is new in an answer, in its order, and the cursor after it.

        :param lines: all of the log from `newest - overlap` on, or any later part that leaves no gap.
        :param overlap: how late a line may show after a younger one; what is older counts as read.
        """
        horizon = max(self.floor, _horizon(self.newest, overlap))
        left = {second: Counter(counts) for second, counts in self.seen.items()}
        counted: dict[str, Counter[str]] = {}
        new: list[Line] = []
        for line in _stamped(lines, self.newest):
            if line.second < horizon:
                continue
            counted.setdefault(line.second, Counter())[_digest(line.text)] += 1
            if not _take_one(left, line):
                new.append(line)
        return new, self._after(counted, overlap)

    def covered(self, lines: Iterable[Line], overlap: timedelta) -> list[Line]:
        """Return those of the lines, all new to a cursor further back, that this one has read."""
        left = {second: Counter(counts) for second, counts in self.seen.items()}
        horizon = max(self.floor, _horizon(self.newest, overlap))
        return [line for line in lines if line.second < horizon or _take_one(left, line)]

    def closed(self) -> Cursor:
        """Return a cursor that needs little room, for a log that has ended: all up to its newest second is read."""
        return Cursor(newest=self.newest, floor=_next_second(self.newest)) if self.newest else self

    def to_json(self) -> dict[str, Any]:
        """Return the form that is stored; of very many lines in the overlap only the newest are remembered."""
        kept: dict[str, dict[str, int]] = {}
        room, floor = _LONGEST_STORED, self.floor
        for second in sorted(self.seen, reverse=True):
            room -= len(self.seen[second])
            if room < 0 and kept:
                floor = min(kept)
                break
            kept[second] = dict(self.seen[second])
        return {"newest": self.newest, "seen": kept, "floor": floor}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Read the stored form; whatever is not as it was written reads as nothing read."""
        newest, floor, seen = (
            (value.get("newest"), value.get("floor"), value.get("seen")) if isinstance(value, Mapping) else (None,) * 3
        )
        if not _is_second(newest):
            return cls()
        return cls(
            newest=str(newest),
            seen=_counts(seen) if isinstance(seen, Mapping) else {},
            floor=str(floor) if _is_second(floor) else "",
        )

    def _after(self, counted: Mapping[str, Mapping[str, int]], overlap: timedelta) -> Cursor:
        newest = max((self.newest, *counted))
        horizon = max(self.floor, _horizon(newest, overlap))
        # An answer may hold fewer lines of a second than were read before: it was cut.
        seen = {
            second: dict(Counter(self.seen.get(second, {})) | Counter(counted.get(second, {})))
            for second in {*self.seen, *counted}
            if second >= horizon
        }
        return Cursor(newest=newest, seen=seen, floor=self.floor)


def _stamped(lines: Sequence[str], newest: str) -> Iterator[Line]:
    """
    Give each line the second it was written in; one without a stamp belongs to the line above it.

    Above the first stamp that line is not in the answer, so it is older; unless there is no stamp at all.
    """
    seconds = [second_of(text) for text in lines]
    second = "" if any(seconds) else newest
    for own, text in zip(seconds, lines, strict=True):
        second = own or second
        yield Line(second, text)


def _take_one(left: Mapping[str, Counter[str]], line: Line) -> bool:
    """Cross a line off those that were read; False if there is none like it left."""
    of_second = left.get(line.second)
    digest = _digest(line.text)
    if not of_second or of_second[digest] <= 0:
        return False
    of_second[digest] -= 1
    return True


def _horizon(newest: str, overlap: timedelta) -> str:
    """What is older counts as read; '' before the first line."""
    return (datetime.fromisoformat(newest) - overlap).strftime(SECOND_FORMAT) if newest else ""


def _is_second(value: Any) -> bool:
    return isinstance(value, str) and value != "" and second_of(value) == value


def _next_second(second: str) -> str:
    return (datetime.fromisoformat(second) + timedelta(seconds=1)).strftime(SECOND_FORMAT)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()


def _counts(seen: Mapping[Any, Any]) -> dict[str, dict[str, int]]:
    return {
        str(second): {str(digest): count for digest, count in counts.items() if type(count) is int}
        for second, counts in seen.items()
        if isinstance(counts, Mapping)
    }
