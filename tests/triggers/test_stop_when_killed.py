"""What a triggerer does for jobs whose tasks were ended, when there are many and DLC takes few stops a second."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from scripted_dlc import ScriptedDlc, ids, raising
from virtual_time import LoopClock, in_virtual_time

from airflow_provider_pai_spot.exceptions import PaiDlcError, PaiDlcRefused, PaiDlcThrottled, PaiDlcUnavailable
from airflow_provider_pai_spot.triggers.spot_job import SpotJobTrigger
from airflow_provider_pai_spot.triggers.watch import _stop_and_see

JOB = ids(1)[0]


def killed(dlc: ScriptedDlc, job_ids: Sequence[str]) -> float:
    """Stop the jobs of tasks that end together; return the seconds until the last one is done with."""

    async def one(job_id: str) -> None:
        trigger = SpotJobTrigger(job_id=job_id, pai_dlc_conn_id="pai_dlc_default")
        trigger.clock = LoopClock()
        trigger._log = logging.getLogger("killed")
        await _stop_and_see(trigger, dlc)  # type: ignore[arg-type]  # the part of the hook that is used

    async def story() -> float:
        dlc.time = asyncio.get_running_loop().time
        await asyncio.gather(*(one(job_id) for job_id in job_ids))
        return dlc.time()

    return in_virtual_time(story())


def at_most(a_second: int, dlc: ScriptedDlc) -> Callable[[str, Sequence[str]], None]:
    taken: Counter[int] = Counter()

    def throttle(operation: str, _ids: Sequence[str]) -> None:
        taken[int(dlc.time())] += operation == "StopJob"
        if operation == "StopJob" and taken[int(dlc.time())] > a_second:
            raise PaiDlcThrottled("StopJob: HTTP 429", code="Throttling.User", status_code=429)

    return throttle


def words(caplog: Any) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "killed"]


def test_each_costs_a_stop_and_a_look(caplog: Any) -> None:
    caplog.set_level("INFO")
    dlc = ScriptedDlc()
    killed(dlc, dlc.add([JOB]))
    assert (dlc.stops, [name for _, name in dlc.singles]) == ([JOB], [JOB])
    assert words(caplog) == [f"{JOB} is Stopped"]


def test_many_that_are_ended_together_are_all_stopped_however_few_stops_dlc_takes() -> None:
    dlc = ScriptedDlc()
    jobs = dlc.add(ids(200))
    dlc.fault = at_most(5, dlc)
    assert killed(dlc, jobs) <= 120.0
    assert Counter(item["Status"] for item in dlc.jobs.values()) == {"Stopped": 200}
    assert len(dlc.stops) == 200


def test_what_dlc_asks_to_wait_is_waited_before_the_stop_is_repeated() -> None:
    dlc = ScriptedDlc()
    asked: list[float] = []

    def busy(operation: str, _ids: Sequence[str]) -> None:
        asked.append(dlc.time())
        if len(asked) == 1:
            raise PaiDlcThrottled("StopJob: HTTP 429", status_code=429, retry_after=40.0)

    dlc.add([JOB])
    dlc.fault = busy
    killed(dlc, [JOB])
    assert asked[1] >= 40.0
    assert dlc.jobs[JOB]["Status"] == "Stopped"


@pytest.mark.parametrize(
    ("error", "given_up_after"),
    [
        (PaiDlcRefused("StopJob: HTTP 403", status_code=403), 20.0),
        (PaiDlcUnavailable("StopJob: HTTP 503", status_code=503), 120.0),
        (PaiDlcThrottled("StopJob: HTTP 429", status_code=429, retry_after=100.0), 120.0),
    ],
    ids=["refused", "unavailable", "throttled"],
)
def test_a_stop_that_does_not_go_through_is_told_twice_and_given_up(
    error: PaiDlcError, given_up_after: float, caplog: Any
) -> None:
    dlc = ScriptedDlc(fault=raising(error, "StopJob"))
    assert killed(dlc, dlc.add([JOB])) == pytest.approx(given_up_after, abs=2.0)
    first, last = words(caplog)
    assert str(error) in first
    assert f"`pai-spot stop {JOB}`" in last
