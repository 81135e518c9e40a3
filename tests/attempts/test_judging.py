"""Your own rules: where they come from, when they are imported, and what happens if they are wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.commands import Do, ReadEvents, ReadPodEvents
from airflow_provider_pai_spot.attempts.judging import (
    InvalidVerdictRules,
    judge,
    judging,
    pods_to_ask,
    rules_for_live_job,
    rules_in_force,
)
from airflow_provider_pai_spot.attempts.task_jobs import Ended, Waiting
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import Cause, JobOutcome, Verdict
from airflow_provider_pai_spot.dlc.verdict import RULES
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan
from airflow_provider_pai_spot.exceptions import PaiDlcUnavailable
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

IMPORTS = """
from airflow_provider_pai_spot.dlc.outcome import Cause, JobOutcome, Verdict
from airflow_provider_pai_spot.dlc.verdict import Rule
"""
EXIT_43 = """
def exit_43(scene):
    return [f"pod {pod.short_id} exit code 43" for pod in scene.job.pods if pod.exit_code == 43]

RULES = [Rule(name="exit_43", verdict=Verdict.REVOKED, cause=Cause.REVOKED, sign=exit_43)]
"""
FAILED: dict[str, Any] = {
    "JobId": "dlc1",
    "Status": "Failed",
    "Pods": [{"PodId": "dlc1-worker-0", "Status": "Failed", "StatusDetail": {"ExitCode": 43}}],
}
WriteRules = Callable[[str], str]


@pytest.fixture
def own_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> WriteRules:
    """Return a function that writes a module and makes its RULES the configured ones; it returns the module's name."""

    def write(code: str) -> str:
        name = f"rules_{abs(hash(request.node.nodeid)):x}"
        (tmp_path / f"{name}.py").write_text(IMPORTS + code)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv("AIRFLOW__PAI_SPOT__VERDICT_RULES", f"{name}.RULES")
        return name

    return write


def test_without_the_setting_the_rules_are_ours() -> None:
    assert rules_in_force() == RULES
    assert judge(Job(FAILED)).rule == "other_exit_code"


def test_an_own_rule_judges_a_failed_job_and_is_imported_once(own_rules: WriteRules) -> None:
    own_rules(EXIT_43)
    outcome = judge(Job(FAILED))
    assert (outcome.verdict, outcome.cause, outcome.rule) == (Verdict.REVOKED, Cause.REVOKED, "exit_43")
    assert outcome.evidence == ("pod worker-0 exit code 43",)
    assert rules_in_force()[4] is rules_in_force()[4]
    assert judge(Job({**FAILED, "Status": "Running"})).rule == "not_over"


def test_a_single_line_of_evidence_may_be_a_text_and_none_is_nothing(own_rules: WriteRules) -> None:
    own_rules(
        'def say(scene):\n    return "as it is" if scene.spot else None\n'
        'RULES = (Rule(name="say", verdict=Verdict.FAILED, cause=Cause.PLATFORM, sign=say),)'
    )
    assert judge(Job(FAILED), spot=True).evidence == ("as it is",)
    assert judge(Job(FAILED), spot=False).rule == "other_exit_code"


def test_a_rule_that_raises_is_skipped_and_said_so(own_rules: WriteRules, caplog: pytest.LogCaptureFixture) -> None:
    own_rules(
        'def broken(scene):\n    return [scene.job.raw["NoSuchKey"]]\n'
        'RULES = [Rule(name="broken", verdict=Verdict.REVOKED, cause=Cause.REVOKED, sign=broken)]'
    )
    assert judge(Job({**FAILED, "ReasonCode": "InvalidParameter"})).rule == "reason_code"
    assert "dlc1: rule broken of [pai_spot] verdict_rules raised" in caplog.text
    assert "NoSuchKey" in caplog.text


