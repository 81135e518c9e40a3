"""What a user of the vendor's SDK sees when a call goes wrong as scripted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pytest

from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.emulator.faults import Fault, FaultBook, FaultKind


def failure(call: Any) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the SDK's own types are what is looked at
        call()
    return caught.value


@pytest.mark.parametrize(
    ("fault", "shown"),
    [
        ({"kind": "throttle"}, ("ClientException", "Throttling.User", 429)),
        ({"kind": "throttle", "status": 400}, ("ClientException", "Throttling.User", 400)),
        ({"kind": "throttle", "retry_after": 700}, ("ThrottlingException", "Throttling.User", 429)),
        ({"kind": "throttle", "code": "Throttling"}, ("ClientException", "Throttling", 429)),
        ({"kind": "server_error", "status": 500}, ("ServerException", "InternalError", 500)),
        ({"kind": "server_error"}, ("ServerException", "ServiceUnavailable", 503)),
        ({"kind": "html_error"}, ("UnretryableException", None, None)),
        ({"kind": "drop"}, ("UnretryableException", None, None)),
        ({"kind": "lost_answer"}, ("UnretryableException", None, None)),
    ],
    ids=str,
)
def test_each_fault_surfaces_once_as_the_sdk_shows_it(sdk: Any, emulator: DlcEmulator, fault: Any, shown: Any) -> None:
    job_id = sdk.create()
    emulator.control.fault("GetJob", **fault)
    error = failure(lambda: sdk.get(job_id))
    seen = (type(error).__name__, getattr(error, "code", None), getattr(error, "status_code", None))
    assert seen == shown
    assert sdk.status(job_id) == "Creating"


def test_the_retry_header_reaches_the_caller(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.fault("ListJobs", "throttle", retry_after=700)
    assert failure(sdk.list).retry_after == 700


def test_a_dropped_create_job_created_nothing(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.fault("CreateJob", "drop")
    failure(sdk.create)
    assert emulator.control.jobs() == []


def test_a_create_job_whose_answer_was_lost_did_create_the_job(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.fault("CreateJob", "lost_answer")
    failure(sdk.create)
    assert len(emulator.control.jobs()) == 1
    assert emulator.control.requests()["CreateJob"] == 1


def test_a_slow_stop_stays_in_stopping(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.plan(JobPlan(run_seconds=None))
    emulator.control.fault("StopJob", "slow_stop", seconds=120)
    job_id = sdk.create()
    sdk.stop(job_id)
    emulator.control.advance(119)
    assert sdk.status(job_id) == "Stopping"
    emulator.control.advance(2)
    assert sdk.status(job_id) == "Stopped"


def test_a_list_lag_hides_the_next_job_only(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.fault("CreateJob", "list_lag", seconds=60)
    hidden, shown = sdk.create(), sdk.create()
    assert sdk.list() == [shown]
    emulator.control.advance(60)
    assert set(sdk.list()) == {hidden, shown}


def test_a_delayed_answer_is_still_the_answer(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.fault("GetJob", "delay", seconds=0.05)
    assert sdk.status(sdk.create()) == "Creating"


def test_a_job_exists_while_the_answer_to_its_create_job_is_on_the_way(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.plan(JobPlan(late_answers={"CreateJob": 3600}))
    with ThreadPoolExecutor() as threads:
        asked = threads.submit(sdk.create)
        while not emulator.control.jobs():
            wait([asked], timeout=0.05)
        assert not asked.done()
        emulator.stop()
        assert asked.exception() is not None


def test_only_the_first_answer_about_a_job_is_late(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.plan(JobPlan(late_answers={"GetJob": 3600}))
    job_id = sdk.create()
    with ThreadPoolExecutor() as threads:
        asked = threads.submit(sdk.get, job_id)
        while not emulator.control.requests().get("GetJob"):
            wait([asked], timeout=0.05)
        assert sdk.status(job_id) == "Creating"
        assert not asked.done()
        emulator.stop()
        assert asked.exception() is not None


def test_an_operation_that_cannot_be_late_is_refused() -> None:
    with pytest.raises(ValueError, match="late_answers has StopJob; only CreateJob, GetJob"):
        JobPlan.from_dict({"late_answers": {"StopJob": 1}})


def test_cleared_faults_do_not_happen(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.fault("*", "drop", times=None)
    emulator.control.clear_faults()
    sdk.create()


def test_faults_and_requests_are_written_down(sdk: Any, emulator: DlcEmulator) -> None:
    emulator.control.fault("ListJobs", "throttle")
    failure(sdk.list)
    sdk.list()
    (entry,) = emulator.control.journal("fault")
    assert entry["detail"] == {"operation": "ListJobs", "fault": "throttle"}
    assert emulator.control.requests() == {"ListJobs": 2}


@pytest.mark.parametrize(
    ("operation", "times", "struck"),
    [("GetJob", 1, [1, 0, 0]), ("GetJob", 2, [1, 1, 0]), ("*", None, [1, 1, 1]), ("StopJob", None, [0, 0, 0])],
)
def test_a_fault_strikes_its_operation_as_often_as_it_says(operation: Any, times: Any, struck: Any) -> None:
    book = FaultBook(seed=0)
    book.add(Fault(operation=operation, kind=FaultKind.DROP, times=times))
    assert [len(book.take_between("GetJob")) for _ in range(3)] == struck


def test_a_seed_repeats_the_dice() -> None:
    def rolls() -> list[int]:
        book = FaultBook(seed=3)
        book.add(Fault(operation="*", kind=FaultKind.DROP, times=None, probability=0.5))
        return [len(book.take_between("GetJob")) for _ in range(50)]

    assert rolls() == rolls()
    assert 0 < sum(rolls()) < 50


def test_a_call_is_broken_by_one_fault_at_a_time_but_may_be_late_too() -> None:
    book = FaultBook(seed=0)
    for kind in (FaultKind.DROP, FaultKind.THROTTLE, FaultKind.DELAY):
        book.add(Fault(operation="*", kind=kind))
    assert [fault.kind for fault in book.take_between("GetJob")] == [FaultKind.DROP, FaultKind.DELAY]
    assert [fault.kind for fault in book.take_between("GetJob")] == [FaultKind.THROTTLE]
