"""What Settings ask of AIMaster."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_pai_spot.emulator.aimaster import monitoring_flags, restarts_allowed, restarts_pods_alone


@pytest.mark.parametrize(
    ("arguments", "flags"),
    [
        ("", {}),
        ("--enable-job-restart=True", {"enable-job-restart": "True"}),
        ("--enable-job-restart True", {"enable-job-restart": "True"}),
        ("--a=1 --b 2 --c", {"a": "1", "b": "2", "c": ""}),
        ("--a= --b=2", {"a": "", "b": "2"}),
    ],
)
def test_flags_are_read_in_both_spellings(arguments: str, flags: dict[str, str]) -> None:
    assert monitoring_flags(arguments) == flags


@pytest.mark.parametrize(
    ("switched_on", "arguments", "allowed"),
    [
        (True, "--enable-job-restart=True", 3),
        (True, "--enable-job-restart true --max-num-of-job-restart=10", 10),
        (True, "--max-num-of-job-restart=10", 0),
        (True, "--enable-job-restart=False --max-num-of-job-restart=10", 0),
        (True, None, 0),
        (False, "--enable-job-restart=True", 0),
        (None, "--enable-job-restart=True", 0),
    ],
)
def test_restarts_need_both_switches(switched_on: Any, arguments: Any, allowed: int) -> None:
    settings = {"EnableErrorMonitoringInAIMaster": switched_on, "ErrorMonitoringArgs": arguments}
    assert restarts_allowed(settings, default=3) == allowed


@pytest.mark.parametrize(
    ("arguments", "alone"),
    [("--job-execution-mode=Async", True), ("--job-execution-mode Sync", False), ("", False)],
)
def test_only_async_mode_restarts_pods_alone(arguments: str, alone: bool) -> None:
    assert restarts_pods_alone({"ErrorMonitoringArgs": arguments}) is alone