WRONG = {
    "no such name": ("RULEZ = []", "cannot be imported.*RULES.*workers, triggerers"),
    "a module that raises": ("raise RuntimeError('no driver')", r"cannot be imported \(RuntimeError: no driver\)"),
    "no sequence": ("RULES = 5", "a list or tuple of Rule, it is 5"),
    "no rules": ("RULES = [len]", "a list or tuple of Rule, it is a list of 1"),
    "a name of ours": (
        'RULES = [Rule(name="stopped", verdict=Verdict.FAILED, cause=None, sign=list)]',
        "the name 'stopped' is taken",
    ),
    "a verdict in words": (
        'RULES = [Rule(name="mine", verdict="lost", cause=None, sign=list)]',
        "verdict of its rule 'mine' is 'lost'",
    ),
    "a cause in words": (
        'RULES = [Rule(name="mine", verdict=Verdict.FAILED, cause="gpu", sign=list)]',
        "cause of its rule 'mine' is 'gpu'",
    ),
    "no sign": ('RULES = [Rule(name="mine", verdict=Verdict.FAILED, cause=None, sign=5)]', "sign of its rule .* is 5"),
}


@pytest.mark.parametrize(("code", "said"), WRONG.values(), ids=WRONG)
def test_wrong_rules_are_refused_by_name_of_the_option(own_rules: WriteRules, code: str, said: str) -> None:
    name = own_rules(code)
    with pytest.raises(InvalidVerdictRules, match=rf"(?s)^\[pai_spot\] verdict_rules is '{name}.RULES': .*{said}"):
        rules_in_force()


