"""How help texts look: examples keep their lines, and brackets are text, not markup."""

from __future__ import annotations

from typing import ClassVar

from rich_argparse import RawDescriptionRichHelpFormatter


class HelpFormatter(RawDescriptionRichHelpFormatter):
    """Colours on a terminal, plain text elsewhere."""

    group_name_formatter: ClassVar = str
    help_markup: ClassVar[bool] = False
    text_markup: ClassVar[bool] = False
