"""`bettong doctor`: what an application needs to run on this machine, and what of it is missing."""

from __future__ import annotations

import json as json_lines
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from bettong.local.prerequisites import Finding

_JSON = typer.Option("--json", help="Print a JSON array, one object per finding, for scripts.")
# Words as well as colours, for people who do not see the colours.
MARKS = {"good": "[green]ok[/green]", "warning": "[yellow]warning[/yellow]", "missing": "[red]missing[/red]"}


def doctor(*, json: Annotated[bool, _JSON] = False) -> None:
    """Print what this machine lacks to run applications, and the command that fixes it.

    Checks Python, packages, Java, Redis, memory, disk and limits. Exit code 6 when an application cannot run.
    """
    import os
    from pathlib import Path

    from rich.console import Console

    from bettong.errors import LocalError
    from bettong.local.machine_facts import inspect_machine
    from bettong.local.prerequisites import blocked, examine

    findings = examine(inspect_machine(Path.cwd(), os.environ))
    if json:
        typer.echo(as_json(findings))
    else:
        Console(highlight=False).print(table(findings))
    if blocked(findings):
        raise typer.Exit(LocalError.exit_code)


def as_json(findings: Sequence[Finding]) -> str:
    """A JSON array, one object per finding."""
    rows = [
        {"name": each.name, "grade": each.grade.value, "text": each.text, "remedy": each.remedy}
        for each in findings
    ]
    return json_lines.dumps(rows, indent=2)


def table(findings: Sequence[Finding]) -> Table:
    """A line for each finding, with its remedy below."""
    from rich.markup import escape
    from rich.table import Table

    lines = Table.grid(padding=(0, 2))
    for finding in findings:
        text = escape(finding.text)
        if finding.remedy:
            text += f"\n-> [bold]{escape(finding.remedy)}[/bold]"
        lines.add_row(finding.name, MARKS[finding.grade.value], text)
    return lines
