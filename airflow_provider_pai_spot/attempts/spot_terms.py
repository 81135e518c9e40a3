"""
Whether a created job really bids.

A service that drops the spot terms bills on-demand prices for what was meant to be spot, silently. GetJob does not
echo everything, so absence alone proves nothing: ListJobs' own filter by PaymentType is the second witness.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class SpotTerms(StrEnum):
    """What the created job shows."""

    CONFIRMED = "confirmed"
    CONTRADICTED = "contradicted"
    ABSENT = "absent"


_COMPARED = ("SpotStrategy", "SpotDiscountLimit", "SpotPriceLimit")
_TOLERANCE = 1e-6  # a service that keeps limits in 32 bits shows 0.4 as 0.4000000059604645


@dataclass(frozen=True, slots=True)
class TermsCheck:
    """The verdict on one job's terms, with what differed."""

    terms: SpotTerms
    detail: str = ""


def compare(sent: Mapping[str, Any], seen: Mapping[str, Any]) -> TermsCheck:
    """
    Compare the spot terms of the CreateJob body with those of GetJob's answer; nothing else is compared.

    :param sent: the CreateJob body.
    :param seen: GetJob's JSON.
    """
    wanted = {role.get("Type"): role["SpotSpec"] for role in _roles(sent) if role.get("SpotSpec")}
    shown = {role.get("Type"): role.get("SpotSpec") for role in _roles(seen)}
    absent = False
    for role_type, spec in wanted.items():
        echoed = _echoed(spec, shown.get(role_type))
        absent = absent or not echoed
        for key, value in echoed.items():
            if not _same(spec[key], value):
                detail = f"role {role_type}: {key} was sent as {spec[key]!r} and is {value!r}"
                return TermsCheck(SpotTerms.CONTRADICTED, detail)
    return TermsCheck(SpotTerms.ABSENT if absent else SpotTerms.CONFIRMED)


def second_witness(job_id: str, list_as: Callable[[str], Sequence[Mapping[str, Any]]], looks: int = 2) -> TermsCheck:
    """
    Ask ListJobs about a job whose SpotSpec is not echoed.

    :param list_as: lists our jobs of one PaymentType (`Spot`, `PostPaid`), this job among them if it is one.
    :return: `CONTRADICTED` if it is shown as PostPaid and not as Spot, `looks` times; otherwise `ABSENT`.
    """
    for _ in range(looks):
        as_spot = any(item.get("JobId") == job_id for item in list_as("Spot"))
        as_post_paid = any(item.get("JobId") == job_id for item in list_as("PostPaid"))
        if as_spot or not as_post_paid:
            return TermsCheck(SpotTerms.ABSENT)
    return TermsCheck(SpotTerms.CONTRADICTED, "ListJobs shows it with PaymentType PostPaid and not with Spot")


def _roles(job: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    roles = job.get("JobSpecs")
    return [role for role in roles if isinstance(role, Mapping)] if isinstance(roles, list) else []


def _echoed(sent: Mapping[str, Any], seen: object) -> dict[str, Any]:
    """Return the terms that were sent and are shown; an empty one or a limit of 0 stands for one that is not."""
    if not isinstance(seen, Mapping):
        return {}
    return {key: seen[key] for key in _COMPARED if key in sent and key in seen and not _is_unset(seen[key])}


def _is_unset(value: Any) -> bool:
    return value is None or value == "" or _number(value) == 0


def _same(sent: Any, seen: Any) -> bool:
    one, other = _number(sent), _number(seen)
    if one is None or other is None:
        return str(sent) == str(seen)
    return math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)


def _number(value: Any) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None
