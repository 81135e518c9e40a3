"""The end of the pods' logs: what a person looks for first when a job failed, and where progress is printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_pai_spot.attempts.log_ends import LogCalls, read_end
from airflow_provider_pai_spot.dlc.outcome import JobOutcome, Verdict
from airflow_provider_pai_spot.dlc.pods import summary_has_failed
from airflow_provider_pai_spot.dlc.progress import last_progress
from airflow_provider_pai_spot.exceptions import PaiDlcError

_MAX_PODS = 4


@dataclass(frozen=True, slots=True)
class PodTail:
    """The last lines of one pod's log, or why they could not be had."""

    pod_id: str
    lines: tuple[str, ...]
    problem: str = ""
    is_whole: bool = False
    """Whether all of the log was read, so that what is not in it was not written."""
    goes_on: bool = False
    """Whether lines may follow that could not be had."""


def read_tails(hook: LogCalls, outcome: JobOutcome, lines: int) -> tuple[list[PodTail], JobOutcome]:
    """
    Read the logs of the pods that tell most, failing ones first; return their tails and the outcome with progress.

    Of a success only the progress is wanted, which is known already if its logs were copied while it ran.

    :param lines: how many of the last lines of each pod to keep.
    """
    if outcome.verdict is Verdict.SUCCEEDED and outcome.progress:
        return [], outcome
    tails: list[PodTail] = []
    progress: Mapping[str, Any] | None = None
    for pod_id in _telling_pods(outcome):
        try:
            end = read_end(hook, outcome, pod_id, lines)
        except PaiDlcError as error:
            tails.append(PodTail(pod_id, (), str(error)))
            continue
        kept = tuple(end.lines[-lines:] if lines else ())
        tails.append(PodTail(pod_id, kept, is_whole=end.is_whole, goes_on=end.goes_on))
        progress = progress or last_progress(end.lines)
    return tails, outcome.with_progress(progress or outcome.progress)


def failing_pods(outcome: JobOutcome) -> frozenset[str]:
    """Return the ids of the pods that did not end well."""
    return frozenset(str(pod.get("pod_id")) for pod in outcome.pods if summary_has_failed(pod))


def left_out(outcome: JobOutcome, tails: Sequence[PodTail]) -> list[str]:
    """Return the ids of the pods whose end would tell as much as that of those that were read."""
    failing, read = failing_pods(outcome), {tail.pod_id for tail in tails}
    every = _pod_ids(outcome)
    return [pod_id for pod_id in ([one for one in every if one in failing] or every) if pod_id not in read]


def no_line_was_missed(outcome: JobOutcome, tails: Sequence[PodTail]) -> bool:
    """Whether a line that was not seen in the tails was not written by any pod of the job."""
    whole = {tail.pod_id for tail in tails if tail.is_whole}
    return bool(whole) and whole.issuperset(_pod_ids(outcome)) and not outcome.restarts


def _telling_pods(outcome: JobOutcome) -> Iterable[str]:
    return _pod_ids(outcome)[: _MAX_PODS if outcome.verdict is not Verdict.SUCCEEDED else 1]


def _pod_ids(outcome: JobOutcome) -> list[str]:
    """Return the ids of the pods that run the command, failing ones first."""
    pods = sorted(outcome.pods, key=lambda pod: not summary_has_failed(pod))
    named = (str(pod["pod_id"]) for pod in pods if pod.get("pod_id") and pod.get("type") != "aimaster")
    return list(dict.fromkeys(named))
