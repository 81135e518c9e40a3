import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.cli.demo.story import (
    Attempt,
    Progress,
    attempt_from,
    is_worth_losing,
    progress_in,
    resumed_exactly,
    steps_lost,
)


def at(step: int, checkpoint: int, of: int = 120) -> Progress:
    return Progress(step=step, of=of, checkpoint=checkpoint, accuracy=0.5)


def attempt(*progress: Progress, status: str = "Running") -> Attempt:
    return Attempt(job_id="dlc1", status=status, bid=0.4, instance_type="ecs.g7.xlarge", progress=progress)


JOB: dict[str, Any] = {
    "JobId": "dlc1",
    "Status": "Failed",
    "JobSpecs": [{"EcsSpec": "ecs.g7.xlarge", "SpotSpec": {"SpotDiscountLimit": "0.4"}}],
    "StatusHistory": [{"Status": "Creating"}, {"Status": "Running"}, {"Status": "Failed"}],
    "Pods": [{"PodId": "dlc1-master-0", "SubStatus": "Evicted"}],
}


def test_an_attempt_is_read_from_what_getjob_and_the_pods_say() -> None:
    line = '2026-11-30 10:13:26  PAI_SPOT_PROGRESS {"step": 7, "of": 9, "checkpoint": 5, "accuracy": 0.25}'
    assert attempt_from(JOB, [line]) == Attempt(
        job_id="dlc1",
        status="Failed",
        bid=0.4,
        instance_type="ecs.g7.xlarge",
        evicted=True,
        statuses=("Creating", "Running", "Failed"),
        progress=(Progress(step=7, of=9, checkpoint=5, accuracy=0.25),),
    )


def test_a_job_that_has_just_been_created_has_no_pods_yet() -> None:
    assert attempt_from({**JOB, "Pods": [], "StatusHistory": None}, []).last is None


def test_other_lines_of_a_log_are_no_progress() -> None:
    assert progress_in(["Loading data", "PAI_SPOT_PROGRESS soon", "say PAI_SPOT_PROGRESSES {}"]) == ()


@pytest.mark.parametrize(
    ("now", "worth"),
    [
        pytest.param(attempt(), False, id="nothing printed yet"),
        pytest.param(attempt(at(59, 50)), False, id="less than half done"),
        pytest.param(attempt(at(60, 60)), False, id="half done, all of it safe"),
        pytest.param(attempt(at(63, 60)), True, id="half done, three steps not safe"),
        pytest.param(attempt(at(63, 60), status="Succeeded"), False, id="over already"),
    ],
)
def test_a_loss_is_worth_showing_half_way_and_between_checkpoints(now: Attempt, worth: bool) -> None:
    assert is_worth_losing(now) is worth


@pytest.mark.parametrize(
    ("attempts", "resumed"),
    [
        pytest.param([attempt(at(0, 0), at(120, 120))], False, id="one attempt resumes nothing"),
        pytest.param([attempt(at(0, 0), at(64, 60)), attempt(at(60, 60))], True, id="at the last checkpoint"),
        pytest.param([attempt(at(0, 0), at(64, 60)), attempt(at(0, 0))], False, id="from the beginning"),
        pytest.param([attempt(at(0, 0), at(64, 60)), attempt(at(50, 50))], False, id="at an older checkpoint"),
        pytest.param([attempt(at(0, 0), at(4, 0)), attempt(at(0, 0))], False, id="there was no checkpoint"),
        pytest.param([attempt(at(0, 0), at(64, 60)), attempt()], False, id="the second never printed a step"),
        pytest.param([attempt(), attempt(at(0, 0))], False, id="the first never printed a step"),
    ],
)
def test_resumed_means_every_attempt_began_at_the_last_checkpoint(attempts: list[Attempt], resumed: bool) -> None:
    assert resumed_exactly(attempts) is resumed


@given(losses=st.lists(st.tuples(st.integers(1, 50), st.integers(0, 9)), min_size=1, max_size=5))
def test_steps_lost_are_those_after_each_last_checkpoint(losses: list[tuple[int, int]]) -> None:
    attempts, safe = [], 0
    for progress, unsafe in losses:
        began, safe = safe, safe + progress
        attempts.append(attempt(at(began, began), at(safe + unsafe, safe)))
    attempts.append(attempt(at(safe, safe)))
    assert resumed_exactly(attempts)
    assert steps_lost(attempts) == sum(unsafe for _, unsafe in losses)


@given(value=st.dictionaries(st.sampled_from(["loss", "note"]), st.integers()))
def test_a_progress_line_may_say_more(value: dict[str, int]) -> None:
    said = value | {"step": 1, "of": 2, "checkpoint": 0, "accuracy": 0.5}
    assert progress_in([f"PAI_SPOT_PROGRESS {json.dumps(said)}"]) == (at(1, 0, of=2),)
