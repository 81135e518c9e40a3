"""How the demo looks while it runs: a table that redraws itself on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from airflow_provider_pai_spot.cli.demo.story import Attempt, Snapshot

_LATEST_LINES = 6


class View(Protocol):
    """Whoever shows the demo."""

    def say(self, line: str) -> None:
        """Tell one thing that happened."""
        ...

    def show(self, snapshot: Snapshot) -> None:
        """Show where everything stands now."""
        ...


class PlainView:
    """Prints a line for each change: for pipes, logs and screen readers."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: set[str] = set()

    def say(self, line: str) -> None:
        """Print it."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def show(self, snapshot: Snapshot) -> None:
        """Print what was not printed before; a step only at each checkpoint."""
        for line in changes(snapshot):
            if line not in self._shown:
                self._shown.add(line)
                self.say(f"{snapshot.seconds:5.0f} s  {line}")


class LiveTable:
    """Redraws one table in place, the latest news below it."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._lines: list[str] = []
        self._snapshot: Snapshot | None = None

    def say(self, line: str) -> None:
        """Add it to the news."""
        self._lines.append(line)
        self._draw()

    def show(self, snapshot: Snapshot) -> None:
        """Redraw the table."""
        self._snapshot = snapshot
        self._draw()

    def _draw(self) -> None:
        parts: list[RenderableType] = [Text(line) for line in self._lines[-_LATEST_LINES:]]
        if self._snapshot is not None:
            parts.insert(0, table(self._snapshot))
        self._live.update(Group(*parts), refresh=True)


@contextmanager
def view_on(console: Console) -> Iterator[View]:
    """Yield the view that suits where the output goes."""
    if not console.is_terminal:
        yield PlainView(console)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield LiveTable(live)


def changes(snapshot: Snapshot) -> Iterator[str]:
    """Yield a line for everything that is worth a line."""
    yield f"market price {snapshot.market_price:g} of list price"
    yield f"Airflow task: {snapshot.task_state}, try {snapshot.try_number}"
    for number, attempt in enumerate(snapshot.attempts):
        prefix = f"attempt {number}: {attempt.job_id}"
        yield f"{prefix} bids {attempt.bid:g} of list price"
        if attempt.progress:
            yield f"{prefix} starts at step {attempt.progress[0].step}"
        if attempt.last and attempt.last.checkpoint:
            yield f"{prefix} checkpoint at step {attempt.last.checkpoint} of {attempt.last.of}"
        yield f"{prefix} {attempt.end}"


def table(snapshot: Snapshot) -> Table:
    """Return all attempts as a table, with the market and Airflow in its title."""
    title = (
        f"{snapshot.seconds:.0f} s   task {snapshot.task_state}, try {snapshot.try_number}"
        f"   market price {snapshot.market_price:g}"
    )
    shown = Table(title=title, title_justify="left", title_style="bold")
    for heading in ("#", "DLC job", "status", "bid", "from", "step", "safe", "right"):
        shown.add_column(heading, no_wrap=True)
    for number, attempt in enumerate(snapshot.attempts):
        shown.add_row(str(number), *_cells(attempt, snapshot.market_price))
    return shown


def _cells(attempt: Attempt, market_price: float) -> list[RenderableType]:
    bid = Text(f"{attempt.bid:g}", style="red" if attempt.bid < market_price else "green")
    status = Text(attempt.end, style={"Succeeded": "green", "Failed": "red"}.get(attempt.status, "yellow"))
    last = attempt.last
    if last is None:
        return [attempt.job_id, status, bid, "", "", "", ""]
    steps = [str(attempt.progress[0].step), f"{last.step}/{last.of}", str(last.checkpoint)]
    return [attempt.job_id, status, bid, *steps, f"{last.accuracy:.1%}"]
