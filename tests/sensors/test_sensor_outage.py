"""A DLC that does not answer, under a sensor: borne for a time, said once."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSensorTimeout, TaskDeferred

from airflow_provider_pai_spot.attempts.unseen import not_observed
from airflow_provider_pai_spot.exceptions import PaiDlcRefused, PaiDlcUnavailable, SpotOutcomeUnknown, SpotWatchEnded
from airflow_provider_pai_spot.sensors.looks import LOOKS_KEY

TOLERANCE = 900  # the default of [pai_spot] poll_error_tolerance


def poll(bench: Any, job_id: str, times: int, every: float = 60, **arguments: Any) -> list[str | None]:
    """Look as reschedule mode does: each look is a session of its own."""
    answers = []
    for _ in range(times):
        answers.append(bench.session(job_id, deferrable=False, **arguments).look())
        bench.clock.sleep(every)
    return answers


@pytest.mark.parametrize("kind", ["server_error", "throttle", "drop", "html_error"])
def test_the_first_look_before_deferring_bears_an_outage(bench: Any, kind: str) -> None:
    job_id = bench.job()
    bench.control.fault("GetJob", kind, times=None)
    with pytest.raises(TaskDeferred):
        bench.session(job_id).watch_deferred()


def test_the_first_look_before_deferring_bears_a_job_that_is_not_visible_yet(bench: Any) -> None:
    with pytest.raises(TaskDeferred):
        bench.session("dlcnotyet").watch_deferred()


@pytest.mark.parametrize("kind", ["server_error", "throttle"])
def test_poking_bears_an_outage_and_says_so_once(bench: Any, kind: str) -> None:
    job_id = bench.job()
    assert poll(bench, job_id, 1) == [None]
    bench.control.fault("GetJob", kind, times=5)
    bench.log.lines.clear()
    assert poll(bench, job_id, 7) == [None] * 7
    levels = [line.split(" ", 1)[0] for line in bench.log.lines if "DLC" in line]
    assert levels == ["WARNING", "INFO"]
    assert "DLC could not be asked, waiting on" in bench.log.lines[0]
    assert "DLC answers again" in bench.log.lines[1]


def test_an_outage_beyond_the_tolerance_is_given_up_and_the_next_try_bears_it_anew(bench: Any) -> None:
    job_id = bench.job()
    bench.control.fault("GetJob", "server_error", times=None)
    assert poll(bench, job_id, TOLERANCE // 60) == [None] * (TOLERANCE // 60)
    with pytest.raises(SpotOutcomeUnknown, match="may be alive"):
        poll(bench, job_id, 1)
    assert poll(bench, job_id, 2, try_number=2) == [None, None]


@pytest.mark.parametrize(
    ("try_number", "cancel_on_kill", "left", "told"),
    [
        (3, False, "Running", "may be alive; the next try goes on watching it"),
        (3, True, "Running", "may be alive; the next try goes on watching it"),
        (4, False, "Running", "No try is left to watch it; it is left alone"),
        (4, True, "Stopped", "No try is left to watch it; it was stopped"),
    ],
)
def test_a_silence_ends_the_job_only_with_the_last_try_and_if_asked_to(
    bench: Any, try_number: int, cancel_on_kill: bool, left: str, told: str
) -> None:
    job_id = bench.job()
    watching = {"try_number": try_number, "cancel_on_kill": cancel_on_kill}
    bench.control.fault("GetJob", "server_error", times=None)
    assert poll(bench, job_id, TOLERANCE // 60, **watching) == [None] * (TOLERANCE // 60)
    with pytest.raises(SpotOutcomeUnknown, match=told):
        poll(bench, job_id, 1, **watching)
    bench.control.clear_faults()
    assert bench.status(job_id) == left


@pytest.mark.parametrize("try_number", [3, 4])
def test_a_silence_that_a_trigger_tells_of_ends_as_one_on_a_worker(bench: Any, try_number: int) -> None:
    job_id = bench.job()
    event = not_observed(job_id, "Running", PaiDlcUnavailable("no answer")).to_dict()
    with pytest.raises(SpotOutcomeUnknown):
        bench.session(job_id, try_number=try_number, cancel_on_kill=True).resume(event)
    assert bench.status(job_id) == ("Stopped" if try_number == 4 else "Running")


def test_a_job_that_cannot_be_stopped_in_a_silence_is_named_with_what_stops_it(bench: Any) -> None:
    job_id = bench.job()
    for operation in ("GetJob", "StopJob"):
        bench.control.fault(operation, "server_error", times=None)
    with pytest.raises(SpotOutcomeUnknown, match=f"`pai-spot stop {job_id}` stops it"):
        poll(bench, job_id, TOLERANCE // 60 + 1, try_number=4, cancel_on_kill=True)


def test_the_timeout_passes_during_an_outage_too(bench: Any) -> None:
    job_id = bench.job()
    bench.session(job_id, timeout=90).begin()
    bench.control.fault("GetJob", "server_error", times=None)
    with pytest.raises(AirflowSensorTimeout, match="unseen"):
        poll(bench, job_id, 3, timeout=90)


def test_a_job_that_dlc_does_not_know_is_believed_gone_after_a_minute(bench: Any) -> None:
    assert poll(bench, "dlcnotyet", 3, every=20) == [None] * 3
    with pytest.raises(SpotWatchEnded, match="DLC does not know the job"):
        poll(bench, "dlcnotyet", 1)


def test_a_definite_no_is_not_waited_on(bench: Any) -> None:
    job_id = bench.job()
    bench.control.fault("GetJob", "server_error", times=1, status=403, code="Forbidden")
    with pytest.raises(PaiDlcRefused):
        poll(bench, job_id, 1)


def test_looks_that_find_nothing_new_write_nothing(bench: Any) -> None:
    job_id = bench.job()
    bench.clock.sleep(600)
    poll(bench, job_id, 1)
    kept = bench.store.get(LOOKS_KEY)
    poll(bench, job_id, 3)
    assert bench.store.get(LOOKS_KEY) is kept


@pytest.mark.parametrize(
    "edited",
    ["x", [], {"missed_since": 1}, {"missed_since": "2026-01-01T00:00:00"}, {"gone_since": "then"}, {"status": 1}],
    ids=str,
)
def test_edited_notes_count_as_nothing_seen(bench: Any, edited: Any) -> None:
    job_id = bench.job()
    own = {"job_id": job_id, "try_number": 1}
    bench.store.set(LOOKS_KEY, own | edited if isinstance(edited, dict) else edited)
    bench.control.fault("GetJob", "server_error", times=1)
    assert poll(bench, job_id, 2) == [None, None]
