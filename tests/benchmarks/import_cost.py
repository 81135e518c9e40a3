"""
What importing the operator module costs beyond `airflow.sdk`, beside a standard operator: fresh processes in turn.

Prints one JSON line: medians and spread of CPU milliseconds, and the ratio of the two, from one run.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

RUNS = 9
OURS = "airflow_provider_pai_spot.operators.spot_job"
STANDARD = "airflow.providers.standard.operators.bash"
PROGRAM = """
import sys, time
import airflow.sdk
start, before = time.process_time(), len(sys.modules)
import {module}
print((time.process_time() - start) * 1000, len(sys.modules) - before)
"""


def cost(module: str) -> tuple[float, int]:
    """Return CPU milliseconds and the number of modules that the import added, in a process of its own."""
    command = [sys.executable, "-c", PROGRAM.format(module=module)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    milliseconds, modules = printed.splitlines()[-1].split()
    return float(milliseconds), int(modules)


def main() -> None:
    """Measure in pairs, so that a noisy minute hits both."""
    pairs = [(cost(OURS), cost(STANDARD)) for _ in range(RUNS)]
    ours, standard = ([pair[side][0] for pair in pairs] for side in (0, 1))
    result = {
        "benchmark": "import_cost",
        "runs": RUNS,
        "ours_cpu_ms": {"median": statistics.median(ours), "min": min(ours), "max": max(ours)},
        "standard_operator_cpu_ms": {
            "median": statistics.median(standard),
            "min": min(standard),
            "max": max(standard),
        },
        "ratio_of_medians": statistics.median(ours) / statistics.median(standard),
        "modules_added": pairs[0][0][1],
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
