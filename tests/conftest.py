"""An Airflow home of our own, set before anything imports Airflow, and an environment without surprises."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# The table that DAG files are made from, which Airflow finds beside them, is walked by one test and told by another.
sys.path.append(str(Path(__file__).parent / "end_to_end" / "dags"))

_BREAKING = ("what_happens_to_the_job", "when_airflow_dies", "logs_on_airflow", "two_tasks_after_a_loss")
"""Files of end_to_end that end tasks in every way, or end parts of their Airflow."""

_HOME = Path(tempfile.mkdtemp(prefix="pai-spot-tests-"))
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
(_HOME / "dags").mkdir()

for _name in [name for name in os.environ if name.startswith(("AIRFLOW_", "ALIBABA_CLOUD_"))]:
    del os.environ[_name]
# The vendor SDK obeys these for loopback too, and NO_PROXY not at all.
for _name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
    os.environ.pop(_name, None)
os.environ.update(
    {
        "AIRFLOW_HOME": str(_HOME),
        "AIRFLOW__CORE__DAGS_FOLDER": str(_HOME / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "ALIBABA_CLOUD_ECS_METADATA_DISABLED": "true",
    }
)

# No deadlines: machines that run tests are noisy. The same examples in every run: a failure is one that comes again.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that the other process of pytest-xdist works through the rest meanwhile."""
    items.sort(key=lambda item: _airflow_of(item.nodeid) is None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Run tests of one file, and all that share a real Airflow, in the same process; two of these can wait at once."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return _airflow_of(nodeid) or nodeid.split("::", 1)[0]

    return ByFile(config, log)


def _airflow_of(nodeid: str) -> str | None:
    """Return which real Airflow a test needs, None for none: of two halves that take about as long."""
    if not nodeid.startswith("tests/end_to_end/"):
        return None
    return "broken airflow" if any(name in nodeid for name in _BREAKING) else "airflow"
