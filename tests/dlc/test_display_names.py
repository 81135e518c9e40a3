"""Default names: legal, short, and different for different task instances."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.dlc.job_request import default_display_name


@given(st.text(max_size=200), st.text(max_size=200), st.text("0123456789abcdef", min_size=1, max_size=40))
def test_a_default_name_is_legal_short_and_ends_in_its_key(dag_id: str, task_id: str, key: str) -> None:
    name = default_display_name(dag_id, task_id, key)
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,63}", name)
    assert name.endswith(key)


def test_a_default_name_says_dag_and_task() -> None:
    assert default_display_name("nightly", "train", "3f9a") == "nightly-train-3f9a"


def test_characters_dlc_does_not_allow_become_dashes() -> None:
    assert default_display_name("夜間 dag", "train/gpu", "3f9a") == "dag-train-gpu-3f9a"


def test_a_name_without_a_usable_part_is_still_a_name() -> None:
    assert default_display_name("夜", "間", "") == "job"
