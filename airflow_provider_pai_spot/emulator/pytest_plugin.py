"""
The fixture `dlc_emulator` for tests of your own DAGs. Loading this plugin imports nothing heavy.

::

    @pytest.mark.dlc_emulator(clock="manual")     # optional: arguments of DlcEmulator
    def test_my_dag(dlc_emulator): ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_pai_spot.emulator import DlcEmulator

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known to --strict-markers."""
    config.addinivalue_line("markers", "dlc_emulator(**arguments): arguments of the dlc_emulator fixture")


@pytest.fixture
def dlc_emulator(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[DlcEmulator]:
    """Run a DLC emulator for one test, with the proxies of the environment off: the SDK ignores NO_PROXY."""
    from airflow_provider_pai_spot.emulator import DlcEmulator

    for variable in PROXY_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    marker = request.node.get_closest_marker("dlc_emulator")
    with DlcEmulator(**(marker.kwargs if marker else {})) as emulator:
        yield emulator
