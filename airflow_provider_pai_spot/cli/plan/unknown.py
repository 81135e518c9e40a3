"""What is known only once the task runs: the marks that stand for it, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

KNOWN_AT_RUN_TIME = "<known at run time>"
KNOWN_WITH_THE_CONNECTION = "<known with the connection>"


class KnownAtRunTime(Exception):
    """A value that nobody has before the task runs; the message says what it waits for."""


class Later:
    """
    An argument that another task's result decides.

    It has what this provider recognises a reference by, so that an operator can be made with it.

    :param reason: what it waits for.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def iter_references(self) -> Iterator[Any]:
        """Refer to nothing that could be asked now."""
        return iter(())

    def resolve(self, _context: Any) -> NoReturn:
        """
        Refuse.

        :raises KnownAtRunTime: always.
        """
        raise KnownAtRunTime(self.reason)


@dataclass(slots=True)
class Unknown:
    """
    What was not known, with the reason.

    :param arguments: whole arguments, by name.
    :param parts: values inside arguments, by argument, as `envs['A']`.
    """

    arguments: dict[str, str] = field(default_factory=dict)
    parts: dict[str, dict[str, str]] = field(default_factory=dict)

    def forget_parts(self, argument: str) -> None:
        """Count an argument as unknown as a whole, because it cannot be checked with parts of it missing."""
        self.arguments[argument] = "; ".join(f"{where}: {why}" for where, why in self.parts.pop(argument).items())

    def reasons(self) -> dict[str, str]:
        """Return all of it, for people."""
        inner = {where: why for parts in self.parts.values() for where, why in parts.items()}
        return {**self.arguments, **inner}


def result_of(reference: Any) -> str | None:
    """Return `the result of task 'x'` for a reference to other tasks' results, None for anything else."""
    if not hasattr(reference, "iter_references"):
        return None
    tasks = sorted({operator.task_id for operator, _ in reference.iter_references()})
    return f"the result of task {', '.join(map(repr, tasks))}" if tasks else None
