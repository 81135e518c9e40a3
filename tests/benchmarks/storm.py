"""
A thousand triggers that start at once over TLS, and how late each then hears that its job ended.

Prints two JSON lines, `restart_storm` and `change_to_event`: medians, least and most over the repetitions. The period
is 30 s, and jobs end at moments spread over one. `storm.py [REPETITIONS [JOBS]]`.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench_emulator import Place, serving, summary

PERIOD = 30.0
CHANGES = 200
PROGRAM = Path(__file__).with_name("storm_process.py")


def measured(place: Place, rng: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run one process; return what its start cost and how late its events were."""
    control = place.control()
    command = [sys.executable, str(PROGRAM), str(PERIOD)]
    with subprocess.Popen(
        command, env=place.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n".join(place.jobs))
        process.stdin.close()
        looked = json.loads(next(line for line in process.stdout if line.startswith('{"looked"')))["looked"]
        storm = {
            "first_look_s_median": statistics.median(looked),
            "first_look_s_max": max(looked),
            "calls": sum(control.requests().values()),
        }
        time.sleep(1.5 * PERIOD)  # until the looks are spread over the period
        ended_at = end_some(place, control, rng)
        late = [fired - ended_at[job] for job, fired in events(process, len(ended_at))]
        process.terminate()
    return storm, {"late_s_median": statistics.median(late), "late_s_max": max(late)}


def end_some(place: Place, control: Any, rng: random.Random) -> dict[str, float]:
    """Let some jobs end, spread over one period, and return when each did."""
    ended_at: dict[str, float] = {}
    for job in rng.sample(place.jobs, min(CHANGES, len(place.jobs))):
        control.set_status(job, "Succeeded")
        ended_at[job] = time.time()
        time.sleep(PERIOD / CHANGES)
    return ended_at


def events(process: subprocess.Popen[str], count: int) -> list[tuple[str, float]]:
    """Return which jobs' triggers fired, and when."""
    assert process.stdout is not None
    found = []
    for line in process.stdout:
        if line.startswith('{"fired"'):
            event = json.loads(line)
            found.append((event["fired"], event["at"]))
        if len(found) == count:
            return found
    raise RuntimeError(f"only {len(found)} of {count} triggers fired.")


def main(repetitions: int, jobs: int) -> None:
    """Measure as often as asked for."""
    rng = random.Random(0)
    runs = []
    for _ in range(repetitions):
        with serving(jobs) as place:
            runs.append(measured(place, rng))
    for name, number in (("restart_storm", 0), ("change_to_event", 1)):
        line = {"benchmark": name, "jobs": jobs, "runs": len(runs), **summary([run[number] for run in runs])}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3, int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
