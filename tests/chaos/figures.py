"""A seed's figures, and whether enough went wrong for them to mean anything. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from judgement import Judgement
from timetable import KILLS, Trouble

FEWEST_KILLS = 3
FEWEST_SLOW_STOPS = 3
FEWEST_AMBIGUOUS_ANSWERS = 20
SMALLEST_LOSING_SHARE = 0.3


def counted(judgement: Judgement) -> dict[str, Any]:
    """Return the verdict's numbers."""
    share = judgement.losing_task_instances / max(1, judgement.task_instances)
    return {
        "task_instances": judgement.task_instances,
        "successes": judgement.successes,
        "losing_share": round(share, 3),
        "works": judgement.works,
        "jobs_created": judgement.jobs_created,
        "jobs_expected": judgement.jobs_expected,
        "jobs_revoked": judgement.jobs_revoked,
        "jobs_overdue": judgement.jobs_overdue,
        "duplicates": len(judgement.duplicates),
        "lost": len(judgement.lost),
        "ambiguous_answers": judgement.ambiguous_answers,
        "slow_stops": judgement.slow_stops,
    }


def faults_by_kind(journal: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return how often calls went wrong, by what went wrong."""
    found = Counter(entry["detail"]["fault"] for entry in journal if entry["kind"] == "fault")
    return dict(sorted(found.items()))


def shortfalls(figures: Mapping[str, Any], troubles: Collection[Trouble]) -> list[str]:
    """Name what did not happen often enough, of the troubles that were asked for."""
    wanted: list[tuple[str, float, float]] = [
        (f"kills of kind {one.value}", figures["kills"][one.value], FEWEST_KILLS) for one in KILLS if one in troubles
    ]
    if Trouble.LOST_ANSWERS in troubles:
        wanted.append(("ambiguous answers", figures["ambiguous_answers"], FEWEST_AMBIGUOUS_ANSWERS))
    if Trouble.SLOW_STOP in troubles:
        wanted.append(("slow stops", figures["slow_stops"], FEWEST_SLOW_STOPS))
    if Trouble.REVOKE in troubles:
        wanted.append(("share of task instances that lost capacity", figures["losing_share"], SMALLEST_LOSING_SHARE))
    return [f"{what}: {number} of {fewest}" for what, number, fewest in wanted if number < fewest]
