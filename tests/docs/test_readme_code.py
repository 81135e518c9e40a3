"""Every block of code in the README does what the page says."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, Connection

from airflow_provider_pai_spot.attempts.task_jobs import SpotCalls
from airflow_provider_pai_spot.cli import main as cli
from airflow_provider_pai_spot.dlc.job_request import InvalidJobRequest, build_job_request
from airflow_provider_pai_spot.hooks import dlc_client
from airflow_provider_pai_spot.hooks.connection import ConnectionSettings
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator

KNOWN_LANGUAGES = {"python", "bash", "console", "text", "json", "dockerfile"}
MAKE_AND_OTHERS = ("make ", "pip ", "curl ")
CONNECTIONS: dict[str, dict[str, Any]] = {
    "AccessKey": {"credential_source": "auto", "has_access_key": True, "security_token": "", "role_arn": ""},
    "STS token": {"credential_source": "auto", "has_access_key": True, "security_token": "token"},
    "assume a RAM role": {"has_access_key": True, "role_arn": "acs:ram::1234567890123456:role/airflow"},
    "RRSA, through the VPC endpoint": {"credential_source": "rrsa", "network": "vpc", "has_access_key": False},
    "ECS RAM role": {"credential_source": "ecs_ram_role", "has_access_key": False},
    "CLI profile": {"credential_source": "profile", "has_access_key": False},
    "credentials URI": {"credential_source": "uri", "has_access_key": False},
    "default chain, and a proxy with more patience": {
        "credential_source": "auto",
        "has_access_key": False,
        "https_proxy": "http://proxy.example.com:3128",
        "connect_timeout": 15000,
        "read_timeout": 30000,
    },
}


def test_no_block_is_of_a_kind_that_nothing_checks(readme: Any) -> None:
    assert {block.language for block in readme.blocks} <= KNOWN_LANGUAGES


def test_a_python_block_runs(python_block: Any) -> None:
    namespace = run(python_block.text)
    for dag in [value for value in namespace.values() if isinstance(value, DAG)]:
        assert dag.tasks
        dag.check_cycle()


def test_the_first_dag_asks_for_what_it_says(readme: Any) -> None:
    dag = run(readme.blocks_of("python")[0].text)["dag"]
    [task] = dag.tasks
    assert isinstance(task, SubmitSpotJobOperator)
    request = build_job_request(task.job_arguments() | {"workspace_id": "1", "display_name": "nightly-train"})
    assert str(request.bid) == "0.4 of list price"
    assert request.checkpoint_mount == "/mnt/pai_spot/checkpoints"
    assert request.warnings == ()


def test_the_aimaster_settings_are_taken(readme: Any) -> None:
    [block] = [block for block in readme.blocks_of("python") if "AIMaster" in block.text]
    dag = run(readme.blocks_of("python")[0].text)["dag"]
    arguments = dag.get_task("train").job_arguments() | {"workspace_id": "1", "display_name": "nightly-train"}
    request = build_job_request(arguments | run(block.text))
    assert any("EnableErrorMonitoringInAIMaster" in warning for warning in request.warnings)
    with pytest.raises(InvalidJobRequest, match="Lingjun resources"):  # they need a network, and are told so
        build_job_request(arguments | {"ecs_spec": "ml.gu7xf.8xlarge-gu108"})


def test_each_connection_example_is_read_as_it_says(readme: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    [block] = readme.blocks_of("bash")
    examples = connection_examples(block.text)
    assert list(examples) == list(CONNECTIONS)
    for title, text in examples.items():
        settings = parsed(text, monkeypatch)
        expected = {"workspace_id": "12345", "protocol": "https", "unknown_extras": ()} | CONNECTIONS[title]
        assert {name: getattr(settings, name) for name in expected} == expected, title
        assert settings.region_id


def test_the_ram_policy_grants_what_tasks_call_in_both_spellings(readme: Any) -> None:
    [block] = readme.blocks_of("json")
    [statement] = json.loads(block.text)["Statement"]
    operations = {value for value in vars(dlc_client).values() if isinstance(value, dlc_client.Operation)}
    of_studio = {operation.action for operation in operations if operation.of_studio}
    called = {camel(name) for name in methods_of(SpotCalls)}
    dlc_s = called - of_studio
    assert set(statement["Action"]) == {f"{prefix}:{name}" for prefix in ("paidlc", "pai") for name in dlc_s}
    assert set(re.findall(r"`paistudio:(\w+)`", readme.text)) == called & of_studio
    [more] = re.findall(r"The hook offers more .*", readme.text)
    assert set(re.findall(r"`(\w+)`", more)) == {operation.action for operation in operations} - called


def test_every_shown_call_of_pai_spot_parses(readme: Any) -> None:
    calls = [line for line in shell_lines(readme) if line.startswith("pai-spot ")]
    calls += [cell.strip("`") for cell in readme.table("command", "example").column("example")]
    assert calls
    for call in calls:
        arguments = shlex.split(call)[1:]
        assert cli._parser(arguments[0]).parse_args(arguments)


def test_every_other_shown_command_is_of_a_known_kind(readme: Any, checkout: Path) -> None:
    targets = set(re.findall(r"^(\w+):", (checkout / "Makefile").read_text(), re.MULTILINE))
    others = [line for line in shell_lines(readme) if not line.startswith("pai-spot ")]
    assert all(line.startswith(MAKE_AND_OTHERS) for line in others)
    assert {line.split()[1] for line in others if line.startswith("make ")} <= targets
    assert set(re.findall(r"`make (\w+)", readme.text)) <= targets


def test_switches_shown_in_the_text_are_behaviours(readme: Any) -> None:
    from airflow_provider_pai_spot.cli.emulator import behaviour_switch
    from airflow_provider_pai_spot.emulator.behaviours import Behaviours

    shown = re.findall(r"`--behaviour ([^`]+)`", readme.text)
    assert shown
    Behaviours(dict(behaviour_switch(text) for text in shown))


def test_the_fixture_example_runs_and_its_log_is_the_one_shown(readme: Any, home_with_the_dag: Path) -> None:
    """The whole story of the page's first DAG: lost once, submitted again, done; the log lines are those shown."""
    environment = os.environ | {
        "AIRFLOW_HOME": str(home_with_the_dag),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home_with_the_dag / "dags"),
        "PYTHONPATH": os.pathsep.join([str(home_with_the_dag / "dags"), *filter(None, sys.path)]),
    }
    airflow(environment, "db", "migrate")
    command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", "test_nightly.py"]
    ran = subprocess.run(
        command, check=False, cwd=home_with_the_dag, env=environment, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-2000:]
    printed = {without_particulars(line) for line in (ran.stdout + ran.stderr).splitlines()}
    for line in shown_log(readme):
        assert any(without_particulars(line) in one for one in printed), line


