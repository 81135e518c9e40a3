"""Tries that Airflow itself ended by mistake, as its schedulers' logs tell."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

# A task that resumes before the scheduler has heard of its deferral (apache/airflow #71580).
_MARKS = ("reported that the task instance", "finished with state success, but the task instance's state attribute is")
_LONGEST = 400


def ended_by_core_bugs(logs: Iterable[Path]) -> list[str]:
    """Return the line of each try that was ended so."""
    return [
        f"{path.name}: {line.strip()[:_LONGEST]}"
        for path in logs
        for line in path.read_text(errors="replace").splitlines()
        if all(mark in line for mark in _MARKS)
    ]
