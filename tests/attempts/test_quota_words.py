"""PAI Studio's diagnosis of a job that queues for a quota, in words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.attempts.quota_words import quota_words

FULL = {"Status": "Failed", "ExceedResources": ["GPU"], "Used": {"GPU": "128"}, "Limit": {"GPU": "144"}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)


def checks(**by_name: Any) -> dict[str, Any]:
    return {"QueueStrategy": "FIFO", "ResourceDiagnosis": by_name}


def scheduling(**fields: Any) -> dict[str, Any]:
    return {"SchedulingDiagnosis": {"Status": "Failed", "TaskNum": 6, "SchedulableNum": 0, **fields}}


@pytest.mark.parametrize(
    ("diagnosis", "words"),
    [
        ({}, "every check is passed"),
        (checks(SelfQuotaLimit={"Status": "Succeeded"}), "every check is passed"),
        (checks(SelfQuotaLimit=FULL), "its own limit is reached (GPU 128 of 144 used)"),
        (checks(AncestorQuotaLimit=FULL), "the limit of a quota above it is reached (GPU 128 of 144 used)"),
        (checks(UserLimit={"Status": "Failed", "ExceedResources": ["GPU"]}), "the limit of one user is reached (GPU)"),
        (checks(QueueStrategyLimit={"Status": "Failed"}), "its queue lets others go first (FIFO)"),
        (
            checks(SelfQuotaLimit=FULL, UserLimit={"Status": "Failed"}),
            "its own limit is reached (GPU 128 of 144 used), and the limit of one user is reached",
        ),
        (scheduling(), "0 of 6 pods find a node"),
        (
            scheduling(UnschedulableNodes=[{"Reason": "OutOfGPU", "Nodes": ["a", "b"]}, {"Reason": "GPUUnhealthy"}]),
            "0 of 6 pods find a node (OutOfGPU on 2, GPUUnhealthy)",
        ),
        (scheduling(Status="Succeeded"), "every check is passed"),
        (scheduling(TaskNum=None), "every check is passed"),
    ],
    ids=str,
)
def test_each_part_of_a_diagnosis_has_its_words(diagnosis: dict[str, Any], words: str) -> None:
    assert quota_words("quota1", diagnosis) == f"in quota quota1 {words}"


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "QueueStrategy": JSON,
            "ResourceDiagnosis": st.dictionaries(st.sampled_from(["SelfQuotaLimit", "QueueStrategyLimit"]), JSON),
            "SchedulingDiagnosis": st.dictionaries(st.sampled_from(["Status", "TaskNum", "UnschedulableNodes"]), JSON),
        },
    )
)
def test_nothing_that_may_come_is_an_error(diagnosis: dict[str, Any]) -> None:
    assert quota_words("q", diagnosis).startswith("in quota q ")
