"""
How a job ended, by the rules in force: those of this release and, before them, your own.

`[pai_spot] verdict_rules` names a sequence of `Rule` in a module of yours. It is imported where jobs are judged, in
workers and triggerers, once a process; never when a DAG file is parsed. One that cannot be used keeps a job from being
submitted, and never ends the watching of one that is under way: that one the rules of this release judge.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Generator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from airflow_provider_pai_spot import settings
from airflow_provider_pai_spot.attempts.commands import Command, Do, ReadEvents, ReadPodEvents
from airflow_provider_pai_spot.attempts.drive import JobReader, carry_out
from airflow_provider_pai_spot.attempts.identity import TAG_TASK_INSTANCE, bids_for_spot
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import Cause, JobOutcome, Verdict
from airflow_provider_pai_spot.dlc.pods import Pod
from airflow_provider_pai_spot.dlc.redaction import LONGEST_TEXT, without_secrets
from airflow_provider_pai_spot.dlc.refusal import shown
from airflow_provider_pai_spot.dlc.signs import Scene
from airflow_provider_pai_spot.dlc.status import is_decided
from airflow_provider_pai_spot.dlc.verdict import RULES, Rule, classify, rules_with

_PODS_ASKED = 2
_RULES_OF_LAST_RESORT = ("pod_failed_in_place",)
"""What they take for the user's failure, DLC's events may explain."""
_LATEST = datetime.max.replace(tzinfo=UTC)

_log = logging.getLogger(__name__)
_unusable: set[str] = set()
"""Values of `verdict_rules` that were told to be wrong and are not imported anew at each judgement."""


class InvalidVerdictRules(ValueError):
    """
    `[pai_spot] verdict_rules` cannot be used.

    :param path: the option's value.
    :param problem: what is wrong with it, and what would be right.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"[{settings.SECTION}] verdict_rules is {path!r}: {problem}")


def judge(job: Job, events: Sequence[str] = (), *, spot: bool | None = None) -> JobOutcome:
    """
    Return how a job ended; `unknown` by rule `not_over` if it has not.

    :param events: lines of GetJobEvents and GetPodEvents; never lines of logs.
    :param spot: as in `has_bid`.
    :raises InvalidVerdictRules: as `rules_in_force`, unless `rules_for_live_job` has told of it.
    """
    rules = RULES if settings.verdict_rules() in _unusable else rules_in_force()
    return replace(classify(job, events, rules, spot=has_bid(job, spot)), on_demand=not bids_for_spot(job.tags))


def has_bid(job: Job, spot: bool | None = None) -> bool:
    """
    Whether a job bid for spot capacity; never one that recovery submitted on demand, whatever DLC shows of it.

    :param spot: what whoever submitted it knows. None, for a job that may be anyone's: one with our tag has bid, as
        DLC does not always echo SpotSpec; any other goes by what it shows.
    """
    if not bids_for_spot(job.tags):
        return False
    return job.is_spot or TAG_TASK_INSTANCE in job.tags if spot is None else spot


def judging(job: Job, *, spot: bool | None = None) -> Generator[Command, Any, JobOutcome]:
    """
    Return how a job ended, as `judge`; the events of one that is over are read if its own fields do not tell for sure.

    The job's own events first, then, if nothing tells at all, those of the pods that failed first: an image or a mount
    often shows only there.
    All lines of events are masked, which may take seconds: whoever drives this does it where it may block.
    """
    outcome = judge(job, spot=spot)
    is_sure = outcome.verdict is not Verdict.UNKNOWN and outcome.rule not in _RULES_OF_LAST_RESORT
    if is_sure or not is_decided(job.status):
        return outcome
    events = yield from _events(ReadEvents(job.job_id))
    outcome = judge(job, events, spot=spot)
    if outcome.verdict is not Verdict.UNKNOWN:
        return outcome
    for pod in pods_to_ask(job):
        events += yield from _events(ReadPodEvents(job.job_id, pod.pod_id))
    return judge(job, events, spot=spot)


def pods_to_ask(job: Job) -> list[Pod]:
    """Return the pods whose events may tell why a job failed, two at most: the first to fail, then any unfinished."""
    workers = [pod for pod in job.pods if pod.pod_id and not pod.is_aimaster]
    failed = sorted(
        (pod for pod in workers if pod.has_failed),
        key=lambda pod: pod.finished_at or _LATEST,
    )
    unfinished = [pod for pod in workers if not pod.has_failed and pod.status != "Succeeded"]
    return [*failed, *unfinished][:_PODS_ASKED]


