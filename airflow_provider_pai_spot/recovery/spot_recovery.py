"""How a task answers losses of capacity: the `recovery` argument."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, Final, Literal, Self, get_args

from airflow_provider_pai_spot.dlc import arguments
from airflow_provider_pai_spot.dlc.bids import HIGHEST_DISCOUNT_BID, Bid, discount_bid, price_bid
from airflow_provider_pai_spot.dlc.refusal import InvalidJobRequest

ChooseEcsSpec = Literal["in_order", "by_market"]
OnPendingTimeout = Literal["fail", "raise_bid", "next_ecs_spec", "on_demand"]

_MOST_REVOCATIONS: Final = 1_000  # far beyond use; a typo such as 50000 would spend money for weeks
_PREFIX: Final = "recovery."


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotRecovery:
    """
    How a task answers losses of capacity. A try starts over: with the task's own bid and instance type.

    :param max_revocations: losses answered by a resubmission within one Airflow try, pending timeouts that
        `on_pending_timeout` answers included; 0 leaves every loss to Airflow's own `retries`.
    :param spot_discount_ladder: discount limits (fraction of list price, 0.9 at most) of the resubmissions after the
        first, second, … loss of a try; the last one repeats. Empty: the task's own bid again. One bid stands for all
        roles, here and in `by_market`: those that bid must bid alike.
    :param spot_price_ladder: the same for a task that bids a price, in CNY per minute.
    :param ecs_specs: instance types to go on with, in this order and around again, the task's own first.
    :param choose_ecs_spec: `in_order` takes the next type after each loss; `by_market` asks ListEcsSpecs and takes the
        one in stock that is cheapest as a fraction of list price, if any is at or below the bid.
    :param on_demand_after: from this many losses on (all tries together, until a person clears the task) jobs run on
        demand, at list price and on the task's own type. None: never. This costs real money.
    :param on_pending_timeout: what follows `pending_timeout`: `fail` (Airflow's `retries`), `raise_bid` (the next bid
        of the ladder that is higher), `next_ecs_spec` (each once) or `on_demand` (at list price).
    :param max_losses_without_progress: this many losses without any progress between them end the task, and Airflow
        does not retry it. Counted like `on_demand_after`; None: never.
    :raises InvalidJobRequest: a value is not one of these, or one needs another.
    """

    max_revocations: int = 5
    spot_discount_ladder: tuple[Decimal, ...] = ()
    spot_price_ladder: tuple[Decimal, ...] = ()
    ecs_specs: tuple[str, ...] = ()
    choose_ecs_spec: ChooseEcsSpec = "in_order"
    on_demand_after: int | None = None
    on_pending_timeout: OnPendingTimeout = "fail"
    max_losses_without_progress: int | None = 2

    def __post_init__(self) -> None:
        self._set("max_revocations", _whole_number(0))
        self._set("spot_discount_ladder", _sequence_of(_discount, "discounts, such as (0.6, 0.9)"))
        self._set("spot_price_ladder", _sequence_of(_price, "prices in CNY per minute, such as (0.02, 0.03)"))
        self._set("ecs_specs", _sequence_of(arguments.ecs_spec, "instance types, such as ('ecs.g7.2xlarge',)"))
        self._set("choose_ecs_spec", _one_of(get_args(ChooseEcsSpec)))
        self._set("on_demand_after", _unless_none(_whole_number(1)))
        self._set("on_pending_timeout", _one_of(get_args(OnPendingTimeout)))
        self._set("max_losses_without_progress", _unless_none(_whole_number(1)))
        self._refuse_what_lacks_another()

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

    @property
    def ladder(self) -> tuple[Bid, ...]:
        """The bids of the ladder that is given; empty without one."""
        discounts = tuple(Bid("discount", _plain(step)) for step in self.spot_discount_ladder)
        return discounts or tuple(Bid("price", _plain(step)) for step in self.spot_price_ladder)

    @property
    def may_go_on_demand(self) -> bool:
        """Whether any of its steps can be a job at list price."""
        return self.on_demand_after is not None or self.on_pending_timeout == "on_demand"

    def _set(self, name: str, check: Callable[[str, Any], Any]) -> None:
        object.__setattr__(self, name, check(f"{_PREFIX}{name}", getattr(self, name)))

    def _refuse_what_lacks_another(self) -> None:
        if self.spot_discount_ladder and self.spot_price_ladder:
            raise InvalidJobRequest(
                f"{_PREFIX}spot_price_ladder",
                self.spot_price_ladder,
                "spot_discount_ladder is given at the same time; a job bids a discount or a price, never both.",
            )
        if self.choose_ecs_spec == "by_market" and not self.ecs_specs:
            raise InvalidJobRequest(f"{_PREFIX}choose_ecs_spec", "by_market", "it needs ecs_specs to choose from.")
        if self.on_pending_timeout == "raise_bid" and not self.ladder:
            raise InvalidJobRequest(
                f"{_PREFIX}on_pending_timeout", "raise_bid", "it needs a spot_discount_ladder or a spot_price_ladder."
            )
        if self.on_pending_timeout == "next_ecs_spec" and not self.ecs_specs:
            raise InvalidJobRequest(f"{_PREFIX}on_pending_timeout", "next_ecs_spec", "it needs ecs_specs.")


def _whole_number(least: int) -> Callable[[str, Any], int]:
    def check(argument: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST_REVOCATIONS:
            raise InvalidJobRequest(argument, value, f"expected a whole number from {least} to {_MOST_REVOCATIONS}.")
        return value

    return check


def _unless_none(check: Callable[[str, Any], int]) -> Callable[[str, Any], int | None]:
    return lambda argument, value: None if value is None else check(argument, value)


def _one_of(allowed: tuple[str, ...]) -> Callable[[str, Any], str]:
    def check(argument: str, value: Any) -> str:
        if value not in allowed:
            raise InvalidJobRequest(argument, value, f"expected one of {', '.join(map(repr, allowed))}.")
        return str(value)

    return check


def _sequence_of(check: Callable[[str, Any], Any], what: str) -> Callable[[str, Any], tuple[Any, ...]]:
    def check_all(argument: str, value: Any) -> tuple[Any, ...]:
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            raise InvalidJobRequest(argument, value, f"expected a sequence of {what}.")
        return tuple(check(f"{argument}[{index}]", step) for index, step in enumerate(value))

    return check_all


def _discount(argument: str, value: object) -> Decimal:
    amount = discount_bid(argument, value, "warn")[0].amount  # whether the grid binds is known at submission
    if amount > HIGHEST_DISCOUNT_BID:
        raise InvalidJobRequest(argument, value, f"a ladder ends at {HIGHEST_DISCOUNT_BID} of list price at most.")
    return amount


def _price(argument: str, value: object) -> Decimal:
    return price_bid(argument, value).amount


def _plain(amount: Decimal) -> str:
    return format(amount.normalize(), "f")


def _known() -> str:
    *most, last = [field.name for field in fields(SpotRecovery)]
    return f"{', '.join(most)} and {last}"
