"""
What the parse of a DAG file with 20 tasks costs beyond `airflow.sdk`: ours, a standard operator's, and the same as ours
with the vendor's SDK imported at the top of the module, as providers often do. Fresh processes in turn.

Prints one JSON line: medians and spread of CPU milliseconds, and ratios to the standard operator, from one run.
`dag_parse.py [REPETITIONS]`.
"""

from __future__ import annotations

import json
import statistics
import sys
from typing import Any

from fresh_process import printed_number

TASKS = 20
HEAD = """
from datetime import datetime
from airflow.sdk import DAG
{imports}

with DAG("parsed", schedule="@daily", start_date=datetime(2026, 1, 1), catchup=False):
    for number in range({tasks}):
        {task}
"""
STANDARD = "from airflow.providers.standard.operators.bash import BashOperator"
OURS = "from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator"
SDK = "import alibabacloud_pai_dlc20201203.client, alibabacloud_pai_dlc20201203.models"
BASH_TASK = 'BashOperator(task_id=f"t{number}", bash_command="python train.py", retries=2)'
OUR_TASK = (
    'SubmitSpotJobOperator(task_id=f"t{number}", image="registry.example.com/train:1", '
    'user_command="python train.py", ecs_spec="ecs.gn7i-c8g1.2xlarge", spot_discount_limit=0.4, retries=2)'
)
FILES = {
    "ours": (OURS, OUR_TASK),
    "standard operator": (STANDARD, BASH_TASK),
    "sdk at module top": (f"{SDK}\n{OURS}", OUR_TASK),
}
PROGRAM = """
import sys, time
import airflow.sdk
text = sys.stdin.read()
start = time.process_time()
exec(compile(text, "parsed.py", "exec"), {"__name__": "parsed"})
print((time.process_time() - start) * 1000)
"""


def cost(imports: str, task: str) -> float:
    """Return the CPU milliseconds of one parse, in a process of its own."""
    text = HEAD.format(imports=imports, tasks=TASKS, task=task)
    return printed_number(PROGRAM, text)


def main(repetitions: int) -> None:
    """Measure all in turn, so that a noisy minute hits each of them."""
    rounds = [{name: cost(*parts) for name, parts in FILES.items()} for _ in range(repetitions + 1)][1:]
    medians = {name: statistics.median(one[name] for one in rounds) for name in FILES}
    line: dict[str, Any] = {"benchmark": "dag_parse", "tasks": TASKS, "runs": len(rounds)}
    for name in FILES:
        values = [one[name] for one in rounds]
        line[name] = {
            "cpu_ms": [round(number, 1) for number in (medians[name], min(values), max(values))],
            "ratio": round(medians[name] / medians["standard operator"], 2),
        }
    print(json.dumps(line))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
