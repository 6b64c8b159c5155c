"""`bettong up` and `bettong down`: a suite without a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bettong.cli.check import APPLICATION
from bettong.cli.directory import DIRECTORY, HERE
from bettong.cli.ending import complain, terminable_command
from bettong.cli.exit_codes import NOT_RUNNING
from bettong.cli.run import (
    CONSOLE_ADDRESS,
    NO_CONSOLE,
    PARTITIONS,
    PYTHON,
    RECEIVER,
    SCHEDULE,
    SENDER,
    STANDBY,
    describe,
    suite_options,
)

_REMOVE = typer.Option(
    "--remove", help="Remove all data and results too, and the folder unless it holds files of your own."
)


def up(
    application: Annotated[str, APPLICATION],
    *,
    directory: Annotated[Path, DIRECTORY] = HERE,
    schedule: Annotated[str, SCHEDULE] = "resident",
    partitions: Annotated[int, PARTITIONS] = 16,
    python: Annotated[bool, PYTHON] = False,
    standby: Annotated[bool, STANDBY] = False,
    sender: Annotated[str | None, SENDER] = None,
    receiver: Annotated[str | None, RECEIVER] = None,
    console_address: Annotated[str | None, CONSOLE_ADDRESS] = None,
    no_console: Annotated[bool, NO_CONSOLE] = False,
) -> None:
    """Run an application and all it needs in the background, until `bettong down`. Resumes from the data in DIR.

    Exit code 0: all services work. 7: it runs, but a service waits; the reason is printed. Any other: nothing runs.
    """
    from rich.console import Console

    from bettong.inspection.live.application import loaded_plan
    from bettong.local.background import up as start
    from bettong.local.readiness import await_running, exit_code, lines, started_record

    options = suite_options(
        application,
        schedule=schedule,
        partitions=partitions,
        keep=directory.resolve(),
        results=None,
        python=python,
        standby=standby,
        sender=sender,
        receiver=receiver,
        console_address=console_address,
        no_console=no_console,
        announce=None,
    )
    loaded_plan(application)  # reports its mistakes before anything starts
    console = Console(highlight=False)
    with terminable_command(), console.status("starting Kafka, Redis, sender, processor and receiver ..."):
        record = start(options, directory)
    describe(record, console, directory)
    with console.status("waiting until all services work ..."):
        waiting = await_running(lambda: started_record(directory))
    if waiting:
        for text in lines(waiting):
            complain(text)
        complain(
            "the suite keeps running, and resumes once the cause is fixed (bettong status; bettong down)"
        )
        raise typer.Exit(exit_code(waiting, NOT_RUNNING))


def down(*, directory: Annotated[Path, DIRECTORY] = HERE, remove: Annotated[bool, _REMOVE] = False) -> None:
    """Stop what `bettong up` (or `run`) started. The data stays for the next `up`, unless --remove."""
    from rich.console import Console

    from bettong.local.background import down as stop
    from bettong.local.directories import remove_suite
    from bettong.local.record import find

    console = Console(highlight=False)
    record = find(directory)
    if record is None:
        console.print(f"nothing runs in {directory}")
    else:
        with console.status(f"stopping {record.name} ..."):
            stop(record)
        console.print(f"{record.name} stopped")
    if remove and directory.exists() and (others := remove_suite(directory)):
        names = ", ".join(path.name for path in others)
        console.print(f"{directory} is kept: not the suite's: {names}", markup=False, soft_wrap=True)
