"""From a job on DLC, or a file that holds one, to its verdict and what the provider does about it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_pai_spot.attempts.commands import Command, Do, ReadEvents, ReadPodEvents
from airflow_provider_pai_spot.attempts.drive import answer
from airflow_provider_pai_spot.attempts.endings import error_for
from airflow_provider_pai_spot.attempts.judging import has_bid, judging
from airflow_provider_pai_spot.attempts.log_options import events_in_utc
from airflow_provider_pai_spot.cli.problem import CliProblem
from airflow_provider_pai_spot.clock import SYSTEM_CLOCK
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import JobOutcome, Verdict

if TYPE_CHECKING:
    from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

EVENTS_KEY = "Events"
"""Under this key, as in GetJobEvents' answer, a file may hold the job's events as well."""
_STANDARD_INPUT = "-"
_WRAPPER = "body"  # what the vendor SDK's answers wrap the job in

_ACTIONS = {
    "resubmit": "resubmit: another job in the same try, up to recovery.max_revocations; after that the try fails with "
    "{} and Airflow's retries decide",
    "retry": "Airflow retry: the try fails with {} and the task's retries decide",
    "no retry": "no retry: the task fails with {} (unless one of its own limits had passed: this command knows none)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """
    What a task does after this end.

    :param action: `wait`, `succeed`, `resubmit`, `retry` or `no retry`.
    :param exception: the name of what is raised, '' if nothing is.
    :param text: the same, told to a person.
    """

    action: str
    exception: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """
    One job and how its end is judged.

    :param spot: whether it is judged as one that bid.
    :param events_read: how many event lines could be used.
    """

    job: Job
    outcome: JobOutcome
    next: Next
    spot: bool
    events_read: int


def from_dlc(hook: PaiDlcHook, job_id: str) -> Explained:
    """Read a job and judge it; its events, then its pods', are read only if nothing else tells for sure."""
    job = Job(hook.get_job(job_id))
    explained = _explained(job, lambda command: _asked(command, hook))
    return explained if job.is_decided else replace(explained, outcome=_until_now(job, explained.outcome))


def _asked(command: Command, hook: PaiDlcHook) -> Any:
    """Read as a task does, except that a job whose events cannot be read is not judged without them."""
    found = answer(command, hook)
    if isinstance(command, ReadEvents) and isinstance(found, Exception):
        raise found
    return found


def _until_now(job: Job, outcome: JobOutcome) -> JobOutcome:
    """A job that is not over has waited or run until now."""
    now = SYSTEM_CLOCK.now()
    return replace(outcome, seconds_pending=job.seconds_pending(now), seconds_running=job.seconds_running(now))


def from_file(path: str) -> Explained:
    """
    Judge the job in a file, `-` for standard input; events beside it are those that a task would read.

    :raises CliProblem: there is no such file, or no job in it.
    """
    raw = _job_in(path)
    events = raw.get(EVENTS_KEY)
    lines = [line for line in events if isinstance(line, str)] if isinstance(events, list) else []
    return _explained(Job(raw), lambda command: _kept(command, lines))


def _kept(command: Command, events: Sequence[str]) -> Any:
    match command:
        case ReadEvents():
            return events_in_utc(events)
        case Do(work):
            return work()
        case _:
            return []


def _explained(job: Job, reply_to: Callable[[Command], Any]) -> Explained:
    """Judge a job as its task does: one that carries our tag has bid, whether DLC shows it or not."""
    spot = has_bid(job)
    asking, reply, events_read = judging(job, spot=spot), None, 0
    while True:
        try:
            command = asking.send(reply)
        except StopIteration as end:
            outcome = end.value
            return Explained(job=job, outcome=outcome, next=what_next(job, outcome), spot=spot, events_read=events_read)
        reply = reply_to(command)
        if isinstance(command, ReadEvents | ReadPodEvents) and isinstance(reply, list):
            events_read += len(reply)


def what_next(job: Job, outcome: JobOutcome) -> Next:
    """Return what the operator does about an outcome; whether Airflow retries is said by the exception's type."""
    if not job.is_decided:
        return Next(action="wait", exception="", text="wait: the job is not over")
    if outcome.verdict is Verdict.SUCCEEDED:
        return Next(action="succeed", exception="", text="succeed")
    raised = type(error_for(outcome))
    action = "resubmit" if outcome.verdict is Verdict.REVOKED else "retry"
    action = "no retry" if issubclass(raised, AirflowFailException) else action
    return Next(action=action, exception=raised.__name__, text=_ACTIONS[action].format(raised.__name__))


def _job_in(path: str) -> Mapping[str, Any]:
    name = "standard input" if path == _STANDARD_INPUT else repr(path)
    try:
        text = sys.stdin.read() if path == _STANDARD_INPUT else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CliProblem(
            f"{name} cannot be read: {getattr(error, 'strerror', None) or 'it is no UTF-8 text'}."
        ) from None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CliProblem(f"{name} is no JSON ({error}); expected what GetJob answers.") from None
    if isinstance(found, dict) and isinstance(found.get(_WRAPPER), dict):
        found = found[_WRAPPER]
    if not isinstance(found, dict) or not ("JobId" in found or "Status" in found):
        raise CliProblem(f"{name} holds no job: expected the JSON object that GetJob answers, with JobId and Status.")
    return found
