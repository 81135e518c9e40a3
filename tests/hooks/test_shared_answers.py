"""A thousand tasks of one process ask once; a refusal is an answer, too."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from airflow.sdk import Connection
from seams import EmulatedClock

from airflow_provider_pai_spot.emulator import DlcEmulator
from airflow_provider_pai_spot.exceptions import PaiDlcRefused
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.hooks.retrying import RetryRules
from airflow_provider_pai_spot.hooks.shared_answers import SharedAnswers

TYPES = ["ecs.c7.large", "ecs.g7.xlarge"]


@pytest.fixture
def cloud() -> Iterator[DlcEmulator]:
    with DlcEmulator(clock="manual") as emulator:
        yield emulator


@pytest.fixture
def new_hook(cloud: DlcEmulator) -> Callable[[], PaiDlcHook]:
    """Each task has a hook of its own; they have the connection, and so the client, in common."""
    clock = EmulatedClock(cloud)
    connection = Connection.from_uri(cloud.connection_uri(), conn_id="pai_dlc_default")

    def hook() -> PaiDlcHook:
        return PaiDlcHook.from_connection(connection, clock=clock, retry_rules=RetryRules(attempts=1))

    return hook


def questions(cloud: DlcEmulator) -> int:
    return cloud.control.requests().get("ListEcsSpecs", 0)


def test_a_thousand_tasks_in_four_threads_ask_once_a_minute(
    cloud: DlcEmulator, new_hook: Callable[[], PaiDlcHook]
) -> None:
    def discount(_task: int) -> Any:
        return new_hook().list_ecs_specs(["ecs.g7.xlarge"], max_age=60)[0]["NonProtectSpotDiscount"]

    cloud.control.set_price("ecs.g7.xlarge", 0.3)
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(discount, range(1000))) == {0.3}
        assert questions(cloud) == 1
        cloud.control.set_price("ecs.g7.xlarge", 0.5)
        cloud.control.advance(61)
        assert set(threads.map(discount, range(1000))) == {0.5}
    assert questions(cloud) == 2


def test_other_types_are_another_question(cloud: DlcEmulator, new_hook: Callable[[], PaiDlcHook]) -> None:
    for types in (TYPES, TYPES[:1], TYPES):
        assert [spec["InstanceType"] for spec in new_hook().list_ecs_specs(types, max_age=60)] == sorted(
            types, reverse=True
        )
    assert questions(cloud) == 2


def test_who_wants_to_know_it_now_asks(cloud: DlcEmulator, new_hook: Callable[[], PaiDlcHook]) -> None:
    for _ in range(3):
        new_hook().list_ecs_specs(TYPES)
    assert questions(cloud) == 3


def test_a_refusal_is_shared_for_as_long(cloud: DlcEmulator, new_hook: Callable[[], PaiDlcHook]) -> None:
    cloud.control.fault("ListEcsSpecs", "server_error", times=1, status=403, code="Forbidden.RAM")
    for _ in range(3):
        with pytest.raises(PaiDlcRefused, match=r"paidlc:ListEcsSpecs or pai:ListEcsSpecs"):
            new_hook().list_ecs_specs(TYPES, max_age=60)
    assert questions(cloud) == 1
    cloud.control.advance(61)
    assert new_hook().list_ecs_specs(TYPES, max_age=60)


def test_a_refusal_that_is_raised_often_does_not_grow(cloud: DlcEmulator) -> None:
    shared = SharedAnswers(EmulatedClock(cloud))

    def refuse() -> None:
        raise PaiDlcRefused("no")

    def frames() -> int:
        try:
            shared.get("q", 60, refuse)
        except PaiDlcRefused as error:
            trace, count = error.__traceback__, 0
            while trace is not None:
                trace, count = trace.tb_next, count + 1
            return count
        return 0

    assert len({frames() for _ in range(5)}) == 1


def test_a_bug_while_asking_is_not_kept(cloud: DlcEmulator) -> None:
    shared = SharedAnswers(EmulatedClock(cloud))
    with pytest.raises(ZeroDivisionError):
        shared.get("q", 60, lambda: 1 // 0)
    assert shared.get("q", 60, lambda: 7) == 7


def test_one_slow_question_does_not_hold_up_another(cloud: DlcEmulator) -> None:
    shared = SharedAnswers(EmulatedClock(cloud))
    asked, answer = threading.Event(), threading.Event()

    def slowly() -> str:
        asked.set()
        answer.wait(30)
        return "slow"

    with ThreadPoolExecutor(1) as thread:
        slow = thread.submit(shared.get, "slow", 60, slowly)
        asked.wait(30)
        assert shared.get("quick", 60, lambda: "quick") == "quick"
        assert not slow.done()
        answer.set()
        assert slow.result(30) == "slow"
