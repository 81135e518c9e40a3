"""What must fit together between a policy and the request it is to recover."""

from __future__ import annotations

from airflow_provider_pai_spot.dlc.aimaster import restarts_allowed
from airflow_provider_pai_spot.dlc.bids import BidGrid, discount_bid
from airflow_provider_pai_spot.dlc.job_request import InvalidJobRequest, JobRequest
from airflow_provider_pai_spot.dlc.roles import inferred_resource_type
from airflow_provider_pai_spot.dlc.terms import ecs_specs_of_bidders, uses_elastic_spot_specs
from airflow_provider_pai_spot.recovery.spot_recovery import SpotRecovery

_LADDERS = {"discount": "spot_discount_ladder", "price": "spot_price_ladder"}
_LIMITS = {"discount": "spot_discount_limit", "price": "spot_price_limit"}


def check_against(recovery: SpotRecovery, request: JobRequest, bid_grid: BidGrid = "refuse") -> tuple[str, ...]:
    """
    Check a policy against a request; return warnings.

    :raises InvalidJobRequest: a step of the policy cannot follow this request.
    """
    _check_ladder_kind(recovery, request)
    _check_one_bid(recovery, request)
    _check_roles(recovery, request)
    off_grid = (
        discount_bid(f"recovery.{_LADDERS['discount']}[{index}]", str(step), bid_grid)[1]
        for index, step in enumerate(recovery.spot_discount_ladder)
    )
    return (*filter(None, off_grid), *_restart_layers(recovery, request))


def _check_ladder_kind(recovery: SpotRecovery, request: JobRequest) -> None:
    for step in recovery.ladder[:1]:
        for bid in request.bids_by_role.values():
            if bid.kind != step.kind:
                raise InvalidJobRequest(
                    f"recovery.{_LADDERS[step.kind]}",
                    getattr(recovery, _LADDERS[step.kind]),
                    f"the job bids a {bid.kind} ({bid}), which a {step.kind} cannot follow; bid with "
                    f"{_LIMITS[step.kind]}, or leave the ladder out.",
                )


def _check_one_bid(recovery: SpotRecovery, request: JobRequest) -> None:
    """A step of the ladder replaces the bid of every role: what raises one may lower another."""
    argument = _needs_one_bid(recovery)
    if argument and len(set(request.bids_by_role.values())) > 1:
        bids = " and ".join(f"{role} {bid}" for role, bid in request.bids_by_role.items())
        raise InvalidJobRequest(
            f"recovery.{argument}",
            getattr(recovery, argument),
            f"it takes one bid for all roles, and the roles bid {bids}; bid the same in every SpotSpec (a role without "
            f"one runs on demand), or leave {argument} out.",
        )


def _needs_one_bid(recovery: SpotRecovery) -> str:
    """Return the argument for which one bid stands for all roles, '' if none does (`raise_bid` needs a ladder)."""
    for step in recovery.ladder[:1]:
        return _LADDERS[step.kind]
    return "choose_ecs_spec" if recovery.choose_ecs_spec == "by_market" else ""


def _check_roles(recovery: SpotRecovery, request: JobRequest) -> None:
    roles = request.body["JobSpecs"]
    if (step := _changing_step(recovery)) and uses_elastic_spot_specs(roles):
        raise InvalidJobRequest(
            f"recovery.{step}",
            getattr(recovery, step),
            "a role has ElasticSpotSpecs: DLC itself chooses among these, and nothing else can follow.",
        )
    if not recovery.ecs_specs:
        return
    argument = "recovery.ecs_specs"
    own = ecs_specs_of_bidders(roles)
    if len(own) != 1 or not own[0]:
        raise InvalidJobRequest(
            argument,
            recovery.ecs_specs,
            "another type replaces that of every role that bids, so these must have one EcsSpec in common; they have "
            f"{', '.join(map(repr, own))}.",
        )
    kind = inferred_resource_type([{"EcsSpec": own[0]}])
    for index, ecs_spec in enumerate(recovery.ecs_specs):
        if inferred_resource_type([{"EcsSpec": ecs_spec}]) != kind:
            raise InvalidJobRequest(
                f"{argument}[{index}]",
                ecs_spec,
                f"{own[0]!r} is of another kind (`ml.…` is taken for Lingjun), with another network and other bids.",
            )


def _changing_step(recovery: SpotRecovery) -> str:
    """Return the argument that lets a job run on something else, '' if none does."""
    if recovery.ecs_specs:
        return "ecs_specs"
    if recovery.on_demand_after is not None:
        return "on_demand_after"
    return "on_pending_timeout" if recovery.may_go_on_demand else ""


def _restart_layers(recovery: SpotRecovery, request: JobRequest) -> tuple[str, ...]:
    restarts, resubmissions = restarts_allowed(request.body), recovery.max_revocations
    if not (restarts and resubmissions):
        return ()
    runs = (restarts + 1) * (resubmissions + 1)
    warning = (
        f"two layers restart this work: DLC itself (AIMaster), up to {restarts} times a job, and "
        f"recovery.max_revocations, up to {resubmissions} times a try: up to {runs} runs in one try. "
        "Leave one of the two at 0."
    )
    return (warning,)
