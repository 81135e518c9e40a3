"""A wrong `[pai_spot] verdict_rules` keeps a first job from being submitted, and ends the watching of none."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.judging import InvalidVerdictRules
from airflow_provider_pai_spot.operators.flow import OperatorFlow


def checks(try_number: int, newest: object) -> None:
    flow: Any = object.__new__(OperatorFlow)
    flow.log = logging.getLogger("pai-spot-test")
    flow.moment = SimpleNamespace(try_number=try_number)
    flow.jobs = SimpleNamespace(ledger=SimpleNamespace(newest=newest))
    flow._check_rules()


@pytest.mark.parametrize(("try_number", "newest"), [(1, "job"), (2, "job"), (2, None)])
def test_only_a_first_try_without_a_job_is_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, try_number: int, newest: object
) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__VERDICT_RULES", "no_such_package_at_all.RULES")
    with caplog.at_level(logging.ERROR, "pai-spot-test"):
        checks(try_number, newest)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    with pytest.raises(InvalidVerdictRules):
        checks(1, None)
