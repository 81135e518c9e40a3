"""What the demo found out, for people (a table) and for machines (JSON)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_pai_spot.cli.demo.story import Attempt, resumed_exactly, steps_lost

_ATTEMPTS_WITH_A_LOSS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """
    The end of a demo.

    :param seconds: `install`, `start` and `run`; None for what was not measured.
    :param tries: task id -> number of Airflow tries.
    :param recorded: the task's `attempts` XCom: what the operator itself says about each job.
    :param jobs_left_running: ids of jobs that are not over, as the emulator says.
    :param revoked: whether the market was to take the capacity away.
    """

    seconds: Mapping[str, float | None]
    dag_run_state: str
    tries: Mapping[str, int]
    attempts: Sequence[Attempt]
    recorded: Sequence[Mapping[str, Any]]
    jobs_left_running: Sequence[str]
    revoked: bool

    def problems(self) -> list[str]:
        """Return what is not as it should be, a sentence each; nothing if all is well."""
        found = []
        if self.dag_run_state != "success":
            found.append(f"The DAG run is {self.dag_run_state!r}, not success.")
        if self.jobs_left_running:
            found.append(f"Jobs are left: {', '.join(self.jobs_left_running)}.")
        if self.revoked and len(self.attempts) < _ATTEMPTS_WITH_A_LOSS:
            found.append("Capacity was to be lost, but no second attempt ran.")
        elif self.revoked and not resumed_exactly(self.attempts):
            found.append("The second attempt did not start at the last checkpoint of the first.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        recorded = {entry["job_id"]: entry for entry in self.recorded}
        return {
            "seconds": dict(self.seconds),
            "dag_run_state": self.dag_run_state,
            "tries": dict(self.tries),
            "attempts": [_attempt(attempt, recorded.get(attempt.job_id, {})) for attempt in self.attempts],
            "steps_lost": steps_lost(self.attempts),
            "jobs_created": len(self.attempts),
            "jobs_left_running": len(self.jobs_left_running),
            "resumed": resumed_exactly(self.attempts),
            "problems": self.problems(),
        }


def _attempt(attempt: Attempt, recorded: Mapping[str, Any]) -> dict[str, Any]:
    first = attempt.progress[0] if attempt.progress else None
    last = attempt.last
    return {
        "job_id": attempt.job_id,
        "status_history": list(attempt.statuses),
        "verdict": recorded.get("verdict"),
        "bid": attempt.bid,
        "seconds_running": recorded.get("seconds_running"),
        "first_step": first.step if first else None,
        "last_step": last.step if last else None,
        "last_checkpoint_step": last.checkpoint if last else None,
        "accuracy": last.accuracy if last else None,
    }