@pytest.fixture
def home_with_the_dag(readme: Any, tmp_path: Path) -> Path:
    """An Airflow home with the first DAG of the page, and the page's test beside it."""
    first, *_ = readme.blocks_of("python")
    [example] = [block for block in readme.blocks_of("python") if "def test_" in block.text]
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "nightly.py").write_text(first.text)
    (tmp_path / "test_nightly.py").write_text(example.text)
    return tmp_path


def run(code: str) -> dict[str, Any]:
    """Run one block by itself and return its names."""
    namespace: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), namespace)  # noqa: S102 - the page's own code
    return {name: value for name, value in namespace.items() if not name.startswith("__")}


def connection_examples(block: str) -> dict[str, str]:
    """Return title -> value of AIRFLOW_CONN_PAI_DLC_DEFAULT, as a shell reads it."""
    found = re.findall(r"^# (.*)\nexport AIRFLOW_CONN_PAI_DLC_DEFAULT=(.*)$", block, re.MULTILINE)
    assert len(found) * 2 == len(block.splitlines())
    return {title: "".join(shlex.split(value)) for title, value in found}


def parsed(text: str, monkeypatch: pytest.MonkeyPatch) -> ConnectionSettings:
    """Read a connection the way a task does: from its environment variable, by the hook."""
    monkeypatch.setenv("AIRFLOW_CONN_PAI_DLC_DEFAULT", text)
    assert Connection.get("pai_dlc_default").conn_type == "pai_dlc"
    return PaiDlcHook().settings


def methods_of(protocol: type) -> set[str]:
    return {name for kind in protocol.__mro__ for name in vars(kind) if not name.startswith("_")}


def camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def shell_lines(readme: Any) -> list[str]:
    """Return what a reader would type, without comments."""
    lines = [line for block in readme.blocks_of("console") for line in block.text.splitlines()]
    return [line.removeprefix("$ ").split("  #")[0].strip() for line in lines if line.startswith("$ ")]


def shown_log(readme: Any) -> list[str]:
    """Return the lines of the task's log that the page shows."""
    [block] = [block for block in readme.blocks_of("text") if "resubmitting: revocation" in block.text]
    return block.text.splitlines()


def without_particulars(line: str) -> str:
    """Leave out ids, numbers and how long something took."""
    line = re.sub(r"\x1b\[[0-9;]*m", "", line)
    line = re.sub(r"\bdlc[0-9a-z]{13}\b", "dlc*", line)
    return re.sub(r"\d+(?:\.\d+)?(?: (?:s|min|h|d))*", "N", line)


def airflow(environment: dict[str, str], *arguments: str) -> None:
    command = [sys.executable, "-m", "airflow", *arguments]
    subprocess.run(command, check=True, capture_output=True, env=environment, timeout=300)
