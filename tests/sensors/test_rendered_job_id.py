"""What Airflow may render `job_id` to."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_pai_spot.exceptions import SpotSubmissionRefused
from airflow_provider_pai_spot.sensors.job_id import required_job_id


class LazyXComs:
    """Airflow hands out the results of a mapped task as a sequence that is not a list."""

    def __getitem__(self, index: int) -> str:
        return ["dlc1", "dlc2"][index]

    def __len__(self) -> int:
        return 2


@pytest.mark.parametrize("text", ["dlc1", " dlc1\n"])
def test_one_id_is_taken(text: str) -> None:
    assert required_job_id(text, "wait") == "dlc1"


@pytest.mark.parametrize(
    ("value", "seen", "what_to_do"),
    [
        (None, "None (NoneType)", "pushed no XCom"),
        ("", "'' (str)", "pushed no XCom"),
        ("None", "'None' (str)", "pushed no XCom"),
        (["dlc1"], "['dlc1'] (list)", ".expand(job_id=submit.output)"),
        (LazyXComs(), "(LazyXComs)", ".expand(job_id=submit.output)"),
        (17, "17 (int)", "the id as text"),
    ],
    ids=["no xcom", "empty", "no xcom, by Jinja", "a list", "a mapped task's", "a number"],
)
def test_anything_else_is_refused_naming_what_was_seen_and_what_to_do(value: Any, seen: str, what_to_do: str) -> None:
    with pytest.raises(SpotSubmissionRefused, match="wait: job_id is") as refusal:
        required_job_id(value, "wait")
    assert seen in str(refusal.value)
    assert what_to_do in str(refusal.value)


def test_the_flow_checks_it_before_dlc_is_asked(bench: Any) -> None:
    with pytest.raises(SpotSubmissionRefused, match="job_id"):
        bench.session(None)
