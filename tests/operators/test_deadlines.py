"""The deadlines of a try count from its start, whenever within it they are asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.moment import TryMoment
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.operators.wanted import limits_of, max_running_minutes

START = datetime(2026, 11, 30, 22, 0, tzinfo=UTC)
DAY, WEEK = timedelta(days=1), timedelta(days=7)


def a_task(**arguments: Any) -> SubmitSpotJobOperator:
    return SubmitSpotJobOperator(
        task_id="train", image="i", user_command="c", ecs_spec="ecs.g7.xlarge", spot_discount_limit=0.6, **arguments
    )


@pytest.mark.parametrize(
    ("arguments", "total", "execution"),
    [
        ({}, START + WEEK, None),
        ({"total_timeout": DAY}, START + DAY, None),
        ({"execution_timeout": DAY}, START + WEEK, START + DAY),
    ],
)
def test_deadlines_count_from_the_start_of_the_try(
    arguments: dict[str, Any], total: datetime, execution: datetime | None
) -> None:
    operator = a_task(**arguments)
    moment = TryMoment(try_number=2, max_tries=2, started_at=START, run_started_at=START - WEEK)
    limits = limits_of(operator, moment)
    assert (limits.total_deadline, limits.execution_deadline) == (total, execution)


@pytest.mark.parametrize(
    ("run_timeout", "execution_timeout", "waits", "minutes"),
    [
        (None, None, True, None),
        (5400, None, True, 90),
        (61, None, True, 2),
        (1, None, True, 1),
        (5400, DAY, True, 90),
        (None, DAY, True, 1440),
        (None, DAY, False, None),
        (5400, DAY, False, 90),
    ],
)
def test_dlc_is_told_a_limit_of_the_training_never_that_of_a_task_that_only_submits(
    run_timeout: float | None, execution_timeout: timedelta | None, waits: bool, minutes: int | None
) -> None:
    operator = a_task(run_timeout=run_timeout, execution_timeout=execution_timeout, wait_for_completion=waits)
    assert max_running_minutes(operator) == minutes
