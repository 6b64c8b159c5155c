"""The command `bettong`: registers its subcommands."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bettong.cli.background import down, up
from bettong.cli.chaos import chaos
from bettong.cli.check import check
from bettong.cli.console import console
from bettong.cli.dead_letters.commands import dead_letters
from bettong.cli.doctor import doctor
from bettong.cli.ending import end_well, fill_closed_streams
from bettong.cli.exit_codes import INTERRUPTED, MEANINGS
from bettong.cli.health import health
from bettong.cli.infer import infer
from bettong.cli.init import init
from bettong.cli.k8s.commands import k8s
from bettong.cli.lab.commands import lab
from bettong.cli.log import log
from bettong.cli.repartition import repartition
from bettong.cli.replay import replay
from bettong.cli.run import run
from bettong.cli.send import send
from bettong.cli.services import STUB, run_service
from bettong.cli.setup import setup
from bettong.cli.state.commands import state
from bettong.cli.status import status
from bettong.cli.tail import tail
from bettong.cli.top.command import top
from bettong.services import SERVICES

_SUMMARY = "Bettong, a stream processor: state next to the code that uses it, correct through crashes."
_EPILOG = "Exit codes:\n\n" + "\n\n".join(f"{code:>3}  {meaning}" for code, meaning in MEANINGS.items())

app = typer.Typer(epilog=_EPILOG, rich_markup_mode="rich", pretty_exceptions_enable=False)


def print_version(wanted: bool) -> None:  # noqa: FBT001 - the option's callback takes its value
    """Prints the version and ends."""
    if wanted:
        from importlib.metadata import version

        typer.echo(f"bettong {version('bettong')}")
        raise typer.Exit


_VERSION = typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and end.")


@app.callback(invoke_without_command=True, help=_SUMMARY)
def options(context: typer.Context, *, _version: Annotated[bool, _VERSION] = False) -> None:
    """Options before a command; without a command, prints the help."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


_ON_THIS_MACHINE = "Applications on this machine"
for _command in (setup, doctor, init):
    app.command(rich_help_panel="This machine")(_command)
for _working in (infer, check, run, up, status, top, console, down, send, tail, replay, log, chaos):
    app.command(rich_help_panel=_ON_THIS_MACHINE)(_working)
app.add_typer(dead_letters, name="dead-letters", rich_help_panel=_ON_THIS_MACHINE)
app.command(rich_help_panel=_ON_THIS_MACHINE)(repartition)
app.add_typer(state, name="state", rich_help_panel=_ON_THIS_MACHINE)
app.add_typer(lab, name="lab", rich_help_panel="This machine")
app.add_typer(k8s, name="k8s", rich_help_panel="Applications on Kubernetes")
for _service in SERVICES.values():
    app.command(
        _service.name,
        help=_service.summary,
        rich_help_panel="One service, as containers run it",
        add_help_option=False,
        context_settings=STUB,
    )(run_service)
app.command(rich_help_panel="One service, as containers run it")(health)


def main() -> None:
    """Runs the command line and ends the process with one of the exit codes in `exit_codes`."""
    fill_closed_streams()
    try:
        sys.exit(end_well(app, sys.argv[1:], name="bettong"))
    except KeyboardInterrupt:  # before or after the command itself
        sys.exit(INTERRUPTED)
