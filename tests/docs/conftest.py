"""The README as data: its blocks and its tables, so that each can be held to the code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Block:
    """One fenced block; `line` is where its content starts."""

    language: str
    text: str
    line: int


@dataclass(frozen=True)
class Table:
    """One table: the names of its columns, and its rows as they are written."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def column(self, name: str) -> list[str]:
        """Return one column."""
        return [row[self.columns.index(name)] for row in self.rows]


@dataclass(frozen=True)
class Readme:
    """The page: blocks and tables in their order."""

    text: str
    blocks: tuple[Block, ...] = field(repr=False)
    tables: tuple[Table, ...] = field(repr=False)

    def blocks_of(self, language: str) -> list[Block]:
        """Return the blocks of one language."""
        return [block for block in self.blocks if block.language == language]

    def table(self, *first_columns: str) -> Table:
        """Return the one table whose columns begin with these names."""
        count = len(first_columns)
        [found] = [table for table in self.tables if table.columns[:count] == first_columns]
        return found

    def section(self, heading: str) -> str:
        """Return the text under a heading of the second level."""
        return self.text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def in_backticks(cell: str) -> list[str]:
    """Return what a cell shows as code."""
    return _CODE.findall(cell)


def read_page(name: str) -> Readme:
    """Read a page."""
    text = (CHECKOUT / name).read_text(encoding="utf-8")
    blocks = [Block(m[1], m[2], text[: m.start(2)].count("\n") + 1) for m in _BLOCK.finditer(text)]
    prose = _BLOCK.sub("", text)
    tables = [_table(lines.splitlines()) for lines in re.findall(r"(?:^\|.*\|$\n?)+", prose, re.MULTILINE)]
    return Readme(text=text, blocks=tuple(blocks), tables=tuple(tables))


def _table(lines: Sequence[str]) -> Table:
    cells = [tuple(cell.strip() for cell in line.strip().strip("|").split("|")) for line in lines]
    head, _rule, *rows = cells
    assert all(len(row) == len(head) for row in rows), f"a row of another width below {head}"
    return Table(head, tuple(rows))


README = read_page("README.md")


@pytest.fixture(scope="session")
def readme() -> Readme:
    """The page."""
    return README


@pytest.fixture(scope="session")
def contributing() -> Readme:
    """What people read who change this."""
    return read_page("CONTRIBUTING.md")


@pytest.fixture(scope="session")
def code_in() -> object:
    """A function that returns what a cell shows as code."""
    return in_backticks


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of the project."""
    return CHECKOUT


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that asks for `python_block` each that is not a test itself, named by its line."""
    if "python_block" in metafunc.fixturenames:
        blocks = [block for block in README.blocks_of("python") if "def test_" not in block.text]
        metafunc.parametrize("python_block", blocks, ids=[f"line {block.line}" for block in blocks])
