"""What the page says about verdicts: each cause, what follows, and rules of one's own that do what is said."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.judging import judge, rules_in_force
from airflow_provider_pai_spot.cli.explain.reading import what_next
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import Cause, Verdict
from airflow_provider_pai_spot.dlc.verdict import RULES

CodeIn = Callable[[str], list[str]]
SECTION = "Why did it end?"


def test_each_cause_is_there_and_what_follows_it(readme: Any, code_in: CodeIn, checkout: Path) -> None:
    table = readme.table("cause", "what happened")
    shown = {code_in(cause)[0]: then for cause, _, then in table.rows}
    assert list(shown) == [cause.value for cause in Cause]
    expected = tomllib.loads((checkout / "tests/dlc/corpus.toml").read_text())
    follows: dict[str, set[str]] = {}
    for name, one in expected.items():
        job = Job(json.loads((checkout / f"tests/dlc/corpus/{name}.json").read_text()))
        outcome = judge(job, job.raw.get("Events", ()), spot=one.get("spot"))
        if outcome.cause:
            follows.setdefault(outcome.cause.value, set()).add(what_next(job, outcome).action)
    assert follows == {cause: {then} for cause, then in shown.items()}


def test_the_rules_shown_do_what_the_page_says(readme: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [block] = [block for block in readme.blocks_of("python") if "RULES = [" in block.text]
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package" / "rules.py").write_text(block.text)
    monkeypatch.syspath_prepend(tmp_path)
    [path] = re.findall(r"`\[pai_spot\] verdict_rules = ([\w.]+)`", readme.section(SECTION))
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__VERDICT_RULES", path)
    pod = {"PodId": "dlc1-worker-3", "NodeName": "cn-hangzhou.10.1.2.3", "StatusDetail": {"ExitCode": 43}}
    outcome = judge(Job({"JobId": "dlc1", "Status": "Failed", "Pods": [pod]}))
    assert len(rules_in_force()) == len(RULES) + 1
    assert (outcome.verdict, outcome.cause) == (Verdict.REVOKED, Cause.REVOKED)
    assert outcome.evidence == ("pod worker-3 on cn-hangzhou.10.1.2.3: exit code 43",)


def test_the_pod_shown_is_told_as_shown(readme: Any, code_in: CodeIn) -> None:
    pod = {"PodId": "dlc1-worker-7", "NodeName": "cn-hangzhou.10.1.2.3", "SubStatus": "Evicted"}
    [line] = judge(Job({"Status": "Failed", "Pods": [pod]}), spot=True).evidence
    assert line in code_in(readme.section(SECTION))
