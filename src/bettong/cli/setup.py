"""`bettong setup`: installs what an application needs to run on this machine, besides this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bettong.cli.doctor import table
from bettong.cli.ending import terminable_command

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from bettong.local.prerequisites import MachineFacts, SetupStep

_DRY_RUN = typer.Option("--dry-run", help="Only print what would be done, and its size.")
_NO_ARCHIVES = typer.Option(
    "--no-archives", help="Leave out the class-data archives: they take a minute, and halve each start."
)
_LINE_MAX, _LINES_AFTER_FAILURE = 200, 15


def setup(
    *, dry_run: Annotated[bool, _DRY_RUN] = False, no_archives: Annotated[bool, _NO_ARCHIVES] = False
) -> None:
    """Install what is missing to run applications here: Spark, Kafka, the services, Java, Redis.

    Python packages go into this environment, by pip or uv; Redis comes by apt-get, as root. An interrupted setup
    resumes when it is run again. Nothing is downloaded afterwards: `bettong up` works without a network.
    """
    import os
    import time
    from pathlib import Path

    from rich.console import Console
    from rich.markup import escape

    from bettong.errors import LocalError
    from bettong.local.machine_facts import inspect_machine
    from bettong.local.prerequisites import Grade, blocked, examine, steps

    console = Console(highlight=False)
    facts = inspect_machine(Path.cwd(), os.environ)
    todo = [step for step in steps(facts) if not (no_archives and step.records_archives)]
    if todo:
        console.print(
            "to do:" if dry_run else "setup:", *(f"\n  {escape(step.title)}" for step in todo), sep=""
        )
        download, disk = sum(step.download_mb for step in todo), sum(step.disk_mb for step in todo)
        console.print(f"about {download:,} MB to download, {disk:,} MB on disk")
    if not dry_run:
        with terminable_command():
            for step in todo:
                begin = time.monotonic()
                with console.status(escape(step.title)) as shown:
                    _perform(step, facts, console, shown)
                console.print(f"done: {escape(step.title)}, {time.monotonic() - begin:.0f} s")
        facts = inspect_machine(Path.cwd(), os.environ)
    findings = [each for each in examine(facts) if each.grade is not Grade.GOOD]
    if findings:
        console.print(table(findings))
    if blocked(findings):
        raise typer.Exit(LocalError.exit_code)
    console.print("ready: bettong init NAME makes a project, bettong up APP.py runs one")


def _perform(step: SetupStep, facts: MachineFacts, console: Console, shown: Status) -> None:
    """Performs a step, its newest line beside the spinner; the last lines of a failed step stay."""
    from collections import deque

    from rich.markup import escape

    from bettong.errors import LocalError
    from bettong.local.setting_up import perform

    last: deque[str] = deque(maxlen=_LINES_AFTER_FAILURE)

    def say(line: str) -> None:
        last.append(line[:_LINE_MAX])
        shown.update(escape(last[-1]))

    try:
        perform(step, facts, say=say)
    except LocalError as error:
        console.print(*map(escape, last), sep="\n")
        if not step.records_archives:
            raise
        console.print(f"continuing without: {escape(str(error))}")
