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
    items.sort(key=lambda item: not _shares_airflow(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Run tests of one file, and all that share the one real Airflow, in the same process."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return "airflow" if _shares_airflow(nodeid) else nodeid.split("::", 1)[0]

    return ByFile(config, log)


def _shares_airflow(nodeid: str) -> bool:
    return nodeid.startswith("tests/end_to_end/")
