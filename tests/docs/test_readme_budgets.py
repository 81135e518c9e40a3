"""The README's numbers about jobs and money, worked out again by the pure rules that tasks follow."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from airflow_provider_pai_spot.cli.plan.contents import Arithmetic
from airflow_provider_pai_spot.cli.plan.dags import WatchingSensor
from airflow_provider_pai_spot.dlc.terms import AS_REQUESTED
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.recovery import SpotRecovery
from airflow_provider_pai_spot.recovery.policy import History, Resubmit, bid_after, next_step
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

Ends = Callable[[int], str]
COLUMNS = ("`retries`", "`max_revocations`", "jobs at most")


def come_to(retries: int, recovery: SpotRecovery, ends: Ends) -> tuple[int, int]:
    """Return how many jobs and tries a task instance comes to whose n-th job ends as `ends(n)` says."""
    jobs = 0
    for tries in range(1, retries + 2):
        losses = 0
        while True:
            end = ends(jobs)
            jobs += 1
            if end == "succeeded":
                return jobs, tries
            if end == "failed":
                break
            losses += 1
            history = History(losses=losses, losses_in_all=losses)
            if not isinstance(next_step(recovery, history, AS_REQUESTED), Resubmit):
                break
    return jobs, tries


def shown(cell: str) -> tuple[int, int]:
    """Read `18 (3)`."""
    jobs, tries = re.fullmatch(r"(\d+) \((\d+)\)", cell).groups()  # type: ignore[union-attr]
    return int(jobs), int(tries)


def test_each_row_of_the_budget_table_is_what_the_rules_come_to(readme: Any) -> None:
    rows = readme.table(*COLUMNS).rows
    assert len(rows) >= 3
    for retries, revocations, most, lost, failed in rows:
        recovery = SpotRecovery(max_revocations=int(revocations))
        assert shown(lost) == come_to(int(retries), recovery, lambda _job: "lost")
        assert shown(failed) == come_to(int(retries), recovery, lambda _job: "failed")
        assert int(most) == (int(retries) + 1) * (int(revocations) + 1)


def test_no_mixture_of_ends_comes_to_more(readme: Any) -> None:
    for retries, revocations, most, *_ in readme.table(*COLUMNS).rows:
        recovery = SpotRecovery(max_revocations=int(revocations))
        if int(most) <= 6:
            mixtures = itertools.product(("lost", "failed", "succeeded"), repeat=int(most))
            assert max(come_to(int(retries), recovery, _in_turn(ends))[0] for ends in mixtures) == int(most)


def test_pai_spot_plan_prints_the_same_numbers(readme: Any) -> None:
    for retries, revocations, most, *_ in readme.table(*COLUMNS).rows:
        task = a_task(retries=int(retries), recovery={"max_revocations": int(revocations)})
        assert Arithmetic.of(task, [], None).jobs_at_most == int(most)


@pytest.mark.parametrize("retries", [1, 5])
def test_the_two_task_form_comes_to_one_job_and_one_for_each_retry_of_the_sensor(readme: Any, retries: int) -> None:
    assert "one job, and one more for each of the sensor's `retries`" in readme.text.replace("\n", " ")
    task = a_task(wait_for_completion=False, retries=3)
    sensor = SpotJobSensor(task_id="wait", job_id="dlc1", submitted_by=task, retries=retries)
    assert Arithmetic.of(task, [WatchingSensor.of(sensor)], None).jobs_at_most == 1 + retries


def test_the_ladder_shown_bids_what_its_comment_says(readme: Any) -> None:
    [block] = [block for block in readme.blocks_of("python") if "spot_discount_ladder=" in block.text]
    [comment] = re.findall(r"# (.*)", block.text)
    names: dict[str, Any] = {}
    exec(block.text, names)  # noqa: S102 - the page's own code
    task = a_task(recovery=names["recovery"])
    bids = [task.spot_discount_limit, *(bid_after(task.recovery, History(losses=count)).amount for count in (1, 2, 3))]  # type: ignore[union-attr]
    assert re.findall(r"[\d.]*\d", comment) == [str(bid) for bid in bids[:3]]
    assert bids[3] == bids[2]


def a_task(**arguments: Any) -> SubmitSpotJobOperator:
    given = {"image": "i", "user_command": "c", "ecs_spec": "ecs.g7.xlarge", "spot_discount_limit": 0.4}
    return SubmitSpotJobOperator(task_id="train", **(given | arguments))


def _in_turn(ends: Sequence[str]) -> Ends:
    return lambda job: ends[job]
