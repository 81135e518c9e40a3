"""
A DLC service on your machine, for the unmodified vendor SDK.

::

    from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan

    with DlcEmulator(clock="manual") as emulator:
        emulator.control.plan(JobPlan(run_seconds=600, revoke_after=120))
        ...                                     # talk to emulator.endpoint with the vendor SDK
        emulator.control.advance(300)           # five minutes pass at once

This room stands apart: it imports nothing else of the package, so that a bug shared with the provider cannot
cancel itself out in a test. What is known and what is guessed about DLC: `behaviours`.

=========================  ==================================================================
module                     what it knows
=========================  ==================================================================
`emulator`, `main`         start and end a service; in Python, and as a program
`server`, `gate`           sockets and threads; who calls, scripted faults
`routes`, `wire`           parse requests, render answers; no decisions
`service`, `validation`    decide what an operation does, and what CreateJob refuses
`simulation`, `ending`     what happens to jobs as time passes, and how each ends
`lifecycle`                which status follows which signal; pure
`market`, `capacity`       prices, stock, who wins and who loses a machine
`behaviours`               the table of everything documented, observed or assumed
`control`, `client`        play the cloud: plans, revocations, prices, faults, time
=========================  ==================================================================
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_pai_spot.emulator.behaviours import BEHAVIOURS, Behaviour
    from airflow_provider_pai_spot.emulator.client import EmulatorClient
    from airflow_provider_pai_spot.emulator.clock import ManualClock, RealClock, ScaledClock
    from airflow_provider_pai_spot.emulator.control import EmulatorControl
    from airflow_provider_pai_spot.emulator.emulator import DlcEmulator
    from airflow_provider_pai_spot.emulator.lifecycle import Phases
    from airflow_provider_pai_spot.emulator.market import MarketModel
    from airflow_provider_pai_spot.emulator.plans import JobPlan

_HOMES = {
    "BEHAVIOURS": "behaviours",
    "Behaviour": "behaviours",
    "DlcEmulator": "emulator",
    "EmulatorClient": "client",
    "EmulatorControl": "control",
    "JobPlan": "plans",
    "ManualClock": "clock",
    "MarketModel": "market",
    "Phases": "lifecycle",
    "RealClock": "clock",
    "ScaledClock": "clock",
}

__all__ = [
    "BEHAVIOURS",
    "Behaviour",
    "DlcEmulator",
    "EmulatorClient",
    "EmulatorControl",
    "JobPlan",
    "ManualClock",
    "MarketModel",
    "Phases",
    "RealClock",
    "ScaledClock",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for: FastAPI and uvicorn cost nothing to whoever needs neither."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
