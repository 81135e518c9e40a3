"""What a DAG parse pays for naming us: no SDK, no HTTP client, no server framework."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

ROOMS = [
    "airflow_provider_pai_spot.operators.spot_job",
    "airflow_provider_pai_spot.sensors.spot_job",
    "airflow_provider_pai_spot.triggers.spot_job",
    "airflow_provider_pai_spot.links.pai_console",
    "airflow_provider_pai_spot.hooks.pai_dlc",
    "airflow_provider_pai_spot.recovery",
    "airflow_provider_pai_spot.provider_info",
    "airflow_provider_pai_spot.emulator.pytest_plugin",
]
HEAVY = ("alibabacloud", "Tea", "darabonba", "aiohttp", "requests", "fastapi", "uvicorn", "apscheduler")

PROGRAM = """
import json, sys
import airflow.sdk
before = set(sys.modules)
import {room}
assert "{room}" in sys.modules
print(json.dumps(sorted(set(sys.modules) - before)))
"""


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.split(".", 1)[1])
def test_importing_a_room_loads_nothing_heavy(room: str) -> None:
    command = [sys.executable, "-c", PROGRAM.format(room=room)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    loaded = json.loads(printed.splitlines()[-1])
    assert [name for name in loaded if name.split(".")[0].startswith(HEAVY)] == []
