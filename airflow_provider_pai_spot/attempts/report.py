"""What people see of the attempts: XComs and log lines. Never an Envs value, never a request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow_provider_pai_spot.attempts.endings import describe
from airflow_provider_pai_spot.attempts.ledger import Attempt
from airflow_provider_pai_spot.attempts.pod_logs import PodTail, failing_pods, left_out
from airflow_provider_pai_spot.dlc.duration import duration
from airflow_provider_pai_spot.dlc.outcome import JobOutcome
from airflow_provider_pai_spot.dlc.pods import short_pod_id

XCOM_JOB_ID = "job_id"
XCOM_OUTCOME = "outcome"
XCOM_ATTEMPTS = "attempts"
_SHOWN_ATTEMPTS = 50
_NAMED_PODS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """
    Tells Airflow and the task log what happens to the jobs.

    :param push: pushes one XCom of the task instance.
    :param console_url: builds the console link of a job id.
    :param console_key: the XCom under which Airflow's UI finds the console link.
    """

    push: Callable[[str, Any], None]
    log: Any
    console_url: Callable[[str], str]
    console_key: str

    def job(self, job_id: str) -> None:
        """Make a job visible at once: its id and its console link (Airflow wipes XComs at every new try)."""
        self.push(XCOM_JOB_ID, job_id)
        self.push(self.console_key, self.console_url(job_id))

    def submitted(self, attempt: Attempt, tries: str) -> None:
        """Say what was submitted, and how to stop it by hand."""
        self.log.info("submitted %s attempt %d, %s, %s", attempt.job_id, attempt.number, attempt.terms, tries)
        self.log.info(
            "console: %s; to stop it by hand: pai-spot stop %s",
            self.console_url(str(attempt.job_id)),
            attempt.job_id,
        )

    def went(self, outcome: JobOutcome) -> None:
        """
        Say which way a job went and how its end is judged, a line each.

        Airflow 3.3's triggerer begins its part of the task log anew at each deferral of a try, so the lines of an
        earlier wait can be gone by the time somebody reads the log.
        """
        if outcome.timeline:
            steps = [_step(*entry) for entry in outcome.timeline]
            self.log.info("%s went: %s", outcome.job_id, " → ".join(steps))
        self.log.info("verdict on %s: %s", outcome.job_id, describe(outcome))

    def ended(self, outcome: JobOutcome, attempts: Iterable[Attempt]) -> None:
        """Publish how the newest job ended, and the timeline of all attempts."""
        self.push(XCOM_OUTCOME, outcome.to_dict())
        self.push(XCOM_ATTEMPTS, [timeline_entry(one) for one in list(attempts)[-_SHOWN_ATTEMPTS:]])

    def succeeded(self, outcome: JobOutcome, attempts: Iterable[Attempt]) -> None:
        """Say what it took."""
        known = list(attempts)
        running = duration(sum(one.seconds_running for one in known) or outcome.seconds_running)
        count = f"{len(known)} attempt{'s' if len(known) != 1 else ''}"
        restarts = f", restarted by DLC {outcome.restarts} x" if outcome.restarts else ""
        self.log.info("succeeded: %s, %s, %s running%s", outcome.job_id, count, running, restarts)

    def tails(self, outcome: JobOutcome, tails: Iterable[PodTail]) -> None:
        """Put the last lines of each failing pod into the task log; of all that were read if none stands out."""
        read = list(tails)
        failing = failing_pods(outcome)
        for tail in [one for one in read if one.pod_id in failing] or read:
            if tail.problem:
                self.log.warning("the log of %s could not be read: %s", tail.pod_id, tail.problem)
            elif tail.lines:
                text = "\n".join(tail.lines)
                more = " (more may follow that could not be read)" if tail.goes_on else ""
                self.log.error("last %d lines of %s%s:\n%s", len(tail.lines), tail.pod_id, more, text)
            else:
                self.log.warning("%s wrote no log", tail.pod_id)
        if others := left_out(outcome, read):
            named = ", ".join(map(short_pod_id, others[:_NAMED_PODS])) + (", …" if len(others) > _NAMED_PODS else "")
            self.log.warning("the logs of %d more pods are not shown here: %s", len(others), named)


def _step(status: str, start: str, end: str) -> str:
    if not (start and end) or start == end:
        return status
    spent = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return f"{status} {duration(spent.total_seconds())}"


def timeline_entry(attempt: Attempt) -> dict[str, Any]:
    """Return one attempt as the `attempts` XCom shows it."""
    return {
        "attempt": attempt.number,
        "job_id": attempt.job_id,
        "try_number": attempt.try_number,
        "bid": attempt.bid,
        "ecs_spec": attempt.ecs_spec,
        "on_demand": attempt.on_demand,
        "reason": attempt.reason,
        "verdict": attempt.verdict,
        "cause": attempt.cause or None,
        "stop_reason": attempt.stop_reason,
        "seconds_pending": round(attempt.seconds_pending, 1),
        "seconds_running": round(attempt.seconds_running, 1),
        "restarts": attempt.restarts,
        "progress": attempt.progress,
        "checkpoint": attempt.checkpoint,
        "progressed": attempt.progressed,
    }
