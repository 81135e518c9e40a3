"""What DLC tells is printed whatever the terminal can show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MESSAGE = "bad \ud800 规格"
CALL = "import sys; from airflow_provider_pai_spot.cli.main import main; sys.exit(main(sys.argv[1:]))"
SHOWN = {"utf-8": "bad \\ud800 规格", "ascii": "bad \\ud800 \\u89c4\\u683c"}


@pytest.fixture
def job(tmp_path: Path) -> str:
    """A file of a job whose reason has half of a character."""
    path = tmp_path / "job.json"
    raw = {"JobId": "dlc1", "Status": "Failed", "ReasonCode": "InvalidParameter", "ReasonMessage": MESSAGE}
    path.write_text(json.dumps(raw))
    return str(path)


def explain(path: str, encoding: str, *options: str) -> str:
    command = [sys.executable, "-c", CALL, "explain", "--file", path, *options]
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    ran = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
    return ran.stdout.decode(encoding)


@pytest.mark.parametrize("encoding", SHOWN)
def test_a_text_shows_what_cannot_be_shown_escaped(job: str, encoding: str) -> None:
    assert SHOWN[encoding] in explain(job, encoding)


@pytest.mark.parametrize("encoding", SHOWN)
def test_json_reads_back_as_it_was(job: str, encoding: str) -> None:
    assert json.loads(explain(job, encoding, "--json"))["outcome"]["reason_message"] == MESSAGE
