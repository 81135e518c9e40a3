"""What the provider told in the logs of tasks, counted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

TOLD_BY_TASKS = {
    "found_open_intent": "an earlier try was interrupted while it submitted",
    "reattached": "re-attached to",
    "store_was_lost": "the state store knows no job, but DLC does",
    "answer_was_lost": "CreateJob's answer was lost",
    "second_job_of_an_attempt": "is a second job of the same attempt as",
}
"""What it stands for -> words of the provider's line."""


def count_lines(logs: Path, phrases: Mapping[str, str]) -> dict[str, int]:
    """Return how many lines of all task logs hold each phrase."""
    lines = [line for path in logs.rglob("*.log") for line in path.read_text(errors="replace").splitlines()]
    return {name: sum(phrase in line for line in lines) for name, phrase in phrases.items()}
