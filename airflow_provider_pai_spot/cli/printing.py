"""What DLC tells, printed whatever the terminal can show: half a character of a message is no reason to fail."""

from __future__ import annotations

import json
import sys
from typing import Any


def print_text(text: str) -> None:
    """Print a text; characters that standard output cannot take are escaped."""
    encoding = _encoding()
    print(text.encode(encoding, "backslashreplace").decode(encoding))


def print_json(value: Any) -> None:
    """Print a value as JSON; all but ASCII is escaped if standard output cannot take it as it is."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        text.encode(_encoding())
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2)
    print(text)


def _encoding() -> str:
    return sys.stdout.encoding or "utf-8"
