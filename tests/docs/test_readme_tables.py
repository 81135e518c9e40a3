"""Every table in the README has what the code has: all of it, nothing else, and the same defaults."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_pai_spot import exceptions
from airflow_provider_pai_spot.attempts import identity, report
from airflow_provider_pai_spot.attempts.log_notes import XCOM_LOG
from airflow_provider_pai_spot.cli.main import COMMANDS
from airflow_provider_pai_spot.dlc import body
from airflow_provider_pai_spot.dlc.progress import MAX_PROGRESS_BYTES, last_progress
from airflow_provider_pai_spot.hooks.connection import CREDENTIAL_SOURCES, DEFAULT_CONSOLE_BASE_URL, EXTRA_FIELDS
from airflow_provider_pai_spot.links.pai_console import JOB_CONSOLE_KEY, PaiJobLink
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator
from airflow_provider_pai_spot.provider_info import get_provider_info
from airflow_provider_pai_spot.recovery import SpotRecovery
from airflow_provider_pai_spot.recovery.spot_recovery import OnPendingTimeout
from airflow_provider_pai_spot.sensors.spot_job import SpotJobSensor

CodeIn = Callable[[str], list[str]]
LONGEST_README = 600
REQUIRED = "required"
OPTIONS = get_provider_info()["config"]["pai_spot"]["options"]


def own_arguments(of: type) -> dict[str, Any]:
    """Return the keyword arguments that a class adds to Airflow's, with their defaults."""
    parameters = inspect.signature(of.__init__).parameters.values()  # type: ignore[misc]
    return {
        one.name: REQUIRED if one.default is one.empty else one.default
        for one in parameters
        if one.kind is one.KEYWORD_ONLY
    }


def value_of(cell: str) -> Any:
    """Return the Python value that a default cell shows."""
    if cell == REQUIRED:
        return REQUIRED
    text = cell.strip("`")
    return eval(text, {"timedelta": timedelta}) if "timedelta" in text else ast.literal_eval(text)  # noqa: S307 - the page's


@pytest.mark.parametrize(
    ("heading", "of"), [("SubmitSpotJobOperator", SubmitSpotJobOperator), ("SpotJobSensor", SpotJobSensor)]
)
def test_each_argument_is_there_with_its_default(readme: Any, heading: str, of: type) -> None:
    section = readme.section(heading)
    shown = {
        name: value_of(default) for name, default in re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", section, re.MULTILINE)
    }
    assert shown == own_arguments(of)


def test_the_last_eleven_arguments_are_those_that_are_not_templated(readme: Any) -> None:
    rows = re.findall(r"^\| `(\w+)` \|", readme.section("SubmitSpotJobOperator"), re.MULTILINE)
    templated = set(SubmitSpotJobOperator.template_fields)
    assert "All but the last eleven are templated (`pai_dlc_conn_id`, too)" in readme.text
    assert set(rows[-11:]) | templated >= set(rows)
    assert templated & set(rows[-11:]) <= {"pai_dlc_conn_id"}


def test_each_argument_of_the_recovery_is_there_with_its_default(readme: Any, code_in: CodeIn) -> None:
    table = readme.table("`SpotRecovery`", "default")
    shown = {code_in(row[0])[0]: eval(code_in(row[1])[0]) for row in table.rows}  # noqa: S307 - the page's own values
    assert shown == {field.name: field.default for field in dataclasses.fields(SpotRecovery)}


def test_each_answer_to_a_pending_timeout_is_named(readme: Any) -> None:
    [row] = [row for row in readme.table("`SpotRecovery`", "default").rows if "on_pending_timeout" in row[0]]
    assert set(re.findall(r'`"(\w+)"`', " ".join(row))) == set(get_args(OnPendingTimeout))


def test_each_field_of_the_connection_is_there(readme: Any, code_in: CodeIn) -> None:
    fields = [name for cell in readme.table("field", "meaning").column("field") for name in code_in(cell)]
    assert sorted(fields) == sorted(EXTRA_FIELDS)
    assert f"`{DEFAULT_CONSOLE_BASE_URL}`" in readme.text
    [sources] = [row[1] for row in readme.table("field", "meaning").rows if row[0] == "`credential_source`"]
    assert tuple(code_in(sources)) == CREDENTIAL_SOURCES


def test_each_credential_source_is_explained(readme: Any) -> None:
    how = " ".join(readme.table("credentials", "how").column("how"))
    assert set(re.findall(r"`credential_source=(\w+)`", how)) == set(CREDENTIAL_SOURCES) - {"auto", "access_key"}


