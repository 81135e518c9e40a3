"""A plan as text: sections of aligned lines, the body as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from airflow_provider_pai_spot.cli.plan.contents import Arithmetic, BidShown, Limits, Plan
from airflow_provider_pai_spot.cli.plan.unknown import KNOWN_AT_RUN_TIME
from airflow_provider_pai_spot.dlc.duration import duration
from airflow_provider_pai_spot.dlc.job_request import MAX_REQUEST_BYTES

Line = tuple[str, str]


def as_text(plan: Plan) -> str:
    """Return the whole plan for people."""
    body = json.dumps(plan.request, indent=2, ensure_ascii=False)
    sections = [
        _section("Task", _task(plan)),
        _section("Connection", _connection(plan)),
        f"CreateJob, attempt 0 ({_size(plan)}; values of variables and credentials are masked)\n{body}",
        _section("Known at run time", plan.known_at_run_time.items()),
        _section("Bids", _bids(plan.bids)),
        _section("Limits", _limits(plan.limits)),
        _section("Retries", _retries(plan.arithmetic)),
        _section("Warnings", (("!", warning) for warning in plan.warnings)),
        "Nothing was submitted, and DLC was not asked anything.",
    ]
    return "\n\n".join(section for section in sections if section)


def _section(title: str, lines: Iterable[Line]) -> str:
    """Return a title with its lines below it, '' if it has none."""
    shown = list(lines)
    width = max((len(name) for name, _ in shown), default=0)
    return "\n".join([title, *(f"  {name:{width}}  {text}" for name, text in shown)]) if shown else ""


def _size(plan: Plan) -> str:
    least = "at least " if plan.known_at_run_time or plan.connection.problem else ""
    return f"{least}{plan.request_bytes:,} of {MAX_REQUEST_BYTES:,} bytes"


def _task(plan: Plan) -> Iterator[Line]:
    yield "dag", plan.dag_id
    yield "task", plan.task_id
    if plan.map_index >= 0:
        count = "how many is known at run time" if plan.map_count is None else f"of {plan.map_count}, from 0"
        yield "map index", f"{plan.map_index} ({count})"
    yield "run", f"{plan.run_id} (planned for; tags and the checkpoint folder depend on it)"


def _connection(plan: Plan) -> Iterator[Line]:
    shown = plan.connection
    unknown = KNOWN_AT_RUN_TIME if shown.problem is None else "not known"
    yield "id", shown.conn_id
    if shown.problem:
        yield "problem", shown.problem
    yield "endpoint", shown.endpoint or unknown
    yield "region", shown.region_id or unknown
    yield "workspace", shown.workspace_id
    yield "namespace", shown.namespace


def _bids(bids: tuple[BidShown, ...] | None) -> Iterator[Line]:
    if bids is None:
        yield "all", KNOWN_AT_RUN_TIME
        return
    for bid in bids:
        if bid.kind == "discount":
            most = f"at most {bid.value} of list price (a fraction: 0.4 is 40 %)"
        else:
            most = f"at most {bid.value} CNY per minute, which is {bid.per_hour} CNY per hour"
        yield bid.role, f"{most}; charged is the market price"


def _limits(limits: Limits) -> Iterator[Line]:
    yield "pending_timeout", _limit(limits.pending_timeout, "each job, from its creation until it runs")
    yield "run_timeout", _limit(limits.run_timeout, "each job, in Running")
    yield "total_timeout", _limit(limits.total_timeout, "each try, all its jobs together")
    yield "execution_timeout", _limit(limits.execution_timeout, "each try, Airflow's own")
    minutes = limits.job_max_running_time_minutes
    yield (
        "JobMaxRunningTimeMinutes",
        "not sent: DLC itself sets no limit" if minutes is None else f"{minutes}, kept by DLC itself",
    )


def _limit(seconds: float | None, what: str) -> str:
    return "none" if seconds is None else f"{duration(seconds)} for {what}"


def _retries(sums: Arithmetic) -> Iterator[Line]:
    if not sums.waits:
        yield from _handed_over(sums)
        return
    tries, jobs = sums.retries + 1, sums.max_revocations + 1
    product = f"(retries {sums.retries} + 1) x (max_revocations {sums.max_revocations} + 1)"
    yield "jobs", f"at most {product} = {sums.jobs_at_most}"
    yield "failures", f"use retries only: {_times(tries, 'try', 'tries')} in all"
    yield "revocations", f"stay within their try, {_times(jobs, 'job', 'jobs')} at most; the next one uses a retry"
    yield "bids", f"{_in_turn(sums.bids)}; each try starts over"
    yield from _steps(sums)
    if sums.on_pending_timeout != "fail":
        yield "pending_timeout", f"is answered by {sums.on_pending_timeout}, counted as a revocation"
    if sums.max_losses_without_progress is not None:
        losses = _times(sums.max_losses_without_progress, "loss", "losses")
        yield "no progress", f"{losses} without any, if it can be seen, end the task without a retry"


def _steps(sums: Arithmetic) -> Iterator[Line]:
    """What a loss changes beside the bid, in both forms."""
    if sums.ecs_specs:
        how = "the one in stock at the lowest share of its list price" if sums.by_market else "and around again"
        yield "types", f"{', then '.join(sums.ecs_specs)}; {how}"
    if sums.on_demand_after is not None:
        yield "on demand", f"from {_times(sums.on_demand_after, 'loss', 'losses')} on: at list price, until a clear"
    if sums.runs_at_most > sums.jobs_at_most:
        yield "runs", f"at most {sums.runs_at_most}: DLC itself (AIMaster) may restart each job"


def _handed_over(sums: Arithmetic) -> Iterator[Line]:
    """Two-task form: this task never sees an end, a sensor does."""
    yield "jobs", f"at most {sums.jobs_at_most}: this task submits one and does not wait for it"
    for sensor, retries in sums.sensor_retries.items():
        yield (
            "sensor",
            f"{sensor!r} submits one more after each loss, with {_times(retries, 'retry', 'retries')} at most",
        )
    if sums.sensor_retries:
        yield "bids", f"{_in_turn(sums.bids)}; a sensor's tries go on where the last one was"
    else:
        yield "sensor", "none in this DAG submits another one after a loss (SpotJobSensor with submitted_by)"
    yield from _steps(sums)
    yield "limits", "pending, run and total_timeout do not apply: nobody waits here"


def _in_turn(bids: tuple[str, ...]) -> str:
    return f"{', then '.join(bids)}{' (repeats)' if len(bids) > 1 else ''}"


def _times(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
