"""Output and exit codes that the commands of the lab share."""

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
def showing_progress(what: str) -> Iterator[Callable[[str], None]]:
    """Shows on stderr what is being done; yields a function that adds a step, which off a terminal is a line."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True, highlight=False)
    with console.status(escape(f"{what} ...")) as status:

        def say(step: str) -> None:
            status.update(escape(f"{what}: {step} ..."))
            if not console.is_terminal:
                console.print(f"{what}: {step}", markup=False, soft_wrap=True)

        yield say


def print_json(rows: Sequence[Comparison | MetricHistory | SeriesGrowth]) -> None:
    """Prints the rows as a JSON array."""
    typer.echo(json.dumps([dataclasses.asdict(each) for each in rows], indent=2))


def print_comparison(terminal: Console, found: Sequence[Comparison], differences: Sequence[str]) -> None:
    """Prints the comparison as a table, and the notes to it."""
    from bettong.cli.fitting_tables import print_fitting
    from bettong.cli.lab.tables import comparison_table, notes

    print_fitting(terminal, comparison_table(found))
    for line in notes(found, differences):
        terminal.print(line, markup=False, soft_wrap=True)


def print_folder(terminal: Console, made: Path) -> None:
    """Prints the folder of a run."""
    terminal.print(f"{made}; `bettong lab report {made}` makes a page of it", markup=False, soft_wrap=True)


def exit_with_faults(terminal: Console, label: str, faults: Sequence[str]) -> None:
    """Prints the faults, and exits with their exit code if there are any."""
    for fault in faults:
        terminal.print(f"{label}: {fault}", style="bold red", markup=False, soft_wrap=True)
    if faults:
        raise typer.Exit(BROKEN)


def exit_if_worse(found: Iterable[Comparison]) -> None:
    """Exits with the exit code of faults if a metric became worse."""
    from bettong.lab.statistics.comparison import ChangeVerdict

    if any(each.verdict is ChangeVerdict.WORSE for each in found):
        raise typer.Exit(BROKEN)
