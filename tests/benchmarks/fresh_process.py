"""Fresh processes that say what something cost, as a machine on which it is installed would run them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

_COMPILED = tempfile.TemporaryDirectory(prefix="pai-spot-bench-")
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {
    "PYTHONPYCACHEPREFIX": _COMPILED.name
}
"""An installed package is compiled once. A checkout may not be, where byte code is not written: that costs twice."""


def printed_number(program: str, text: str = "") -> float:
    """
    Run a program in a process of its own and return the number in the last line of what it prints.

    The first run of a program compiles what it imports: it is to be thrown away.

    :param text: its standard input.
    :raises subprocess.CalledProcessError: it failed.
    """
    command = [sys.executable, "-c", program]
    printed = subprocess.run(command, input=text, check=True, capture_output=True, text=True, env=_ENVIRONMENT).stdout
    return float(printed.splitlines()[-1])
