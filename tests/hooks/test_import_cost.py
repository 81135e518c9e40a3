"""A DAG parse pays for no SDK."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = ("alibabacloud", "Tea", "darabonba", "aiohttp", "requests", "fastapi", "uvicorn", "tenacity")
SCRIPT = f"""
import json, sys
import airflow.sdk
import airflow.sdk.bases.hook, airflow.sdk.bases.operatorlink, airflow.sdk.exceptions
before = set(sys.modules)
import airflow_provider_pai_spot.hooks.pai_dlc, airflow_provider_pai_spot.links.pai_console
import airflow_provider_pai_spot.provider_info
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
PaiDlcHook("not_looked_up", region_id="cn-hangzhou")
new = set(sys.modules) - before
heavy = sorted(name for name in new if name.split(".")[0].startswith({HEAVY!r}))
print(json.dumps([heavy, sorted(name for name in new if not name.startswith("airflow_provider_pai_spot"))]))
"""


def test_hook_links_and_metadata_load_no_sdk_and_almost_nothing_else() -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    heavy, others = json.loads(run.stdout.splitlines()[-1])
    assert heavy == []
    assert len(others) <= 15, others
