"""Statuses: 13 are documented, and any other is a value like they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.dlc.status import JobStatus, Phase, is_decided, is_terminal, phase_of


@pytest.mark.parametrize("status", list(JobStatus))
def test_every_documented_status_has_a_phase(status: JobStatus) -> None:
    assert phase_of(status.value) is not Phase.UNKNOWN


def test_only_three_statuses_are_final() -> None:
    assert {status for status in JobStatus if is_terminal(status)} == {"Succeeded", "Failed", "Stopped"}


def test_a_job_whose_nodes_are_still_held_is_decided_but_not_final() -> None:
    assert is_decided("FailedReserving")
    assert is_decided("SucceededReserving")
    assert not is_terminal("FailedReserving")


@given(st.text().filter(lambda text: text not in set(JobStatus)))
def test_an_undocumented_status_is_neither_an_end_nor_a_crash(status: str) -> None:
    assert phase_of(status) is Phase.UNKNOWN
    assert not is_decided(status)
