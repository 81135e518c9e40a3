"""Where Airflow stands when a try begins."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TryMoment:
    """
    One try of a task instance.

    :param max_tries: Airflow's own; a person's clear changes it and a retry does not, so it names the generation.
    :param started_at: start of this try, deferrals included (`ti.start_date`).
    :param run_started_at: start of the DAG run; run ids repeat when a run is deleted and re-created.
    """

    try_number: int
    max_tries: int
    started_at: datetime
    run_started_at: datetime

    @property
    def generation(self) -> int:
        """What a job belongs to: the same for all tries until a person clears the task."""
        return self.max_tries

    @property
    def is_last_try(self) -> bool:
        """Whether Airflow has no further try left."""
        return self.try_number > self.max_tries

    def __str__(self) -> str:
        return f"try {self.try_number} of {self.max_tries + 1}"