@pytest.mark.parametrize("path", ["RULES", "no_such_package_of_rules.RULES"])
def test_a_path_that_leads_nowhere_is_refused(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__VERDICT_RULES", path)
    with pytest.raises(InvalidVerdictRules, match="import"):
        rules_in_force()


PARSE = """
from airflow.sdk import DAG
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor
with DAG("d", schedule=None) as dag:
    job = SubmitSpotJobOperator(
        task_id="t", image="i", user_command="c", ecs_spec="ecs.g7.xlarge", spot_discount_limit=0.4
    )
    SpotJobSensor(task_id="s", job_id=job.output)
print("parsed")
"""


def test_parsing_a_dag_imports_no_rules(own_rules: WriteRules, tmp_path: Path) -> None:
    own_rules("raise SystemExit('imported at parse time')")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    ran = subprocess.run([sys.executable, "-c", PARSE], env=environment, capture_output=True, text=True, check=False)
    assert ran.stdout.splitlines()[-1:] == ["parsed"], ran.stderr


def test_a_try_that_begins_with_a_lost_job_reads_its_events(
    emulator: DlcEmulator, new_task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PaiDlcHook, "get_job_events", lambda _hook, _job_id: ["pod was preempted"])
    emulator.control.plan(JobPlan(run_seconds=60, exit_code=143))
    task = new_task(run_id="told-by-an-event")
    task.begin().begin()
    emulator.control.advance(600)
    ended = task.begin(2).begin()
    assert isinstance(ended, Ended)
    assert (ended.outcome.verdict, ended.outcome.rule) == (Verdict.REVOKED, "event_preempted")


def test_events_of_a_job_that_is_not_over_are_not_asked_for() -> None:
    running = Job({**FAILED, "Status": "Running"})
    with pytest.raises(StopIteration) as end:
        next(judging(running))
    assert end.value.value.rule == "not_over"


class Told:
    """Answers what judging asks: events by the job's or pod's id, nothing of any other."""

    def __init__(self, **events: Any) -> None:
        self.events: dict[str, Any] = {key.replace("_", "-"): lines for key, lines in events.items()}
        self.asked: list[str] = []

    def judge(self, raw: dict[str, Any]) -> JobOutcome:
        asking, reply = judging(Job(raw)), None
        while True:
            try:
                command = asking.send(reply)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            reply = command.work() if isinstance(command, Do) else self._lines(command)

    def _lines(self, command: Any) -> Any:
        assert isinstance(command, ReadEvents | ReadPodEvents)
        name = command.pod_id if isinstance(command, ReadPodEvents) else command.job_id
        self.asked.append(name)
        return self.events.get(name, [])


def worker(number: int, status: str = "Failed", end: str = "", role: str = "worker") -> dict[str, Any]:
    return {"PodId": f"dlc1-{role}-{number}", "Type": role, "Status": status, "GmtFinishTime": end}


IN_PLACE_RULE = "pod_failed_in_place"
NO_WORD = {"JobId": "dlc1", "Status": "Failed", "ReasonCode": "", "ReasonMessage": ""}
PULL = "2026-01-01T00:20:00Z Failed to pull image https://robot:planted@hub/x: ErrImagePull"
MOUNT = "2026-01-01T00:20:00Z FailedMount: MountVolume.SetUp for volume x: timed out"


@pytest.mark.parametrize(("line", "rule"), [(PULL, "image_pull"), (MOUNT, "mount")])
def test_what_only_a_pod_s_events_tell_is_heard(line: str, rule: str) -> None:
    told = Told(dlc1=["2026-01-01T00:10:00Z Created pod: dlc1-worker-0"], dlc1_worker_0=[line])
    outcome = told.judge({**NO_WORD, "Pods": [worker(0, "Pending")]})
    assert (outcome.cause, outcome.rule) == (Cause.ENVIRONMENT, rule)
    assert told.asked == ["dlc1", "dlc1-worker-0"]
    assert "planted" not in str(outcome)


IN_PLACE = {**NO_WORD, "Pods": [worker(0) | {"SubStatus": "Normal"}]}
PREEMPTED = "2026-01-01T00:20:00Z Pod dlc1-worker-0 has been preempted"


@pytest.mark.parametrize(
    ("line", "rule"), [(PREEMPTED, "event_preempted"), (PULL, "image_pull"), (MOUNT, "mount"), ("", IN_PLACE_RULE)]
)
def test_the_job_s_events_may_explain_a_pod_of_which_nothing_but_its_failure_is_known(line: str, rule: str) -> None:
    told = Told(dlc1=[line])
    bid = [{"Type": "Worker", "SpotSpec": {"SpotDiscountLimit": 0.4}}]
    assert told.judge({**IN_PLACE, "JobSpecs": bid}).rule == rule
    assert told.asked == ["dlc1"]


def test_of_many_pods_the_two_that_failed_first_are_asked() -> None:
    pods = [
        worker(0, "Succeeded", "2026-01-01T01:00:00Z"),
        worker(1, "Running"),
        worker(2),
        worker(3, end="2026-01-01T03:00:00Z"),
        worker(4, end="2026-01-01T02:00:00Z"),
        worker(0, end="2026-01-01T00:30:00Z", role="aimaster"),
        {"Status": "Failed", "GmtFinishTime": "2026-01-01T00:30:00Z"},
    ]
    told = Told()
    assert told.judge({**NO_WORD, "Pods": pods}).rule == "no_rule"
    assert told.asked == ["dlc1", "dlc1-worker-4", "dlc1-worker-3"]
    assert [pod.pod_id for pod in pods_to_ask(Job({"Pods": pods[:3]}))] == ["dlc1-worker-2", "dlc1-worker-1"]


def test_pods_are_not_asked_where_the_job_s_own_events_tell() -> None:
    told = Told(dlc1=[PULL])
    assert told.judge({**NO_WORD, "Pods": [worker(0)]}).rule == "image_pull"
    assert told.asked == ["dlc1"]


def test_events_that_cannot_be_read_are_none() -> None:
    told = Told(dlc1=PaiDlcUnavailable("down"), dlc1_worker_0=PaiDlcUnavailable("down"), dlc1_worker_1=[PULL])
    assert told.judge({**NO_WORD, "Pods": [worker(0), worker(1)]}).rule == "image_pull"
    assert Told(dlc1=PaiDlcUnavailable("down")).judge({**NO_WORD, "Pods": [worker(0)]}).rule == "no_rule"


def test_wrong_rules_submit_nothing_and_leave_a_job_that_runs_to_the_built_in_ones(
    new_task: Any, kept_log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = new_task(run_id="wrong-rules")
    live = task.begin().begin()
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__VERDICT_RULES", "no_such_package_at_all.RULES")
    assert rules_for_live_job(kept_log) == RULES
    [told] = [line for line in kept_log.lines if line.startswith("ERROR")]
    assert "verdict_rules is 'no_such_package_at_all.RULES': it cannot be imported" in told
    assert judge(Job(FAILED)).rule == "other_exit_code"
    assert isinstance(live, Waiting)
    assert task.begin(2).begin() == live
    with pytest.raises(InvalidVerdictRules):
        task.begin(2).submit()
    assert [job["JobId"] for job in task.jobs()] == [live.job_id]
