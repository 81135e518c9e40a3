"""What somebody else wrote into a job's tags and variables is read, never tripped over."""

from __future__ import annotations

import pytest

from airflow_provider_pai_spot.attempts.newest import _folder_number
from airflow_provider_pai_spot.attempts.submission import _age_key
from airflow_provider_pai_spot.dlc.job import Job

ODD = ["²", "٣", "--5", "-", "", "three", "9" * 5000]


def tagged(attempt: str) -> Job:
    return Job({"JobId": "dlc1", "Settings": {"Tags": {"airflow-attempt": attempt}}})


@pytest.mark.parametrize("attempt", ODD, ids=lambda text: repr(text[:8]))
def test_a_job_whose_attempt_is_no_number_sorts_before_the_numbered_ones(attempt: str) -> None:
    assert min([tagged("0"), tagged(attempt)], key=_age_key).tags == {"airflow-attempt": attempt}


@pytest.mark.parametrize("number", ODD, ids=lambda text: repr(text[:8]))
def test_a_checkpoint_folder_that_is_no_number_is_the_first(number: str) -> None:
    assert _folder_number(f"/mnt/checkpoints/nightly/train/g{number}") == 1


@pytest.mark.parametrize(("folder", "number"), [("nightly/train/g2", 2), ("nightly/train/g12/", 12), ("nightly", 1)])
def test_a_checkpoint_folder_tells_its_number(folder: str, number: int) -> None:
    assert _folder_number(folder) == number
