from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_pai_spot.cli.demo.report import Result
from airflow_provider_pai_spot.cli.demo.story import Attempt, Progress


def attempt(job_id: str, first: int, last: int, checkpoint: int) -> Attempt:
    steps = (
        Progress(step=first, of=120, checkpoint=first, accuracy=0.1),
        Progress(step=last, of=120, checkpoint=checkpoint, accuracy=0.9),
    )
    return Attempt(
        job_id=job_id,
        status="Failed",
        bid=0.4,
        instance_type="ecs.g7.xlarge",
        statuses=("Running", "Failed"),
        progress=steps,
    )


LOST, REST = attempt("dlc1", 0, 64, 60), attempt("dlc2", 60, 120, 120)
GOOD = Result(
    seconds={"install": None, "start": 30.0, "run": 70.0},
    dag_run_state="success",
    tries={"train": 1},
    attempts=(LOST, REST),
    recorded=({"job_id": "dlc1", "verdict": "revoked", "seconds_running": 29.0},),
    jobs_left_running=(),
    revoked=True,
)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param({"dag_run_state": "failed"}, "'failed'", id="red"),
        pytest.param({"jobs_left_running": ("dlc9",)}, "dlc9", id="a job left"),
        pytest.param({"attempts": (REST,)}, "no second attempt", id="no loss although one was wanted"),
        pytest.param({"attempts": (LOST, attempt("dlc2", 0, 9, 0))}, "last checkpoint", id="began again"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, Any], problem: str) -> None:
    [found] = replace(GOOD, **change).problems()
    assert problem in found


@pytest.mark.parametrize(
    "result",
    [
        pytest.param(GOOD, id="lost and resumed"),
        pytest.param(replace(GOOD, attempts=(REST,), revoked=False), id="undisturbed"),
    ],
)
def test_a_run_as_it_should_be_has_no_problems(result: Result) -> None:
    assert result.problems() == []


def test_machines_read_what_each_attempt_did() -> None:
    said = GOOD.to_dict()
    assert said["attempts"][0] == {
        "job_id": "dlc1",
        "status_history": ["Running", "Failed"],
        "verdict": "revoked",
        "bid": 0.4,
        "seconds_running": 29.0,
        "first_step": 0,
        "last_step": 64,
        "last_checkpoint_step": 60,
        "accuracy": 0.9,
    }
    assert {key: said[key] for key in ("steps_lost", "jobs_created", "jobs_left_running", "resumed")} == {
        "steps_lost": 4,
        "jobs_created": 2,
        "jobs_left_running": 0,
        "resumed": True,
    }


def test_an_attempt_that_never_printed_a_step_has_none() -> None:
    [entry] = replace(GOOD, attempts=(replace(LOST, progress=()),)).to_dict()["attempts"]
    assert (entry["first_step"], entry["last_step"], entry["last_checkpoint_step"]) == (None, None, None)