def _events(command: ReadEvents | ReadPodEvents) -> Generator[Command, Any, list[str]]:
    found = yield command
    events = yield Do(functools.partial(event_lines, found))
    return events if isinstance(events, list) else []


def judge_with_events(job: Job, reader: JobReader, *, spot: bool | None = None) -> JobOutcome:
    """Return how a job ended, as `judging`; for workers, which may block. Events that cannot be read are none."""
    return carry_out(judging(job, spot=spot), reader)


def event_lines(answer: Any, newest: int | None = None) -> list[str]:
    """
    Read an answer of event lines, without secrets; an exception in its place is no lines.

    :param newest: how many of the last lines are wanted; None for all.
    """
    lines = answer if isinstance(answer, list) else []
    wanted = lines if newest is None else lines[-newest:]
    return [without_secrets(str(line), LONGEST_TEXT) for line in wanted]


def rules_in_force() -> tuple[Rule, ...]:
    """
    Return all rules in the order in which they are asked; call it early, so that a wrong setting costs no job.

    :raises InvalidVerdictRules: `verdict_rules` cannot be imported, or is no sequence of rules.
    """
    path = settings.verdict_rules()
    return rules_with(_own_rules(path)) if path else RULES


def rules_for_live_job(log: Any) -> tuple[Rule, ...]:
    """
    Return all rules, as `rules_in_force`; where those of one's own are wrong, tell so and go on with the built-in ones.

    :param log: gets one error if `verdict_rules` cannot be used.
    """
    path = settings.verdict_rules()
    try:
        rules = rules_in_force()
    except InvalidVerdictRules as error:
        told = without_secrets(str(error), LONGEST_TEXT)
    else:
        _unusable.discard(path)
        return rules
    _unusable.add(path)
    log.error("%s The job is watched on and judged by the built-in rules.", told)
    return RULES


@functools.cache
def _own_rules(path: str) -> tuple[Rule, ...]:
    found = _imported(path)
    if not isinstance(found, Sequence) or not all(isinstance(rule, Rule) for rule in found):
        raise InvalidVerdictRules(path, f"expected a list or tuple of Rule, it is {shown(found)}.")
    for rule in found:
        _check(path, rule)
    names = [rule.name for rule in (*found, *RULES)]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidVerdictRules(path, f"the name {twice[0]!r} is taken; give each rule one of its own.")
    return tuple(replace(rule, sign=functools.partial(_asked, rule)) for rule in found)


def _imported(path: str) -> Any:
    module, _, name = path.rpartition(".")
    if not module:
        raise InvalidVerdictRules(path, "expected the import path of a sequence, such as my_package.rules.RULES.")
    try:
        return getattr(import_module(module), name)
    except Exception as error:  # whatever a module does while it is imported
        where = "It must be importable where workers, triggerers and `pai-spot` run."
        raise InvalidVerdictRules(path, f"it cannot be imported ({type(error).__name__}: {error}). {where}") from error


def _check(path: str, rule: Rule) -> None:
    right = {
        "name": isinstance(rule.name, str) and rule.name,
        "verdict": isinstance(rule.verdict, Verdict),
        "cause": rule.cause is None or isinstance(rule.cause, Cause),
        "confidence": rule.confidence in ("documented", "observed", "assumed"),
        "sign": callable(rule.sign),
    }
    for field, is_right in right.items():
        if not is_right:
            value = getattr(rule, field)
            raise InvalidVerdictRules(path, f"{field} of its rule {rule.name!r} is {shown(value)}; see Rule.")


def _asked(rule: Rule, scene: Scene) -> Sequence[str]:
    """A rule that breaks on some job decides nothing about it; the job's end must be told all the same."""
    try:
        seen = rule.sign(scene)
        return (seen,) if isinstance(seen, str) else tuple(seen or ())
    except Exception:  # noqa: BLE001 - whatever somebody's rule does
        _log.exception("%s: rule %s of [pai_spot] verdict_rules raised; it is skipped", scene.job.job_id, rule.name)
        return ()
