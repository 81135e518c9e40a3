"""
Whether a created job really bids.

A service that drops the spot terms bills on-demand prices for what was meant to be spot, silently. GetJob does not
echo everything, so absence alone proves nothing: ListJobs' own filter by PaymentType is the second witness.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Protocol

from airflow_provider_pai_spot.clock import Clock
from airflow_provider_pai_spot.exceptions import (
    PaiDlcError,
    PaiDlcNotFound,
    PaiDlcThrottled,
    PaiDlcUnavailable,
)

_MAY_PASS = (PaiDlcUnavailable, PaiDlcThrottled, PaiDlcNotFound)
_LOOK_EVERY = 5.0
_WITNESSED = 2
"""How many looks must agree before a job is stopped."""


class SpotTerms(StrEnum):
    """What the created job shows."""

    CONFIRMED = "confirmed"
    CONTRADICTED = "contradicted"
    ABSENT = "absent"
    """Not shown, and no second witness says that the job does not bid."""
    UNREAD = "unread"


class ReadsJobs(Protocol):
    """The call of the hook that is needed here."""

    def get_job(self, job_id: str) -> dict[str, Any]:
        """Return GetJob's JSON."""
        ...


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
                detail = f"role {role_type}: asked for {key} {spec[key]!r}, GetJob shows {value!r}"
                return TermsCheck(SpotTerms.CONTRADICTED, detail)
    return TermsCheck(SpotTerms.ABSENT, _asked(sent)) if absent else TermsCheck(SpotTerms.CONFIRMED)


def compare_presence(sent: Mapping[str, Any], seen: Mapping[str, Any]) -> TermsCheck:
    """
    Look whether a job that an earlier try submitted bids at all; how much it bids, that try may have changed.

    :param sent: the request, whose roles bid.
    :param seen: GetJob's JSON.
    """
    shown = [role["SpotSpec"] for role in _roles(seen) if role.get("SpotSpec")]
    return TermsCheck(SpotTerms.CONFIRMED) if shown else TermsCheck(SpotTerms.ABSENT, _asked(sent))


@dataclass(frozen=True, slots=True, kw_only=True)
class TermsReader:
    """
    Reads back whether a job bids as it was asked to.

    :param list_as: lists our jobs of one PaymentType (`Spot`, `PostPaid`), this job among them if it is one.
    :param patience: seconds a new job may stay invisible.
    """

    hook: ReadsJobs
    list_as: Callable[[str], Sequence[Mapping[str, Any]]]
    patience: float
    clock: Clock

    def of_new(self, sent: Mapping[str, Any], job_id: str) -> TermsCheck:
        """
        Look at a job that was just created.

        :param sent: its CreateJob body.
        """
        return self._when_visible(lambda: self._second_opinion(compare(sent, self.hook.get_job(job_id)), job_id))

    def of_found(self, asked: Mapping[str, Any], job: Mapping[str, Any]) -> TermsCheck:
        """
        Look at a job that an earlier try submitted and could not look at.

        :param asked: the request as the task asks for it.
        :param job: GetJob's JSON.
        """
        return self._when_visible(lambda: self._second_opinion(compare_presence(asked, job), str(job.get("JobId"))))

    def _when_visible(self, look: Callable[[], TermsCheck]) -> TermsCheck:
        until = self.clock.now() + timedelta(seconds=self.patience)
        while True:
            try:
                return look()
            except PaiDlcError as error:
                if not isinstance(error, _MAY_PASS) or self.clock.now() >= until:
                    return TermsCheck(SpotTerms.UNREAD, str(error))
            self.clock.sleep(_LOOK_EVERY)

    def _second_opinion(self, check: TermsCheck, job_id: str) -> TermsCheck:
        """Ask ListJobs about a job whose SpotSpec is not shown; twice, since a list may lag behind what it lists."""
        if check.terms is not SpotTerms.ABSENT:
            return check
        until = self.clock.now() + timedelta(seconds=self.patience)
        seen_as_post_paid = 0
        while not _lists(self.list_as("Spot"), job_id):
            seen_as_post_paid += _lists(self.list_as("PostPaid"), job_id)
            if seen_as_post_paid == _WITNESSED:
                return TermsCheck(
                    SpotTerms.CONTRADICTED, f"{check.detail}, and ListJobs shows it as PostPaid, not Spot"
                )
            if self.clock.now() >= until:
                break
            self.clock.sleep(_LOOK_EVERY)
        return check


def _lists(items: Sequence[Mapping[str, Any]], job_id: str) -> bool:
    return any(item.get("JobId") == job_id for item in items)


def _asked(sent: Mapping[str, Any]) -> str:
    """Say what was asked for and is not shown."""
    asked = [f"role {role.get('Type')}: {_in_words(role['SpotSpec'])}" for role in _roles(sent) if role.get("SpotSpec")]
    return f"asked for {'; '.join(asked)}; GetJob shows no SpotSpec"


def _in_words(spec: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {spec[key]!r}" for key in _COMPARED if key in spec)


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
