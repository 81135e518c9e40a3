"""Log and event lines of a time window, as GetPodLogs and the event operations return them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from airflow_provider_pai_spot.emulator.listing import moment
from airflow_provider_pai_spot.emulator.plans import JobPlan
from airflow_provider_pai_spot.emulator.record import Pod
from airflow_provider_pai_spot.emulator.wire import dated

_WEEK = 7 * 86_400
Line = tuple[float, str]


def planned_lines(pod: Pod, plan: JobPlan, now: float) -> list[Line]:
    """Return what a pod that follows a plan has logged by now: its lines, spread evenly over its run."""
    lines = plan.aimaster_logs if pod.is_aimaster else plan.logs
    if pod.started_at is None or not lines:
        return []
    until = now if pod.finished_at is None else pod.finished_at
    pace = (plan.run_seconds if plan.run_seconds is not None else float(len(lines))) / len(lines)
    moments = [pod.started_at + pace * index for index in range(len(lines))]
    return [(at, text) for at, text in zip(moments, lines, strict=True) if at <= until]


def within(lines: Iterable[Line], query: Mapping[str, str], now: float, *, end_belongs: bool = True) -> list[Line]:
    """Return the lines from StartTime (default: a week ago) to EndTime (default: now)."""
    start, end = moment(query, "StartTime"), moment(query, "EndTime")
    first = int(now - _WEEK if start is None else start)
    last = now if end is None else end - (not end_belongs)
    # Lines show whole seconds, so a window does too.
    return [line for line in lines if first <= int(line[0]) <= last]


def rendered(lines: Sequence[Line], offset_hours: float, gap: str) -> list[str]:
    """Return the lines with their local time in front."""
    return [dated(at, text, offset_hours, gap) for at, text in lines]
