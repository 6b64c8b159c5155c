"""`bettong lab`: what distorts measurements on this machine, and whether two of them differ."""

from __future__ import annotations

import dataclasses
import json as json_lines
from pathlib import Path
from typing import Annotated

import typer

from bettong.cli.exit_codes import BROKEN

lab = typer.Typer(help="Measurements that can be trusted: what distorts them here, and whether two differ.")

_RESULTS = typer.Argument(help="A results file of `make bench`, or a folder of them: its newest.")
_LEAST = typer.Option(min=0.0, max=1000.0, help="Changes of less, in percent, are none.")
_JSON = typer.Option("--json", help="Print a JSON array for scripts.")


@lab.command()
def check(
    *,
    seconds: Annotated[float, typer.Option(min=0.1, max=600, help="How long hiccups are measured.")] = 2.0,
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Say what distorts a measurement on this machine, and what to do about it.

    Looks at stolen time, other work, hiccups, frequency, turbo, SMT, isolation, huge pages, swap, clock and limits.
    """
    from rich.console import Console

    from bettong.cli.doctor import as_json, table
    from bettong.lab.conditions import examine
    from bettong.lab.machine_state import inspect_machine, measure_hiccups

    terminal = Console(highlight=False)
    with Console(stderr=True).status(f"measuring hiccups for {seconds:g} s ..."):
        hiccups = measure_hiccups(seconds)
    findings = examine(inspect_machine(hiccups))
    if json:
        typer.echo(as_json(findings))
    else:
        terminal.print(table(findings))


@lab.command()
def compare(
    before: Annotated[Path, _RESULTS],
    after: Annotated[Path, _RESULTS],
    *,
    least: Annotated[float, _LEAST] = 2.0,
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Say which metrics differ between two results, by how much, and whether that is more than noise.

    Exit code 10 when a metric became worse.
    """
    from rich.console import Console

    from bettong.cli.lab.tables import comparison_table, notes
    from bettong.lab.comparison import ChangeVerdict, compare
    from bettong.lab.results import differences, read

    one, other = read(before), read(after)
    found = compare(one.metrics, other.metrics, least=least / 100)
    if json:
        typer.echo(json_lines.dumps([dataclasses.asdict(each) for each in found], indent=2))
    else:
        terminal = Console(highlight=False)
        terminal.print(comparison_table(found))
        for line in notes(found, differences(one, other)):
            terminal.print(line, markup=False, soft_wrap=True)
    if any(each.verdict is ChangeVerdict.WORSE for each in found):
        raise typer.Exit(BROKEN)
