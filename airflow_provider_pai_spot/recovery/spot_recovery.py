"""How a task answers revocations: the `recovery` argument."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, Final, Self

from airflow_provider_pai_spot.dlc.bids import HIGHEST_DISCOUNT_BID, Bid, BidGrid, discount_bid
from airflow_provider_pai_spot.dlc.refusal import InvalidJobRequest

_MOST_REVOCATIONS: Final = 1_000  # far beyond use; a typo such as 50000 would spend money for weeks
_MAX = "recovery.max_revocations"
_LADDER = "recovery.spot_discount_ladder"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotRecovery:
    """
    How a task answers revocations.

    :param max_revocations: revocations answered by a resubmission within one Airflow try; 0 leaves every loss
        to Airflow's own `retries`.
    :param spot_discount_ladder: discount limits (fraction of list price, 0.9 at most) of the first, second, …
        resubmission of a try, in this order; the last one repeats. Empty: the task's own bid again.
    :raises InvalidJobRequest: a value is not one of these.
    """

    max_revocations: int = 5
    spot_discount_ladder: tuple[Decimal, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_revocations", _count(self.max_revocations))
        object.__setattr__(self, "spot_discount_ladder", _ladder(self.spot_discount_ladder))

    @classmethod
    def coerce(cls, value: SpotRecovery | Mapping[str, Any] | None) -> SpotRecovery:
        """
        Return the policy an operator's `recovery` argument means: itself, a mapping, or None for the default.

        :raises InvalidJobRequest: it is none of these, or has an unknown key or a wrong value.
        """
        if isinstance(value, SpotRecovery):
            return value
        if value is None:
            return cls()
        if not isinstance(value, Mapping):
            raise InvalidJobRequest("recovery", value, f"expected a SpotRecovery or a mapping with {_known()}.")
        return cls.from_mapping(value)

    @classmethod
    def from_mapping(cls, value: Mapping[str, Any]) -> Self:
        """
        Return the policy that a mapping with these arguments as keys describes.

        :raises InvalidJobRequest: an unknown key or a wrong value.
        """
        known = [field.name for field in fields(cls)]
        for key in value:
            if key not in known:
                close = difflib.get_close_matches(str(key), known, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else "."
                raise InvalidJobRequest("recovery", value, f"no key {key!r}; it has {_known()}{hint}")
        return cls(**value)

    def check_against(self, bids: Iterable[Bid], bid_grid: BidGrid = "refuse") -> tuple[str, ...]:
        """
        Check the ladder against the bids of the request; return warnings.

        :raises InvalidJobRequest: a ladder of discounts beside a price bid, or one off a grid that binds.
        """
        if not self.spot_discount_ladder:
            return ()
        for bid in bids:
            if bid.kind == "price":
                raise InvalidJobRequest(
                    _LADDER,
                    self.spot_discount_ladder,
                    f"the job bids a price ({bid}), and a ladder of discounts cannot follow it; bid with "
                    "spot_discount_limit, or leave the ladder out.",
                )
        checked = [discount_bid(f"{_LADDER}[{i}]", str(d), bid_grid) for i, d in enumerate(self.spot_discount_ladder)]
        return tuple(warning for _, warning in checked if warning)


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_REVOCATIONS:
        raise InvalidJobRequest(_MAX, value, f"expected a whole number from 0 to {_MOST_REVOCATIONS}.")
    return value


def _ladder(value: object) -> tuple[Decimal, ...]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise InvalidJobRequest(_LADDER, value, "expected a sequence of discounts, such as (0.6, 0.9).")
    return tuple(_discount(f"{_LADDER}[{index}]", step) for index, step in enumerate(value))


def _discount(argument: str, value: object) -> Decimal:
    amount = discount_bid(argument, value, "warn")[0].amount  # whether the grid binds is known at submission
    if amount > HIGHEST_DISCOUNT_BID:
        raise InvalidJobRequest(argument, value, f"a ladder ends at {HIGHEST_DISCOUNT_BID} of list price at most.")
    return amount


def _known() -> str:
    return " and ".join(field.name for field in fields(SpotRecovery))
