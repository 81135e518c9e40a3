"""
What importing our modules costs beyond `airflow.sdk`, beside a standard operator: fresh processes in turn.

Prints one JSON line: medians and spread of CPU milliseconds, and the ratio to the standard operator, from one run.
"""

from __future__ import annotations

import json
import statistics
from typing import Any

from fresh_process import printed_number

RUNS = 9
OURS = {
    "operator": "airflow_provider_pai_spot.operators.spot_job",
    "sensor": "airflow_provider_pai_spot.sensors.spot_job",
    "trigger": "airflow_provider_pai_spot.triggers.spot_job",
    "link": "airflow_provider_pai_spot.links.pai_console",
}
STANDARD = {"standard operator": "airflow.providers.standard.operators.bash"}
PROGRAM = """
import sys, time
import airflow.sdk
start = time.process_time()
import {module}
print((time.process_time() - start) * 1000)
"""


def cost(module: str) -> float:
    """Return the CPU milliseconds of one import, in a process of its own."""
    return printed_number(PROGRAM.format(module=module))


def summary(milliseconds: list[float], standard: float) -> dict[str, Any]:
    """Return median and spread, and the ratio of the median to the standard operator's."""
    median = statistics.median(milliseconds)
    return {
        "cpu_ms_median": round(median, 1),
        "cpu_ms_min": round(min(milliseconds), 1),
        "cpu_ms_max": round(max(milliseconds), 1),
        "ratio": round(median / standard, 1),
    }


def main() -> None:
    """Measure all in turn, so that a noisy minute hits each of them."""
    modules = OURS | STANDARD
    rounds = [{name: cost(module) for name, module in modules.items()} for _ in range(RUNS + 1)][1:]
    costs = {name: [one[name] for one in rounds] for name in modules}
    standard = statistics.median(costs["standard operator"])
    result = {name: summary(values, standard) for name, values in costs.items()}
    print(json.dumps({"benchmark": "import_cost", "runs": RUNS, **result}))


if __name__ == "__main__":
    main()
