"""
From operator arguments to a checked CreateJob body, as a plain dict in DLC's own keys.

What can be known wrong before money is spent is refused here, naming argument, value and what is allowed. The
order: each argument by itself, then the body they make with `job_overrides` merged last, then everything that
must fit together (roles, bids, network, size), on the body as it would be sent.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from airflow_provider_pai_spot.dlc.arguments import coerced
from airflow_provider_pai_spot.dlc.bids import Bid, BidGrid
from airflow_provider_pai_spot.dlc.body import (
    ATTEMPT_BYTES,
    CHECKPOINT_MOUNT,
    MAX_REQUEST_BYTES,
    as_json,
    check_network,
    check_size,
    composed,
    fingerprint,
    mount_checkpoints,
    warnings_about,
)
from airflow_provider_pai_spot.dlc.naming import default_display_name
from airflow_provider_pai_spot.dlc.refusal import InvalidJobRequest
from airflow_provider_pai_spot.dlc.roles import ResourceType, checked_roles, refuse_price_on_lingjun
from airflow_provider_pai_spot.dlc.stand_ins import contains_template, with_stand_ins
from airflow_provider_pai_spot.dlc.terms import AS_REQUESTED, JobTerms, ecs_specs_of_bidders

__all__ = [
    "CHECKPOINT_MOUNT",
    "MAX_REQUEST_BYTES",
    "Bid",
    "InvalidJobRequest",
    "JobRequest",
    "build_job_request",
    "check_static_arguments",
    "contains_template",
    "default_display_name",
]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JobRequest:
    """
    A checked request, as the task asks for it: before an attempt adds its tags and variables.

    :param body: the CreateJob body in DLC's keys.
    :param resource_type: `ECS` or `Lingjun`.
    :param bids_by_role: the bid of each role that bids, by role name.
    :param checkpoint_mount: where the checkpoint folder is mounted, None without `checkpoint_uri`.
    :param warnings: what is allowed but worth a line in the log.
    """

    body: dict[str, Any]
    resource_type: ResourceType
    bids_by_role: Mapping[str, Bid]
    checkpoint_mount: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def bid(self) -> Bid:
        """The bid of the first role that bids."""
        return next(iter(self.bids_by_role.values()))

    @property
    def ecs_spec(self) -> str:
        """The instance type of the first role that bids; '' where it has none (`ResourceConfig`)."""
        return next(iter(ecs_specs_of_bidders(self.body["JobSpecs"])), "")

    @property
    def workspace_id(self) -> str | None:
        """The workspace the job is created in; None for that of the connection, or the caller's default."""
        return str(self.body["WorkspaceId"]) if self.body.get("WorkspaceId") else None

    @property
    def checkpoint_uri(self) -> str | None:
        """What is mounted for checkpoints, as DLC is told it; None without."""
        sources = self.body.get("DataSources") or []
        return next((one["Uri"] for one in sources if one.get("MountPath") == self.checkpoint_mount), None)

    @property
    def request_hash(self) -> str:
        """A hash of the body that does not depend on the order of keys."""
        return fingerprint(self.body, 16)

    @property
    def key_hashes(self) -> dict[str, str]:
        """A short hash of each top-level key's value, to name the keys in which two requests differ."""
        return {key: fingerprint(value, 8) for key, value in sorted(self.body.items())}

    def with_attempt(
        self, tags: Mapping[str, str], envs: Mapping[str, str], terms: JobTerms = AS_REQUESTED
    ) -> dict[str, Any]:
        """
        Return a copy of the body for one attempt, which shares nothing with this request.

        :param tags: merged into Settings.Tags; on a clash these win.
        :param envs: merged into Envs; on a clash these win.
        :param terms: what this attempt is submitted with instead.
        :raises InvalidJobRequest: the request grew over DLC's limit, or the bid cannot be made here.
        """
        body = copy.deepcopy(self.body)
        settings = body.setdefault("Settings", {})
        settings["Tags"] = {**(settings.get("Tags") or {}), **tags}
        body["Envs"] = {**(body.get("Envs") or {}), **envs}
        if terms.bid is not None:
            refuse_price_on_lingjun("bid", terms.bid, self.resource_type)
        terms.change(body["JobSpecs"])
        check_size(body)
        return body

    def __repr__(self) -> str:
        return f"JobRequest({', '.join(self.body)}; hash {self.request_hash})"


def build_job_request(arguments: Mapping[str, Any], *, bid_grid: BidGrid = "refuse") -> JobRequest:
    """
    Return the checked request for rendered operator arguments; None means not given.

    :param bid_grid: what happens to a discount off the grid 0.1 … 0.9: `refuse`, or `warn`.
    :raises InvalidJobRequest: the first thing found that cannot work.
    """
    given = coerced(arguments)
    body = composed(given)
    roles = checked_roles(
        _source_of_roles(given),
        body["JobSpecs"],
        resource_type=cast("ResourceType | None", given.get("resource_type")),
        bid_grid=bid_grid,
    )
    body["JobSpecs"] = roles.specs
    check_network(body, roles.resource_type)
    if "checkpoint_uri" in given:
        mount_checkpoints(body, given["checkpoint_uri"])
    body = as_json(body)
    check_size(body, kept_free=ATTEMPT_BYTES)
    return JobRequest(
        body=body,
        resource_type=roles.resource_type,
        bids_by_role=roles.bids,
        checkpoint_mount=CHECKPOINT_MOUNT if "checkpoint_uri" in given else None,
        warnings=(*roles.warnings, *warnings_about(body, roles.resource_type)),
    )


_DECIDE_ROLES_AND_BIDS = frozenset(
    {"job_specs", "ecs_spec", "spot_discount_limit", "spot_price_limit", "resource_type", "settings", "job_type"}
)


def check_static_arguments(
    arguments: Mapping[str, Any],
    templated: Callable[[str], bool] | None = None,
    bid_grid: BidGrid = "refuse",
) -> JobRequest | None:
    """
    Refuse what can be known wrong while a DAG file is parsed; return the request if its roles and bids are known.

    Arguments that are templated, and checks that need their values, are left to `build_job_request`; so are a
    missing `display_name` and `workspace_id`, which the operator and the connection can supply.

    :param templated: whether the argument of this name is known only at run time; by default its value tells.
    :raises InvalidJobRequest: the first thing found that cannot work.
    """
    at_run_time = {
        name
        for name, value in arguments.items()
        if (templated(name) if templated is not None else contains_template(value))
    }
    given = coerced({name: value for name, value in arguments.items() if name not in at_run_time})
    if "job_overrides" in at_run_time:  # it may still supply or replace anything
        return None
    request = build_job_request(with_stand_ins(given, at_run_time), bid_grid=bid_grid)
    return None if at_run_time & _DECIDE_ROLES_AND_BIDS else request


def _source_of_roles(given: Mapping[str, Any]) -> str | None:
    if "JobSpecs" in given.get("job_overrides", {}):
        return "job_overrides['JobSpecs']"
    return "job_specs" if "job_specs" in given else None
