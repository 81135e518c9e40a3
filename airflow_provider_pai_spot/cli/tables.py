"""Tables: drawn on a terminal, aligned text elsewhere, so that grep and awk see whole lines."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_GAP = "  "


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under their columns' names."""
    if sys.stdout.isatty():
        _print_drawn(columns, rows)
    else:
        print(aligned(columns, rows))


def aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the table as text, one line a row; nothing is cut."""
    lines = [[name.upper() for name in columns], *rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    return "\n".join(
        _GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _print_drawn(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*map(Text, row))  # Text: what somebody named a DAG is not markup
    Console().print(table)
