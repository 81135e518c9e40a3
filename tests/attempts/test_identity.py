"""Who a job belongs to."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.attempts.identity import (
    Owner,
    TaskIdentity,
    attempt_tags,
    is_local_namespace,
    resolve_namespace,
    tag_number,
)

NIGHTLY = TaskIdentity(
    namespace="airflow.example.com", dag_id="nightly", run_id="scheduled__2026-11-30", task_id="train"
)


@pytest.mark.parametrize(
    "other",
    [
        {"namespace": "airflow-2.example.com"},
        {"dag_id": "nightly2"},
        {"run_id": "manual__2026-11-30"},
        {"task_id": "train2"},
        {"map_index": 0},
    ],
    ids=str,
)
def test_each_part_makes_another_task_instance(other: dict[str, object]) -> None:
    assert dataclasses.replace(NIGHTLY, **other).key != NIGHTLY.key  # type: ignore[arg-type]


@given(st.text(), st.text(), st.text(), st.text())
def test_parts_cannot_run_into_each_other(one: str, two: str, three: str, four: str) -> None:
    key = TaskIdentity(namespace="n", dag_id=one + two, run_id=three, task_id=four).key
    moved = TaskIdentity(namespace="n", dag_id=one, run_id=two + three, task_id=four).key
    assert (key == moved) == (two == "")


@given(st.text(), st.text())
def test_tags_and_folders_keep_to_plain_characters(dag_id: str, task_id: str) -> None:
    identity = TaskIdentity(namespace="n", dag_id=dag_id, run_id="r", task_id=task_id)
    tags = identity.tags | attempt_tags(attempt=3, generation=1, request_hash="ab12", owner=Owner.RUN, ledger="cd34")
    assert all(key.startswith("airflow-") and len(value) <= 64 and value.isalnum() for key, value in tags.items())
    assert identity.checkpoint_subfolder.count("/") == 2
    assert not any(char.isspace() for char in identity.checkpoint_subfolder)


@pytest.mark.parametrize(
    ("configured", "of_connection", "base_url", "namespace"),
    [
        ("prod", "conn", "https://airflow.example.com", "prod"),
        ("", "conn", "https://airflow.example.com", "conn"),
        ("", "", "https://airflow.example.com/team-a/", "airflow.example.com/team-a"),
        ("", "", "http://localhost:8080", "localhost:8080"),
        ("", "", "", "localhost"),
    ],
)
def test_where_the_namespace_comes_from(configured: str, of_connection: str, base_url: str, namespace: str) -> None:
    assert resolve_namespace(configured, of_connection, base_url) == namespace


@pytest.mark.parametrize(
    ("namespace", "local"),
    [
        ("localhost", True),
        ("localhost:8080", True),
        ("127.0.0.1:8080/x", True),
        ("airflow.example.com", False),
        ("prod", False),
    ],
)
def test_a_laptop_is_recognised(namespace: str, local: bool) -> None:
    assert is_local_namespace(namespace) is local


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("3", 3),
        (" 12 ", 12),
        ("-1", -1),
        ("", 7),
        ("three", 7),
        (None, 7),
        ("²", 7),
        ("٣", 7),
        ("--5", 7),
        ("-", 7),
        ("9" * 5000, 7),
    ],
)
def test_a_numeric_tag_that_is_none_falls_back(value: str | None, number: int) -> None:
    assert tag_number({"airflow-attempt": value} if value is not None else {}, "airflow-attempt", 7) == number
