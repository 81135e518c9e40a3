"""A corpus of jobs as DLC shows them, hostile ones included: each comes to its verdict, and each rule is needed."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import JobOutcome, Verdict
from airflow_provider_pai_spot.dlc.verdict import RULES, Rule, classify

HERE = Path(__file__).parent
JOBS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((HERE / "corpus").glob("*.json"))
}
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((HERE / "corpus.toml").read_text(encoding="utf-8"))


def judged(name: str, rules: tuple[Rule, ...] = RULES) -> JobOutcome:
    raw = JOBS[name]
    return classify(Job(raw), raw.get("Events", ()), rules, spot=EXPECTED[name].get("spot"))


def verdict_and_class(outcome: JobOutcome) -> tuple[str, str]:
    return outcome.verdict.value, outcome.cause.value if outcome.cause else ""


def test_each_job_has_an_expectation_and_a_mark_of_its_source() -> None:
    assert set(JOBS) == set(EXPECTED)
    assert len(JOBS) >= 70
    marks = {name: one["_note"].split(":")[0] for name, one in EXPECTED.items()}
    assert set(marks.values()) == {"documented", "observed", "assumed"}


@pytest.mark.parametrize("name", JOBS)
def test_a_job_comes_to_its_verdict_and_class(name: str) -> None:
    outcome, expected = judged(name), EXPECTED[name]
    assert (*verdict_and_class(outcome), outcome.rule) == (expected["verdict"], expected["cause"], expected["rule"])
    assert outcome.evidence
    assert outcome.confidence in ("documented", "observed", "assumed")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_without_any_one_rule_some_job_is_judged_wrongly(rule: Rule) -> None:
    others = tuple(one for one in RULES if one is not rule)
    wrong = [name for name in JOBS if verdict_and_class(judged(name, others)) != verdict_and_class(judged(name))]
    assert wrong
    assert {EXPECTED[name]["rule"] for name in wrong} == {rule.name}


@pytest.mark.parametrize("name", JOBS)
def test_a_verdict_fits_where_it_is_shown(name: str) -> None:
    shown = judged(name).to_dict()
    assert len(json.dumps(shown["evidence"])) <= 2_000
    assert "planted" not in json.dumps(shown).casefold()


def test_a_loss_is_told_by_pod_and_node() -> None:
    assert judged("one-of-sixteen-workers-evicted").evidence == (
        "pod worker-7 on cn-hangzhou.10.0.0.17 Evicted, exit code 143",
    )


def test_of_many_losses_a_few_are_named_and_the_others_counted() -> None:
    assert judged("nine-of-sixty-four-workers-evicted").evidence == (
        "pod worker-3 on cn-hangzhou.10.0.0.13 Evicted, exit code 143",
        "pod worker-4 on cn-hangzhou.10.0.0.14 Evicted, exit code 143",
        "and 7 more",
    )


LIVE = ("Creating", "Queuing", "Bidding", "EnvPreparing", "Running", "Restarting", "Stopping", "Hibernating", "")


@pytest.mark.parametrize("status", LIVE)
def test_nothing_is_decided_before_the_job_itself_is(status: str) -> None:
    for raw in JOBS.values():
        outcome = classify(Job({**raw, "Status": status}), raw.get("Events", ()), spot=True)
        assert (outcome.verdict, outcome.cause, outcome.rule) == (Verdict.UNKNOWN, None, "not_over")


DAMAGE = st.one_of(st.none(), st.just(""), st.integers(), st.just([]), st.just({}), st.just([None]), st.just({"a": []}))


@given(st.sampled_from(sorted(JOBS)), st.lists(st.tuples(st.integers(0, 20), DAMAGE), min_size=1, max_size=3))
def test_a_damaged_answer_is_judged_too_and_never_becomes_a_success(name: str, damage: list[tuple[int, Any]]) -> None:
    raw = dict(JOBS[name])
    keys = [key for key in raw if key != "Status"]
    for place, value in damage:
        raw[keys[place % len(keys)]] = value
    outcome = classify(Job(raw), spot=EXPECTED[name].get("spot"))
    assert (outcome.verdict is Verdict.SUCCEEDED) == (EXPECTED[name]["verdict"] == "succeeded")
    assert json.dumps(outcome.to_dict())
