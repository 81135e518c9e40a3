"""A verdict, and the table of rules, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_provider_pai_spot.cli.explain.reading import Explained
from airflow_provider_pai_spot.dlc.duration import duration
from airflow_provider_pai_spot.dlc.verdict import RULES, RULES_VERSION, Rule, source_of

RULE_COLUMNS = ("rule", "verdict", "cause", "confidence", "reads", "source")


def as_text(explained: Explained, rules: Sequence[Rule]) -> str:
    """Return the verdict, a line each fact, evidence last but one."""
    outcome = explained.outcome
    evidence = [("evidence" if number == 0 else "", line) for number, line in enumerate(outcome.evidence)]
    lines = [
        ("job", f"{outcome.job_id or 'without JobId'}, {outcome.status or 'without Status'}"),
        ("verdict", outcome.verdict.value),
        ("cause", outcome.cause.value if outcome.cause else "-"),
        ("confidence", outcome.confidence),
        ("rule", f"{outcome.rule}, of {len(rules)} in version {RULES_VERSION} of the table"),
        ("source", source_of(outcome, rules)),
        *evidence,
        ("spot", "yes" if explained.spot else "no SpotSpec and no tag of this provider is shown"),
        ("went", f"{duration(outcome.seconds_pending)} pending, {duration(outcome.seconds_running)} running"),
        ("next", explained.next.text),
    ]
    if outcome.reserving:
        lines.append(("note", "its nodes are still held, and perhaps billed"))
    return "\n".join(f"{name:<11} {text}".rstrip() for name, text in lines)


def as_json(explained: Explained, rules: Sequence[Rule]) -> dict[str, Any]:
    """Return the outcome as tasks push it, its rule's source, and what follows."""
    outcome, following = explained.outcome, explained.next
    return {
        "outcome": outcome.to_dict(),
        "source": source_of(outcome, rules),
        "rules_version": RULES_VERSION,
        "spot": explained.spot,
        "events_read": explained.events_read,
        "next": {"action": following.action, "exception": following.exception, "text": following.text},
    }


def rules_title(rules: Sequence[Rule]) -> str:
    """Return what is to be known about the table."""
    own = len(rules) - len(RULES)
    more = f" and {own} of your own" if own else ""
    return (
        f"rules version {RULES_VERSION}: {len(RULES)}{more}, asked in this order, the first that sees something decides"
    )


def rules_rows(rules: Sequence[Rule]) -> list[tuple[str, ...]]:
    """Return the table of rules, as cells."""
    return [tuple(_rule(rule).values()) for rule in rules]


def rules_json(rules: Sequence[Rule]) -> dict[str, Any]:
    """Return the table of rules."""
    return {"rules_version": RULES_VERSION, "rules": [_rule(rule) for rule in rules]}


def _rule(rule: Rule) -> dict[str, str]:
    cause = rule.cause.value if rule.cause else "-"
    cells = (rule.name, rule.verdict.value, cause, rule.confidence, rule.reads, rule.source)
    return dict(zip(RULE_COLUMNS, cells, strict=True))
