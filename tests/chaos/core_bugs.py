"""Tries that Airflow itself ended by mistake, as the logs of its schedulers and workers tell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

# A task that resumes before the scheduler has heard of its deferral (apache/airflow #71580). The same line follows
# when the task's own process died, which is no bug: the worker says so with an exit code.
_REPORTED = re.compile(
    r"reported that the task instance .*ti_id=(?P<uuid>[0-9a-f-]{36})> finished with state success, "
    "but the task instance's state attribute is"
)
_DIED = re.compile(r"Workload finished .*exit_code=(?!0 )\S+ .*workload_id=(?P<uuid>[0-9a-f-]{36})")
_LONGEST = 400


def ended_by_core_bugs(components: Path) -> list[str]:
    """
    Return the line of each try that was ended so.

    :param components: folder of the components' logs.
    """
    died = {found["uuid"] for _, _, found in _matches(_DIED, components.glob("worker-*.log"))}
    return [
        f"{path.name}: {line.strip()[:_LONGEST]}"
        for path, line, found in _matches(_REPORTED, components.glob("scheduler-*.log"))
        if found["uuid"] not in died
    ]


def _matches(pattern: re.Pattern[str], logs: Iterable[Path]) -> Iterator[tuple[Path, str, re.Match[str]]]:
    for path in logs:
        for line in path.read_text(errors="replace").splitlines():
            if found := pattern.search(line):
                yield path, line, found
