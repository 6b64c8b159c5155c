"""What the commands of the lab print alike, and how they end."""

from __future__ import annotations

import dataclasses
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from bettong.cli.exit_codes import BROKEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from rich.console import Console

    from bettong.lab.history import MetricHistory
    from bettong.lab.statistics.comparison import Comparison
    from bettong.lab.statistics.growing import SeriesGrowth


@contextmanager
def saying(what: str) -> Iterator[Callable[[str], None]]:
    """Shows on a terminal what is done, and of that what it is told."""
    from rich.console import Console

    with Console(stderr=True).status(f"{what} ...") as status:
        yield lambda text: status.update(f"{what}: {text} ...")


def print_json(rows: Sequence[Comparison | MetricHistory | SeriesGrowth]) -> None:
    """As an array."""
    typer.echo(json.dumps([dataclasses.asdict(each) for each in rows], indent=2))


def print_comparison(terminal: Console, found: Sequence[Comparison], differences: Sequence[str]) -> None:
    """The table, and what a reader must know besides."""
    from bettong.cli.fitting_tables import print_fitting
    from bettong.cli.lab.tables import comparison_table, notes

    print_fitting(terminal, comparison_table(found))
    for line in notes(found, differences):
        terminal.print(line, markup=False, soft_wrap=True)


def say_where(terminal: Console, made: Path) -> None:
    """Where a run's folder is."""
    terminal.print(f"{made}; `bettong lab report {made}` makes a page of it", markup=False, soft_wrap=True)


def end_with(terminal: Console, word: str, faults: Sequence[str]) -> None:
    """Prints the faults, and ends with their exit code where there are any."""
    for fault in faults:
        terminal.print(f"{word}: {fault}", style="bold red", markup=False, soft_wrap=True)
    if faults:
        raise typer.Exit(BROKEN)


def end_compared(found: Iterable[Comparison]) -> None:
    """Ends with the exit code of what became worse, where a metric did."""
    from bettong.lab.statistics.comparison import ChangeVerdict

    if any(each.verdict is ChangeVerdict.WORSE for each in found):
        raise typer.Exit(BROKEN)
