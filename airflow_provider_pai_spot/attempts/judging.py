"""
How a job ended, by the rules in force: those of this release and, before them, your own.

`[pai_spot] verdict_rules` names a sequence of `Rule` in a module of yours. It is imported where jobs are judged, in
workers and triggerers, once a process; never when a DAG file is parsed.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from airflow_provider_pai_spot import settings
from airflow_provider_pai_spot.attempts.identity import bids_for_spot
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import Cause, JobOutcome, Verdict
from airflow_provider_pai_spot.dlc.refusal import shown
from airflow_provider_pai_spot.dlc.signs import Scene
from airflow_provider_pai_spot.dlc.verdict import RULES, Rule, classify, rules_with

_log = logging.getLogger(__name__)


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
    :param spot: whether it bid for spot capacity, where the caller knows and the job's tags do not say otherwise; None
        goes by what the job shows.
    :raises InvalidVerdictRules: as `rules_in_force`.
    """
    bids = bids_for_spot(job.tags)  # one that recovery submitted on demand cannot have lost spot capacity
    return replace(classify(job, events, rules_in_force(), spot=spot and bids), on_demand=not bids)


def rules_in_force() -> tuple[Rule, ...]:
    """
    Return all rules in the order in which they are asked; call it early, so that a wrong setting costs no job.

    :raises InvalidVerdictRules: `verdict_rules` cannot be imported, or is no sequence of rules.
    """
    path = settings.verdict_rules()
    return rules_with(_own_rules(path)) if path else RULES


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
