"""When a progress line that was not seen was not written."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.pod_logs import no_line_was_missed, read_tails
from airflow_provider_pai_spot.dlc.outcome import JobOutcome, Verdict
from airflow_provider_pai_spot.exceptions import PaiDlcUnavailable

BARS = ["2026-11-30 12:00:00  37%"] * 2000


class Logs:
    """Answers GetPodLogs with as many lines as asked for, or with trouble."""

    def __init__(self, logs: dict[str, list[str] | None]) -> None:
        self.logs = logs

    def get_pod_logs(self, _job_id: str, pod_id: str, *, max_lines: int | None = None, **_from: Any) -> list[str]:
        lines = self.logs[pod_id]
        if lines is None:
            raise PaiDlcUnavailable("the node is gone")
        return lines[:max_lines]


CASES: dict[str, tuple[dict[str, list[str] | None], int, bool]] = {
    "every log was read whole": ({"worker-0": ["a"], "worker-1": []}, 0, True),
    "one log cannot be read": ({"worker-0": None, "worker-1": ["a"]}, 0, False),
    "one log is longer than what is read of it": ({"worker-0": BARS, "worker-1": ["a"]}, 0, False),
    "there are more pods than are read": ({f"worker-{index}": ["a"] for index in range(5)}, 0, False),
    "a pod had a life before": ({"worker-0": ["a"]}, 1, False),
    "there are no pods": ({}, 0, False),
}


@pytest.mark.parametrize(("logs", "restarts", "expected"), CASES.values(), ids=CASES)
def test_silence_counts_only_where_all_was_heard(logs: dict[str, Any], restarts: int, expected: bool) -> None:
    pods = tuple({"pod_id": pod_id, "type": "worker", "status": "Failed"} for pod_id in logs)
    outcome = JobOutcome(job_id="dlc1", verdict=Verdict.REVOKED, status="Failed", pods=pods, restarts=restarts)
    tails, outcome = read_tails(Logs(logs), outcome, 50)
    assert outcome.progress is None
    assert no_line_was_missed(outcome, tails) is expected