def test_each_variable_for_credentials_is_one_that_the_sdk_reads(readme: Any) -> None:
    from alibabacloud_credentials.utils import auth_util

    known = set(re.findall(r"ALIBABA_CLOUD_\w+", Path(auth_util.__file__).read_text()))
    shown = set(re.findall(r"`(ALIBABA_CLOUD_\w+)`", readme.text))
    shown |= {f"ALIBABA_CLOUD{rest}" for rest in re.findall(r"`…(_\w+)`", readme.text)}
    assert shown
    assert shown <= known


def test_each_option_is_there_with_its_default(readme: Any, code_in: CodeIn) -> None:
    table = readme.table("`[pai_spot]` option", "default")
    shown = {code_in(row[0])[0]: row[1].strip("`").strip() for row in table.rows}
    assert shown == {name: option["default"] for name, option in OPTIONS.items()}


def test_each_exception_is_there_and_whether_airflow_retries_it(readme: Any, code_in: CodeIn) -> None:
    table = readme.table("exception", "retried by Airflow")
    shown = {name: row[1] for row in table.rows for name in code_in(row[0])}
    ours = {
        name: kind
        for name, kind in vars(exceptions).items()
        if isinstance(kind, type) and issubclass(kind, exceptions.PaiSpotError)
    }
    assert shown == {name: "no" if issubclass(kind, AirflowFailException) else "yes" for name, kind in ours.items()}


def test_each_xcom_is_there(readme: Any, code_in: CodeIn) -> None:
    shown = {code_in(cell)[0] for cell in readme.table("XCom", "of").column("XCom")}
    pushed = {getattr(report, name) for name in dir(report) if name.startswith("XCOM_")}
    assert shown == {"return_value", JOB_CONSOLE_KEY, XCOM_LOG, *pushed}
    assert f'"{PaiJobLink.name}"' in readme.text


def test_each_variable_that_a_command_sees_is_there(readme: Any, code_in: CodeIn) -> None:
    table = readme.table("variable", "value")
    shown = {name for cell in table.column("variable") for name in code_in(cell)}
    assert shown == {getattr(identity, name) for name in dir(identity) if name.startswith("ENV_")}
    assert f"`{body.CHECKPOINT_MOUNT}`" in readme.text


def test_the_progress_line_shown_is_one(readme: Any) -> None:
    [line] = re.findall(r"`(PAI_SPOT_PROGRESS .*?)`", readme.text)
    assert last_progress([line]) == {"step": 60, "loss": 0.2}
    assert f"{MAX_PROGRESS_BYTES:,} characters" in readme.text


def test_each_command_is_there(readme: Any, code_in: CodeIn) -> None:
    assert [code_in(cell)[0] for cell in readme.table("command", "example").column("command")] == list(COMMANDS)


def test_a_command_that_does_not_exist_is_not_promised(readme: Any) -> None:
    assert set(re.findall(r"pai-spot ([a-z]+)", readme.text)) <= set(COMMANDS)


def test_each_room_exists(contributing: Any, code_in: CodeIn, checkout: Path) -> None:
    paths = [path for cell in contributing.table("to change", "open").column("open") for path in code_in(cell)]
    assert [path for path in paths if not (checkout / path).exists()] == []


def test_each_target_is_in_the_makefile(contributing: Any, code_in: CodeIn, checkout: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (checkout / "Makefile").read_text(), re.MULTILINE))
    promised = [code_in(cell)[0].removeprefix("make ") for cell in contributing.table("to run", "for").column("to run")]
    assert promised
    assert set(promised) <= targets


def test_each_link_leads_somewhere(readme: Any, checkout: Path) -> None:
    links = re.findall(r"\]\(([^)]+)\)", readme.text)
    assert links
    assert [link for link in links if not (checkout / link).exists()] == []


def test_versions_are_those_of_the_package(readme: Any, checkout: Path) -> None:
    import tomllib

    from airflow_provider_pai_spot import __version__

    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"
    assert "apache-airflow>=3.3" in project["dependencies"]
    assert "Airflow 3.3 or newer, Python 3.11 or newer." in readme.text
    assert set(re.findall(r"airflow_provider_pai_spot-([\d.]+)-py3", readme.text)) == {__version__}


def test_it_is_short_and_its_first_screen_has_commands_dag_and_log(readme: Any) -> None:
    assert len(readme.text.splitlines()) <= LONGEST_README
    assert readme.blocks_of("console")[0].line < readme.blocks_of("python")[0].line < LAST_LINE_OF_FIRST_SCREEN
    assert all(block.line < LAST_LINE_OF_FIRST_SCREEN for block in readme.blocks_of("text"))


LAST_LINE_OF_FIRST_SCREEN = 50
