from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_pai_spot import __version__
from airflow_provider_pai_spot.cli import main as cli

Call = Callable[..., Any]
REFUSED = ("stop", "dlcx", "--conn-id", "no_such_connection")


def _parser_of(name: str) -> argparse.ArgumentParser:
    commands = cli._parser(name)._subparsers
    assert commands is not None
    return commands._group_actions[0].choices[name]  # type: ignore[index,return-value]


def test_help_names_every_command_and_ends_well(pai_spot: Call) -> None:
    said = pai_spot("--help")
    assert said.code == 0
    assert all(f"\n    {name}" in said.out for name in cli.COMMANDS)


def test_help_loads_neither_airflow_nor_the_emulator_nor_a_command() -> None:
    program = (
        "import sys\nfrom airflow_provider_pai_spot.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(*(name for name in sys.modules if name.split('.')[0] in ('airflow', 'fastapi', 'Tea')"
        " or name.startswith('airflow_provider_pai_spot.cli.p') and name != 'airflow_provider_pai_spot.cli.problem'),"
        " file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stderr.split() == []


def test_version_is_the_package_s(pai_spot: Call) -> None:
    assert pai_spot("--version").out == f"pai-spot {__version__}\n"


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_option_of_every_command_is_documented(name: str) -> None:
    actions = _parser_of(name)._actions
    assert actions
    assert [action.dest for action in actions if not action.help] == []


@pytest.mark.parametrize("name", [name for name in cli.COMMANDS if name != "demo"])
def test_help_of_every_command_ends_with_examples_that_parse(name: str) -> None:
    import shlex

    examples = [
        line.strip().split("  ")[0].removesuffix(" &").split(" | ")[0]
        for line in (_parser_of(name).epilog or "").splitlines()
        if line.startswith("  pai-spot ")
    ]
    assert examples
    for example in examples:
        cli._parser(name).parse_args(shlex.split(example)[1:])


@pytest.mark.parametrize(
    "arguments",
    [(), ("no-such-command",), ("stop",), ("jobs", "--since", "yesterday"), ("jobs", "--status", "Runing")],
    ids=["nothing", "unknown command", "missing argument", "not a span", "not a status"],
)
def test_wrong_arguments_exit_with_2_and_show_how_to_call(pai_spot: Call, arguments: tuple[str, ...]) -> None:
    said = pai_spot(*arguments)
    assert said.code == 2
    assert "usage: pai-spot" in said.err


def test_a_problem_is_told_in_one_line_without_a_traceback(pai_spot: Call) -> None:
    said = pai_spot(*REFUSED)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("pai-spot: Airflow has no connection 'no_such_connection'")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [(*REFUSED, "--debug"), ("--debug", *REFUSED)], ids=["after", "before"])
def test_debug_lets_the_error_itself_through(pai_spot: Call, arguments: tuple[str, ...]) -> None:
    with pytest.raises(Exception, match="no_such_connection"):
        pai_spot(*arguments)


def test_ctrl_c_exits_with_130(pai_spot: Call, tmp_path: Path) -> None:
    interrupted = tmp_path / "interrupted.py"
    interrupted.write_text("raise KeyboardInterrupt  # as if somebody pressed it while the DAG file loads\n")
    assert pai_spot("plan", "a_dag", "a_task", "--dag-file", str(interrupted)).code == 130


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    """`pai-spot … | head -1` ends quietly."""
    program = "import sys; from airflow_provider_pai_spot.cli.main import main; sys.exit(main())"
    command = f'"{sys.executable}" -c "{program}" emulator --behaviours | true; echo "${{PIPESTATUS[0]}}"'
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, cwd=tmp_path)  # noqa: S607 - any bash will do
    assert ran.stdout.strip() in ("0", "141")  # 0: all of it was written before the reader left
    assert ran.stderr == ""
