"""A word on an unusual wait from a sensor that polls: each look may be a process of its own."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_pai_spot.sensors.looks import LOOKS_KEY


@pytest.fixture
def waiting(bench: Any) -> Any:
    """A job whose type is sold out, watched from its first moment."""
    bench.control.set_stock("ecs.g7.xlarge", 0)
    yield bench.job()
    bench.control.set_stock("ecs.g7.xlarge", None)


def poll(bench: Any, job_id: str, minutes: int, try_number: int = 1) -> None:
    for _ in range(minutes):
        bench.session(job_id, try_number=try_number, deferrable=False).look()
        bench.clock.sleep(60)


def minutes_said(bench: Any) -> list[str]:
    return [line.split("waiting for ")[1].split(" and is")[0] for line in bench.log.lines if "been waiting" in line]


def test_it_is_said_at_doubled_waits_whatever_process_looks(bench: Any, waiting: str) -> None:
    poll(bench, waiting, 100)
    assert minutes_said(bench) == ["10 min", "20 min", "40 min", "1 h 20 min"]


def test_the_next_try_does_not_say_it_again(bench: Any, waiting: str) -> None:
    poll(bench, waiting, 12)
    poll(bench, waiting, 5, try_number=2)
    assert minutes_said(bench) == ["10 min"]


def test_a_missing_permission_is_told_once(bench: Any, waiting: str) -> None:
    bench.control.fault("ListEcsSpecs", "server_error", times=None, status=403, code="Forbidden")
    poll(bench, waiting, 45)
    said = [line for line in bench.log.lines if "been waiting" in line]
    assert ["was refused" in line for line in said] == [True, False, False]


@pytest.mark.parametrize("edited", [-1.0, "600", True, None, 1e300, float("inf"), float("nan")], ids=repr)
def test_an_edited_note_counts_as_nothing_said(bench: Any, waiting: str, edited: Any) -> None:
    poll(bench, waiting, 12)
    bench.store.set(LOOKS_KEY, bench.store.get(LOOKS_KEY) | {"spoken_after": edited})
    poll(bench, waiting, 1)
    assert minutes_said(bench) == ["10 min", "12 min"]
