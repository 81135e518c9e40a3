"""
What waiting for many jobs costs, our way and others' in the same run, the emulator being a process of its own over TLS.

Prints each run to stderr and one JSON line for each way and number of jobs: median, least and most over the
repetitions, and the ratio of its CPU to ours with as many jobs. The period is 30 s. All jobs wait for capacity and have
limits. The words on long waits, a call for each job at each doubling of its wait, are switched off here; `storm.py` has
them on.
`waiting_fleet.py [REPETITIONS [JOBS,JOBS...]]`, all numbers of jobs if none is given.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench_emulator import Place, serving, summary

PERIOD = 30.0
WINDOW = PERIOD
QUIET = {"AIRFLOW__PAI_SPOT__UNUSUAL_WAIT": "0"}
PROGRAM = Path(__file__).with_name("fleet_process.py")
CASES = (
    ("none", 100),
    ("ours", 100),
    ("ours", 300),
    ("ours", 1_000),
    ("ours", 10_000),
    # Further than this the others do not get: 1,000 fill a core, and most of their calls fail.
    ("vendor", 100),
    ("vendor", 300),
    ("vendor", 1_000),
    ("sagemaker", 300),
    ("databricks", 300),
    ("databricks", 1_000),
)


def warm_up(way: str, jobs: int) -> float:
    """Return the seconds until a way has come into its stride: ours starts with at most ten lists a second."""
    return PERIOD + 5.0 + (jobs / 500 if way == "ours" else 0.0)  # then the CPU is measured, then the lag


def measured(place: Place, way: str) -> dict[str, Any]:
    """Run one process and return what it printed, with the calls that reached the emulator within the window."""
    control = place.control()
    timing = [str(one) for one in (PERIOD, warm_up(way, len(place.jobs)), WINDOW)]
    command = [sys.executable, str(PROGRAM), way, *timing]
    calls: list[int] = []
    with subprocess.Popen(
        command, env=place.environment() | QUIET, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n".join(place.jobs))
        process.stdin.close()
        for line in process.stdout:
            if line.startswith("measur"):
                calls.append(sum(control.requests().values()))
            elif line.startswith("{"):
                return json.loads(line) | {"calls_a_period": (calls[1] - calls[0]) / (2 * WINDOW / PERIOD)}
    raise RuntimeError(f"{way} with {len(place.jobs)} jobs came to no result.")


def main(repetitions: int, numbers: set[int]) -> None:
    """Measure every case in turn, as often as asked for, so that a noisy minute hits each of them."""
    cases = [case for case in CASES if case[0] == "none" or case[1] in numbers]
    found: dict[tuple[str, int], list[dict[str, Any]]] = {case: [] for case in cases}
    for _ in range(repetitions):
        for way, jobs in cases:
            with serving(jobs) as place:
                found[way, jobs].append(measured(place, way))
            print(json.dumps({"way": way, "jobs": jobs, **found[way, jobs][-1]}), file=sys.stderr, flush=True)
    beyond = {case: beyond_empty_loop(found, case) for case in cases}
    for (way, jobs), runs in found.items():
        line = {"benchmark": "waiting_fleet", "way": way, "jobs": jobs, "runs": len(runs), **summary(runs)}
        line["cpu_percent_beyond_empty_loop"] = round(beyond[way, jobs], 3)
        line["cpu_ms_per_job_and_period"] = round(beyond[way, jobs] / 100 * PERIOD * 1000 / jobs, 4)
        if way != "none" and beyond.get(("ours", jobs), 0.0) > 0:
            line["cpu_to_ours"] = round(beyond[way, jobs] / beyond["ours", jobs], 1)
        print(json.dumps(line), flush=True)


def beyond_empty_loop(found: dict[tuple[str, int], list[dict[str, Any]]], case: tuple[str, int]) -> float:
    """Return the median CPU of a case, less that of the same loop without triggers, in per cent of a core."""
    cpu, empty = (statistics.median(run["cpu_percent"] for run in found[one]) for one in (case, CASES[0]))
    return cpu - empty


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 3,
        set(map(int, sys.argv[2].split(","))) if len(sys.argv) > 2 else {jobs for _, jobs in CASES},
    )
