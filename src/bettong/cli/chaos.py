"""`bettong chaos`: injects faults into a user's application and compares its output with an undisturbed run's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bettong.cli.ending import terminable_command
from bettong.cli.exit_codes import BROKEN
from bettong.cli.run import PARTITIONS, PYTHON

if TYPE_CHECKING:
    from rich.console import Console

    from bettong.chaos.preparing import PreparedRun

_WHAT = typer.Argument(
    metavar="APP.py|SPEC.toml", help="The application (with --input), or a spec that names everything."
)
_INPUT = typer.Option(
    "--input",
    metavar="SOURCE=FILE",
    help="A file for a source, as `bettong send` reads it; several are fed in turn, spread over --for.",
)
_SEED = typer.Option(help="Faults and their times are drawn from it: the same seed repeats them.")
_FOR = typer.Option(
    "--for",
    metavar="TIME",
    help="How long faults are injected: 90s, 2m, 1h; by default the spec's time, or 2m.",
)
_REPORT = typer.Option(metavar="FILE", help="The file that the report is written to, as JSON.")
_LOGS = typer.Option(metavar="DIR", help="Keep the logs of all processes in this folder.")
_JSON = typer.Option("--json", help="Print the report as JSON, and everything else on standard error.")
_PLAN = typer.Option("--plan", help="Print the faults and their times, check the inputs, and run nothing.")

_FILE_WIDTH = 130
_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0}


def chaos(
    what: Annotated[str, _WHAT],
    *,
    inputs: Annotated[list[str] | None, _INPUT] = None,
    seed: Annotated[int | None, _SEED] = None,
    duration: Annotated[str | None, _FOR] = None,
    partitions: Annotated[int, PARTITIONS] = 4,
    python: Annotated[bool, PYTHON] = False,
    report: Annotated[Path, _REPORT] = Path("chaos-report.json"),
    logs: Annotated[Path | None, _LOGS] = None,
    plan: Annotated[bool, _PLAN] = False,
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Kill, stop, disconnect and wipe parts of an application while it runs; its output must stay the same.

    First it runs undisturbed, for the golden output; then again, from the same input, while faults come, on parts of
    its own. Ends with 10 when results are lost, doubled, out of order or wrong, or a process holds too much memory.
    """
    from rich.console import Console

    from bettong.chaos.preparing import prepare
    from bettong.chaos.spec import Spec, lasting, read
    from bettong.chaos.usual import usual
    from bettong.errors import SettingsError

    if what.endswith(".toml"):
        if inputs:
            raise SettingsError(f"--input: {what} names its inputs itself")
        spec: Spec = read(Path(what))
        spec = spec if seed is None else spec.model_copy(update={"seed": seed})
        spec = spec if duration is None else lasting(spec, seconds(duration))
        folder = Path(what).parent
    else:
        spec = usual(
            what,
            parsed(inputs or []),
            seed=seed or 0,
            duration_s=seconds(duration or "2m"),
            partitions=partitions,
            compiled=not python,
        )
        folder = Path()
    prepared = prepare(spec, folder)
    console = Console(highlight=False, stderr=json)
    _describe(prepared, console)
    if not plan:
        _run(prepared, console, report, logs, json=json)


def parsed(inputs: list[str]) -> list[tuple[str, Path]]:
    """`SOURCE=FILE` texts as pairs. Raises SettingsError for others, and for none."""
    from bettong.errors import SettingsError

    if not inputs:
        raise SettingsError("--input SOURCE=FILE: give at least one file for a source")
    found = []
    for text in inputs:
        source, equals, file = text.partition("=")
        if not (source and equals and file):
            raise SettingsError(f"--input {text}: expected SOURCE=FILE")
        found.append((source, Path(file)))
    return found


def seconds(text: str) -> float:
    """`90s`, `2m` or `1h` as seconds. Raises SettingsError for anything else, and beyond a day."""
    from bettong.errors import SettingsError

    number, unit = text[:-1], text[-1:]
    try:
        found = float(number) * _UNITS_S[unit]
    except (ValueError, KeyError):
        raise SettingsError(f"--for {text}: expected a time such as 90s, 2m or 1h") from None
    if not 0 < found <= 86_400:
        raise SettingsError(f"--for {text}: expected more than 0 s, and at most one day")
    return found


def _describe(prepared: PreparedRun, console: Console) -> None:
    """Prints the plan of the run: enough to repeat it."""
    spec = prepared.spec
    count = sum(feed.total for feed in prepared.feeds)
    lines = [
        (
            f"{prepared.plan.application}: {count:,} messages in {spec.duration_s:g} s,"
            f" {len(prepared.faults)} faults, seed {spec.seed}"
        ),
        *(f"sink {sink}: compared by {output.compare}" for sink, output in prepared.outputs.items()),
        *(f"NOT TRIED: {kind}: {why}" for kind, why in prepared.not_tried.items()),
        *(str(fault) for fault in prepared.faults),
    ]
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def _run(prepared: PreparedRun, console: Console, path: Path, logs: Path | None, *, json: bool) -> None:
    from rich.console import Console

    from bettong.chaos.run import run
    from bettong.cli.chaos_tables import show
    from bettong.errors import BettongError

    with terminable_command(), console.status("starting ...") as status:

        def say(line: str) -> None:
            status.update(line.strip()[: max(20, console.width - 4)])
            console.print(line, markup=False, soft_wrap=True, style="dim")

        report = run(prepared, say, logs=logs)
    text = report.model_dump_json(indent=2)
    if json:
        typer.echo(text)
    else:  # a file or a pipe has no width of its own
        show(report, console if console.is_terminal else Console(width=_FILE_WIDTH, highlight=False))
    try:
        path.write_text(text + "\n")
    except OSError as error:
        raise BettongError(f"--report {path}: cannot be written: {error.strerror or error}") from None
    console.print(f"report: {path}", markup=False, soft_wrap=True)
    if report.broken:
        raise typer.Exit(BROKEN)
