"""`bettong run`: runs an application and all it needs on this machine, until Ctrl-C."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bettong.cli.check import APPLICATION
from bettong.cli.directory import HERE
from bettong.cli.exit_codes import TERMINATED

if TYPE_CHECKING:
    from rich.console import Console

    from bettong.errors import LocalError
    from bettong.local.options import SuiteOptions
    from bettong.local.record import SuiteRecord
    from bettong.local.suite import Suite

SCHEDULE = typer.Option(
    metavar="NAME",
    help="How Spark hands frames to steps: resident, or micro-batch where results feed Spark SQL.",
)
PARTITIONS = typer.Option(
    min=1, max=4096, help="Partitions of every topic; kept data needs its own number: see repartition."
)
PYTHON = typer.Option("--python", help="Run @bettong.compiled functions as plain Python.")
STANDBY = typer.Option(
    "--standby", help="Start a second processor, which takes over within seconds when the first dies."
)
_RELOAD = typer.Option(
    "--reload",
    help="Load the new code when the application's file, or a module beside it, is saved; state and everything else"
    " stay.",
)
SENDER = typer.Option("--sender", metavar="HOST:PORT", help="The sender's address; by default a free port.")
RECEIVER = typer.Option(
    "--receiver", metavar="HOST:PORT", help="The receiver's address; by default a free port."
)
CONSOLE_ADDRESS = typer.Option(
    "--console",
    metavar="HOST:PORT",
    help="The address of the console's page, on loopback; by default a free port.",
)
NO_CONSOLE = typer.Option("--no-console", help="Start no console, the page that shows what runs.")
_KEEP = typer.Option(
    metavar="DIR",
    help="Keep everything in DIR, results in DIR/results; the next run resumes from it."
    " By default everything is removed at the end.",
)
_RESULTS = typer.Option(
    metavar="DIR", help="Write results to files in DIR, which must be empty unless data is kept."
)


def run(
    application: Annotated[str, APPLICATION],
    *,
    schedule: Annotated[str, SCHEDULE] = "resident",
    partitions: Annotated[int, PARTITIONS] = 16,
    keep: Annotated[Path | None, _KEEP] = None,
    results: Annotated[Path | None, _RESULTS] = None,
    python: Annotated[bool, PYTHON] = False,
    standby: Annotated[bool, STANDBY] = False,
    reload: Annotated[bool, _RELOAD] = False,
    sender: Annotated[str | None, SENDER] = None,
    receiver: Annotated[str | None, RECEIVER] = None,
    console_address: Annotated[str | None, CONSOLE_ADDRESS] = None,
    no_console: Annotated[bool, NO_CONSOLE] = False,
) -> None:
    """Run an application on this machine, with Kafka, Redis, sender, processor and receiver. Ctrl-C ends it.

    Other terminals in the same folder find it: bettong send, tail and status.
    """
    from rich.console import Console

    from bettong.local.interrupts import Terminated, terminable
    from bettong.local.readiness import await_running, lines
    from bettong.local.suite import Suite

    options = suite_options(
        application,
        schedule=schedule,
        partitions=partitions,
        keep=keep,
        results=results,
        python=python,
        standby=standby,
        sender=sender,
        receiver=receiver,
        console_address=console_address,
        no_console=no_console,
        announce=HERE if keep is None else None,
        reload=reload,
    )
    console = Console(highlight=False)

    def say(event: str) -> None:
        console.print(event, style="yellow", markup=False, soft_wrap=True)

    suite = Suite(options, say=say)
    try:
        with terminable(), ExitStack() as stack:
            with console.status("starting Kafka, Redis, sender, processor and receiver ..."):
                stack.enter_context(suite)
            describe(suite.record, console, keep or HERE)
            for text in lines(await_running(lambda: suite.record)):
                say(text)
            _follow(suite, console)
    except KeyboardInterrupt as end:
        if suite.given_up:
            raise _incomplete(suite.given_up) from None
        if isinstance(end, Terminated):
            raise typer.Exit(TERMINATED) from None
        raise


def suite_options(
    application: str,
    *,
    schedule: str,
    partitions: int,
    keep: Path | None,
    results: Path | None,
    python: bool,
    standby: bool,
    sender: str | None,
    receiver: str | None,
    console_address: str | None,
    no_console: bool,
    announce: Path | None,
    reload: bool = False,
) -> SuiteOptions:
    """The options of a suite, from flags. Raises SettingsError where they are wrong."""
    from bettong.config.processor import Schedule
    from bettong.errors import SettingsError
    from bettong.local.options import SuiteOptions

    if schedule not in {known.value for known in Schedule}:
        known = ", ".join(each.value for each in Schedule)
        raise SettingsError(f"--schedule {schedule}: there is no such schedule, expected {known}")
    if reload and standby:
        raise SettingsError(
            "--reload and --standby: the standby processor would keep the old code; leave one of them out"
        )
    if console_address is not None:
        _check_console(console_address)
    addresses = {"sender_listen": sender, "receiver_listen": receiver, "console_listen": console_address}
    return SuiteOptions(
        application=application,
        partitions=partitions,
        schedule=Schedule(schedule),
        compiled=not python,
        standby=standby,
        console=not no_console,
        keep=keep,
        results=results,
        announce=announce,
        reload=reload,
        settings={name: address for name, address in addresses.items() if address is not None},
    )


def _check_console(address: str) -> None:
    """Raises SettingsError unless the address is on loopback, with a free port."""
    from bettong.config.endpoints import is_loopback, listening
    from bettong.errors import SettingsError
    from bettong.local.addresses import is_free

    try:
        port = int(listening(address).rpartition(":")[2])
    except ValueError:
        port = 0
    if not port or not is_loopback(address):
        raise SettingsError(
            f"--console {address}: expected 127.0.0.1:PORT; for other machines, with tokens and TLS, start"
            " another one with bettong console --listen (docs/console.md)"
        )
    if not is_free(port):
        raise SettingsError(
            f"--console {address}: the port is in use; choose another one, or leave the flag out for a free one"
        )


def describe(record: SuiteRecord, console: Console, directory: Path) -> None:
    """Prints the addresses of the suite; other commands find it in `directory`."""
    there = f" --dir {directory}" if directory != HERE else ""
    lines = [
        f"{record.name} runs, {record.schedule}, {record.partitions} partitions",
        f"  send to       {record.sender}   (bettong send SOURCE FILE{there})",
        f"  results from  {record.receiver}   (bettong tail SINK{there})",
        *([f"  console       {record.console}"] if record.console is not None else []),
        *(f"  {each}" for each in record.metrics_lines),
        *([f"  result files  {record.results}"] if record.results is not None else []),
        f"  Kafka {record.kafka}, Redis {record.redis}, logs in {record.directory / 'logs'}",
    ]
    for text in lines:
        console.print(text, markup=False, soft_wrap=True)


def _follow(suite: Suite, console: Console) -> None:
    """Prints a line of counts each second, in place on a terminal, until the suite fails or an interrupt."""
    from bettong.cli.status_texts import line
    from bettong.inspection.live.overview import LiveOverview

    record = suite.record
    with LiveOverview(record.name, record.redis_connection) as overview, console.status("") as status:
        before, since = None, time.monotonic()
        while True:
            now, at = overview.now(), time.monotonic()
            if now is not None:
                text = line(now, before or now, at - since)
                status.update(text)
                if not console.is_terminal and now != before:
                    console.print(text, soft_wrap=True)
                before, since = now, at
            suite.wait(1.0)


def _incomplete(given_up: dict[str, str]) -> LocalError:
    """The error to end with when services had stopped for good before the end."""
    from bettong.errors import LocalError

    each = "; ".join(f"{name}: {why}" for name, why in given_up.items())
    return LocalError(f"stopped, but {', '.join(given_up)} had stopped for good before: {each}")
