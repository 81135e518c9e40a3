"""
How many requests a second the emulator answers over TLS, as a process of its own, to a few clients that keep asking.

Prints one JSON line: medians, least and most over the repetitions, for GetJob and for ListJobs of 100 ids, and the
ratio of both. `emulator_requests.py [REPETITIONS]`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench_emulator import Place, serving, summary

CLIENTS = 4
SECONDS = 10.0
JOBS = 1_000


def requests_a_second(call: Callable[[int], Any]) -> float:
    """Let several threads call for a while."""
    end = time.monotonic() + SECONDS

    def client(number: int) -> int:
        count = 0
        while time.monotonic() < end:
            call(number * 7919 + count)
            count += 1
        return count

    with ThreadPoolExecutor(CLIENTS) as threads:
        return sum(threads.map(client, range(CLIENTS))) / SECONDS


def measured(place: Place) -> dict[str, float]:
    """Ask one emulator by our hook."""
    os.environ.update(place.environment())
    from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

    hook, jobs = PaiDlcHook(), place.jobs
    batches = [jobs[start : start + 100] for start in range(0, len(jobs), 100)]
    get = requests_a_second(lambda number: hook.get_job(jobs[number % len(jobs)]))
    listed = requests_a_second(lambda number: hook.list_page(batches[number % len(batches)]))
    return {"get_job_a_second": get, "list_of_100_a_second": listed, "jobs_told_list_to_get_ratio": 100 * listed / get}


def main(repetitions: int) -> None:
    """Measure as often as asked for."""
    runs = []
    for _ in range(repetitions):
        with serving(JOBS) as place:
            runs.append(measured(place))
    print(json.dumps({"benchmark": "emulator_requests", "clients": CLIENTS, "runs": len(runs), **summary(runs)}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
