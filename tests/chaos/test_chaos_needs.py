"""`make chaos` on a machine without PostgreSQL and Redis."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SUITE = Path(__file__).parent


def test_absent_programs_are_one_line_and_exit_code_2(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, str(SUITE)],
        env={"PATH": str(tmp_path), "HOME": str(tmp_path), "AIRFLOW_HOME": str(tmp_path), "PYTHONPATH": _source()},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 2, ended.stderr
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("chaos needs ")
    assert "redis-server, redis-cli" in line
    assert line.endswith("install PostgreSQL and Redis (Debian: apt-get install postgresql redis-server).")


def _source() -> str:
    return str(SUITE.parents[1])
