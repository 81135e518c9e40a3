"""A plan as one value: all that `pai-spot plan` shows, nothing that must not be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, Self

from airflow_provider_pai_spot.cli.plan.connection import Reached
from airflow_provider_pai_spot.cli.plan.dags import WatchingSensor
from airflow_provider_pai_spot.dlc.aimaster import restarts_allowed
from airflow_provider_pai_spot.dlc.bids import Bid
from airflow_provider_pai_spot.dlc.job_request import MAX_REQUEST_BYTES, JobRequest
from airflow_provider_pai_spot.dlc.terms import ecs_specs_of_bidders
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.recovery import SpotRecovery
from airflow_provider_pai_spot.recovery.policy import History, bid_after

_MINUTES_PER_HOUR = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionShown:
    """
    Where the job would go; '' for what is not known.

    :param problem: why the connection could not be used, None if it could.
    """

    conn_id: str
    endpoint: str
    region_id: str
    workspace_id: str
    namespace: str
    problem: str | None

    @classmethod
    def of(cls, reached: Reached, body: Mapping[str, Any], namespace: str) -> Self:
        """Return what is shown of a connection, the workspace as the body has it."""
        return cls(
            conn_id=reached.conn_id,
            endpoint=reached.endpoint,
            region_id=reached.region_id,
            workspace_id=str(body.get("WorkspaceId", "")),
            namespace=namespace,
            problem=reached.problem,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BidShown:
    """
    One role's bid.

    :param kind: `discount` (fraction of list price) or `price` (CNY per minute).
    :param per_hour: a price in CNY per hour, None for a discount.
    """

    role: str
    kind: str
    value: str
    per_hour: str | None

    @classmethod
    def of(cls, role: str, bid: Bid) -> Self:
        """Return what is shown of a bid."""
        hourly = None if bid.kind == "discount" else f"{(Decimal(bid.value) * _MINUTES_PER_HOUR).normalize():f}"
        return cls(role=role, kind=bid.kind, value=bid.value, per_hour=hourly)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long things may take, in seconds (None: no limit); the last in minutes, as DLC is told."""

    pending_timeout: float | None
    run_timeout: float | None
    total_timeout: float | None
    execution_timeout: float | None
    job_max_running_time_minutes: int | None

    @classmethod
    def of(cls, operator: SubmitSpotJobOperator, body: Mapping[str, Any]) -> Self:
        """Return the task's limits."""
        return cls(
            pending_timeout=_seconds(operator.pending_timeout),
            run_timeout=_seconds(operator.run_timeout),
            total_timeout=_seconds(operator.total_timeout),
            execution_timeout=_seconds(operator.execution_timeout),
            job_max_running_time_minutes=body.get("JobMaxRunningTimeMinutes"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """
    How many jobs a task instance can come to, unless a person clears it.

    :param waits: whether the task itself waits; otherwise the sensors submit what follows a loss.
    :param sensor_retries: task id -> retries of each such sensor.
    :param jobs_at_most: all tries together.
    :param runs_at_most: the same, with the restarts that DLC itself may make of each job (AIMaster).
    :param bids: what the jobs of one try bid (with sensors: of all their tries), in order; the last one repeats.
    :param ecs_specs: what they run on, the task's own type first; empty if that never changes.
    :param by_market: whether stock and price choose among these, rather than their order.
    :param on_demand_after: losses in all tries after which jobs run at list price, None for never.
    :param on_pending_timeout: what follows `pending_timeout`.
    :param max_losses_without_progress: losses without progress that end the task, None for no such limit.
    """

    waits: bool
    retries: int
    max_revocations: int
    sensor_retries: Mapping[str, int]
    jobs_at_most: int
    runs_at_most: int
    bids: tuple[str, ...]
    ecs_specs: tuple[str, ...]
    by_market: bool
    on_demand_after: int | None
    on_pending_timeout: str
    max_losses_without_progress: int | None

    @classmethod
    def of(
        cls,
        operator: SubmitSpotJobOperator,
        sensors: Sequence[WatchingSensor],
        bid: Bid | None,
        body: Mapping[str, Any] | None = None,
    ) -> Self:
        """
        Return a task's arithmetic.

        :param bid: the task's own bid, None while it is not known.
        :param body: the CreateJob body of attempt 0, as far as it is known.
        """
        recovery = operator.recovery
        retries = operator.retries or 0
        by_sensor = {sensor.task_id: sensor.retries for sensor in sensors}
        waiting = (retries + 1) * (recovery.max_revocations + 1)
        jobs = waiting if operator.wait_for_completion else 1 + sum(by_sensor.values())
        steps = recovery.max_revocations if operator.wait_for_completion else max(by_sensor.values(), default=0)
        return cls(
            waits=operator.wait_for_completion,
            retries=retries,
            max_revocations=recovery.max_revocations,
            sensor_retries=by_sensor,
            jobs_at_most=jobs,
            runs_at_most=jobs * (restarts_allowed(body or {}) + 1),
            bids=_bids_in_order(recovery, bid, steps),
            ecs_specs=_types_in_order(recovery, body or {}),
            by_market=recovery.choose_ecs_spec == "by_market",
            on_demand_after=recovery.on_demand_after,
            on_pending_timeout=recovery.on_pending_timeout,
            max_losses_without_progress=recovery.max_losses_without_progress,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """
    What a task would do.

    :param request: the CreateJob body of attempt 0, masked.
    :param known_at_run_time: argument (or part of one) -> why it is not known yet.
    """

    dag_id: str
    task_id: str
    run_id: str
    map_index: int
    map_count: int | None
    connection: ConnectionShown
    request: Mapping[str, Any]
    request_bytes: int
    known_at_run_time: Mapping[str, str]
    bids: tuple[BidShown, ...] | None
    limits: Limits
    arithmetic: Arithmetic
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**asdict(self), "request_bytes_limit": MAX_REQUEST_BYTES}


def bids_shown(request: JobRequest) -> tuple[BidShown, ...]:
    """Return the bids of all roles that bid."""
    return tuple(BidShown.of(role, bid) for role, bid in request.bids_by_role.items())


def warnings_about(request: JobRequest, recovery: SpotRecovery, *, checkpoints: bool, waits: bool) -> tuple[str, ...]:
    """
    Return what is allowed and still worth a thought before money is spent.

    :param waits: whether the task itself answers losses; sensors bid the ladder whatever `max_revocations` is.
    """
    warnings = list(request.warnings)
    if not checkpoints:
        warnings.append(
            "no checkpoint_uri: unless the command keeps checkpoints of its own, every loss starts from zero."
        )
    if waits and recovery.ladder and recovery.max_revocations == 0:
        ladder = "spot_discount_ladder" if recovery.spot_discount_ladder else "spot_price_ladder"
        warnings.append(f"recovery.{ladder} is never used: recovery.max_revocations is 0.")
    if recovery.may_go_on_demand:
        warnings.append("recovery may go on demand: such a job is billed at list price, whatever the bid.")
    return tuple(warnings)


def _bids_in_order(recovery: SpotRecovery, own: Bid | None, most_losses: int) -> tuple[str, ...]:
    steps = min(len(recovery.ladder), most_losses)
    after = [bid_after(recovery, History(losses=count + 1), own) for count in range(steps)]
    return (str(own) if own else "the task's own bid", *(str(bid) for bid in after if bid))


def _types_in_order(recovery: SpotRecovery, body: Mapping[str, Any]) -> tuple[str, ...]:
    if not recovery.ecs_specs:
        return ()
    roles = body.get("JobSpecs")
    own = ecs_specs_of_bidders(roles)[:1] if isinstance(roles, list) else []
    return tuple(dict.fromkeys([*(own or ["the task's own type"]), *recovery.ecs_specs]))


def _seconds(limit: timedelta | None) -> float | None:
    return None if limit is None else limit.total_seconds()
