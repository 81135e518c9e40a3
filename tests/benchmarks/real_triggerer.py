"""
A thousand deferred task instances in the triggerer of a real Airflow, over TLS: what waiting costs, and how it ends.

Prints one JSON line: CPU and memory of the triggerer's own process with and without them, how late its loop is, calls
a period, and how many task instances ended as their job did. The period is 30 s. `real_triggerer.py [JOBS]`. Half an
hour on two cores, most of which are the 2,000 worker processes before and after the waiting.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from bench_emulator import Place, serving

from airflow_provider_pai_spot.cli.demo.airflow_processes import LocalAirflow

HERE = Path(__file__).parent
PERIOD = 30.0
PATIENCE = 3_000.0
RUN_ID = "bench"
OVER = ("success", "failed")
ENDS = {"Succeeded": "success", "Failed": "failed", "Stopped": "failed"}


def airflow_for(place: Place, folder: Path) -> LocalAirflow:
    """Return an Airflow with the two DAGs of this benchmark."""
    shutil.copytree(HERE / "dags", folder / "dags")
    (folder / "jobs.json").write_text(json.dumps(place.jobs))
    environment = {
        "AIRFLOW__CORE__MAX_MAP_LENGTH": "2000",
        "AIRFLOW__TRIGGERER__CAPACITY": "2000",
        "PYTHONPATH": f"{HERE}:{folder / 'dags'}:{HERE.parents[1]}",
        "SSL_CERT_FILE": place.ca_file,
        "WAITING_FLEET_JOBS": str(folder / "jobs.json"),
    }
    connections = {"pai_dlc_default": place.connection_uri}
    return LocalAirflow(
        folder / "dags", folder / "home", connections=connections, environment=environment, parallelism=6
    )


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Wait for something."""
    give_up_at = time.monotonic() + PATIENCE
    while time.monotonic() < give_up_at:
        with contextlib.suppress(httpx.HTTPError):  # an API server on SQLite is overtaxed now and then
            if holds():
                return
        time.sleep(15.0)
    raise RuntimeError(f"waited {PATIENCE:.0f} s in vain until {what}.")


def states(airflow: LocalAirflow) -> list[str]:
    """Return the states of all sensors by map index, '' for one that has none yet."""
    found = airflow.client.task_instances("waiting_fleet", RUN_ID)
    return [one["state"] or "" for one in sorted(found, key=lambda one: one["map_index"])]


def measured(airflow: LocalAirflow, place: Place, run_id: str) -> dict[str, float]:
    """Let the triggerer measure itself for a minute."""
    calls, began = requests(place), time.monotonic()
    airflow.client.trigger("triggerer_cost", run_id=run_id)
    wait_until(lambda: airflow.client.run_state("triggerer_cost", run_id) in OVER, "the triggerer is measured")
    log = airflow.client.task_log("triggerer_cost", run_id, "measure")
    assert airflow.client.run_state("triggerer_cost", run_id) == "success", log
    a_period = (requests(place) - calls) / (time.monotonic() - began) * PERIOD
    return airflow.client.xcom("triggerer_cost", run_id, "measure") | {"calls_a_period": a_period}


def requests(place: Place) -> int:
    """Return how many calls the emulator has had."""
    return sum(place.control().requests().values())


def main(count: int) -> None:
    """Let the fleet wait and end."""
    with (
        serving(count) as place,
        tempfile.TemporaryDirectory() as folder,
        airflow_for(place, Path(folder)) as airflow,
    ):
        airflow.client.wait_for_dag("waiting_fleet")
        airflow.client.wait_for_dag("triggerer_cost")
        idle = measured(airflow, place, "idle")
        began = time.monotonic()
        airflow.client.trigger("waiting_fleet", run_id=RUN_ID)
        wait_until(lambda: states(airflow).count("deferred") == count, "all wait")
        all_wait_after = time.monotonic() - began
        time.sleep(2 * PERIOD)
        waiting = measured(airflow, place, "waiting")
        ends = dict(zip(place.jobs, random.Random(0).choices(list(ENDS), (8, 1, 1), k=count), strict=True))
        for job, status in ends.items():
            place.control().set_status(job, status)
        wait_until(lambda: airflow.client.run_state("waiting_fleet", RUN_ID) in OVER, "all have ended")
        right = [ENDS[end] == state for end, state in zip(ends.values(), states(airflow), strict=True)]
    line: dict[str, Any] = {"benchmark": "real_triggerer", "jobs": count, "all_wait_after_s": round(all_wait_after)}
    line |= {name: [round(idle[name], 2), round(waiting[name], 2)] for name in idle}
    line |= {"columns": "without and with the jobs", "ended": Counter(ends.values()), "as_their_job": sum(right)}
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
