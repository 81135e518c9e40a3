"""The one error of this room: a request that cannot work, told so that somebody can mend it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MAX_SHOWN = 120


class InvalidJobRequest(ValueError):
    """
    An argument cannot become a CreateJob request.

    :param argument: the argument (or the path inside it) that is wrong.
    :param value: what it was; shown shortened, containers only by their keys, since values may be secrets.
    :param allowed: what would be accepted, and what to do.
    """

    def __init__(self, argument: str, value: object, allowed: str) -> None:
        self.argument = argument
        self.value = shown(value)
        self.allowed = allowed
        super().__init__(f"{argument} is {self.value}: {allowed}")


class Described:
    """A value described in words, for values that must not be printed."""

    def __init__(self, words: str) -> None:
        self._words = words

    def __repr__(self) -> str:
        return self._words


def shown(value: object) -> str:
    """Return a short text for an error message; of containers the keys or the length, never the values."""
    if value is None:
        return "not given"
    if isinstance(value, Mapping):
        return _shortened("a mapping with the keys " + ", ".join(sorted(map(str, value))) if value else "{}")
    if isinstance(value, (list, tuple, set, frozenset)):
        return f"a {type(value).__name__} of {len(value)}"
    return _shortened(repr(value))


def path(parent: str, key: Any) -> str:
    """Return how a value inside an argument is written in Python: `job_specs[0]['SpotSpec']`."""
    return f"{parent}[{key!r}]"


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
