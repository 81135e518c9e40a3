"""Whether a pod ended badly: one rule, for DLC's JSON and for what an outcome keeps of it."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_pai_spot.dlc.pods import Pod, summary_has_failed


@pytest.mark.parametrize(
    ("raw", "failed"),
    [
        ({"Status": "Failed"}, True),
        ({"Status": "Succeeded", "SubStatus": "Evicted"}, True),
        ({"Status": "Succeeded", "StatusDetail": {"ExitCode": 1}}, True),
        ({"Status": "Stopped", "StatusDetail": {"ExitCode": "137"}}, True),
        ({"Status": "Succeeded", "StatusDetail": {"ExitCode": 0}}, False),
        ({"Status": "Running"}, False),
        ({}, False),
    ],
    ids=str,
)
def test_a_pod_and_its_summary_agree_whether_it_failed(raw: dict[str, Any], failed: bool) -> None:
    pod = Pod.read(raw)
    assert (pod.has_failed, summary_has_failed(pod.summary())) == (failed, failed)


def test_an_empty_summary_has_not_failed() -> None:
    assert not summary_has_failed({})
