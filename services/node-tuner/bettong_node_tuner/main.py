"""The command `bettong-node-tuner`: flags, signals, and output."""

import logging
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from prometheus_client import start_http_server

from bettong_node_tuner.decisions import State, decide
from bettong_node_tuner.effects import Effects
from bettong_node_tuner.errors import TunerError
from bettong_node_tuner.journal import Journal
from bettong_node_tuner.keeping import Keeping
from bettong_node_tuner.machine import Machine
from bettong_node_tuner.metrics import TunerMetrics
from bettong_node_tuner.report import table
from bettong_node_tuner.service import Tuner
from bettong_node_tuner.settings import Mode, TunerSettings, read

_SUMMARY = (
    "Tunes this node's kernel as BETTONG_NODE_TUNER_* say, keeps it so, and restores it at the end (SIGTERM).\n\n"
    "Exit codes: 0 done, 1 something failed or was refused (--once), 4 settings are wrong, 5 the journal is damaged or"
    " held by another tuner."
)
_ENDING = frozenset({signal.SIGTERM, signal.SIGINT})
_BAD = frozenset({State.FAILED, State.REFUSED})

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True, help=_SUMMARY)
def tune(
    context: typer.Context,
    *,
    mode: Annotated[
        Mode | None, typer.Option(help="What to do; by default BETTONG_NODE_TUNER_MODE, else dry-run.")
    ] = None,
    root: Annotated[
        Path | None, typer.Option(help="Folder that contains the node's sys, proc and dev.")
    ] = None,
    journal: Annotated[Path | None, typer.Option(help="Folder of the journal of old values.")] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Read and act once, print a table, and end without restoring.")
    ] = False,
) -> None:
    """Runs until SIGTERM or SIGINT, or once."""
    settings = read({"mode": mode, "root": root, "journal": journal})
    if context.invoked_subcommand is not None:
        context.obj = settings
        return
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s", force=True
    )
    with ExitStack() as stack:
        effects = Effects(Machine(settings.root), stack.enter_context(Keeping(settings.journal)))
        if once:
            _once(settings, effects)
        else:
            _serve(settings, effects)


@app.command()
def plan(context: typer.Context) -> None:
    """Prints every setting: its file, its current and wanted values, what would be done, or why not."""
    settings: TunerSettings = context.obj
    machine = Machine(settings.root)
    boot = machine.boot()
    journal = Keeping(settings.journal).read(boot) or Journal(boot)
    wanted = settings.model_copy(update={"mode": Mode.APPLY}) if settings.mode is Mode.DRY_RUN else settings
    found = decide(wanted, machine.snapshot(wanted, journal.entries), journal, {})
    typer.echo(table(found, planned=True))


def _once(settings: TunerSettings, effects: Effects) -> None:
    found = effects.perform(settings)
    typer.echo(table(found, planned=settings.mode is Mode.DRY_RUN))
    effects.end()
    if any(each.state in _BAD for each in found):
        raise typer.Exit(1)


def _serve(settings: TunerSettings, effects: Effects) -> None:
    node = None
    if settings.node:
        # The client takes seconds of CPU time to load, which `plan` does not need.
        from bettong_node_tuner.node import of_this_pod

        node = of_this_pod(settings.node)
    metrics = TunerMetrics()
    # Blocked, and waited for between passes: signals never interrupt a pass. Threads inherit it, so it comes first.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    host, _, port = settings.metrics_listen.rpartition(":")
    server, thread = start_http_server(int(port), host, registry=metrics.registry)
    try:
        Tuner(settings, effects, metrics, node).run(
            lambda seconds: signal.sigtimedwait(_ENDING, seconds) is not None
        )
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def main() -> None:
    """The entry point of the command. Exits with the exit code of its error."""
    try:
        app()
    except TunerError as error:
        typer.echo(f"bettong-node-tuner: {error}", err=True)
        sys.exit(error.exit_code)
