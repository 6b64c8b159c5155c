"""`bettong lab`: what distorts measurements on this machine, and whether two results differ."""

from __future__ import annotations

import dataclasses
import json as json_lines
from pathlib import Path
from typing import Annotated

import typer

from bettong.cli.ending import terminable_command
from bettong.cli.exit_codes import BROKEN
from bettong.cli.lab.showing import exit_with_faults, print_folder, print_json, showing_progress

lab = typer.Typer(
    help="Reliable measurements: what distorts them on this machine, and whether two results differ."
)

_RESULTS = typer.Argument(
    help="A run's folder or a results file, or a folder of these: then its newest result."
)
_RUNS = Path("lab-results")
_OUT = typer.Option(help="Folder in which each run creates a folder.")
_LEAST = typer.Option(min=0.0, max=1000.0, help="Smallest change that counts, in percent.")
_JSON = typer.Option("--json", help="Print a JSON array for scripts.")


@lab.command()
def check(
    *,
    seconds: Annotated[
        float, typer.Option(min=0.1, max=600, help="For how long hiccups are measured.")
    ] = 2.0,
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Report what distorts measurements on this machine, with remedies.

    Checks stolen time, other load, hiccups, frequency, turbo, SMT, isolation, huge pages, swap, clock and limits.
    """
    from rich.console import Console

    from bettong.cli.doctor import as_json, table
    from bettong.lab.machine.conditions import examine
    from bettong.lab.machine.machine_state import inspect_machine, measure_hiccups

    terminal = Console(highlight=False)
    with Console(stderr=True).status(f"measuring hiccups for {seconds:g} s ..."):
        hiccups = measure_hiccups(seconds)
    findings = examine(inspect_machine(hiccups))
    if json:
        typer.echo(as_json(findings))
    else:
        terminal.print(table(findings))


@lab.command()
def run(
    files: Annotated[list[Path], typer.Argument(metavar="RUN.toml", help="Run files; several take turns.")],
    *,
    repeats: Annotated[
        int | None, typer.Option(min=1, max=100, help="Repeats of each file; by default those of the first.")
    ] = None,
    out: Annotated[Path, _OUT] = _RUNS,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="COMMIT|DIR",
            help="Measure another version in turns, and compare: a commit, branch, tag, or folder of a checkout.",
        ),
    ] = None,
    prepare: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND", help="Command to run first in the worktree of --against, such as 'uv sync'."
        ),
    ] = None,
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Measure applications under a load, check their results, and write the measurements into folders.

    They run on this machine, or on a cluster that the run file names; everything started is removed at the end.
    Exit code 10 when a step misses its objective; 1 when results are wrong, and then nothing was measured.
    With --against, the output and exit code are those of `bettong lab compare`, and objectives are not judged.
    """
    from rich.console import Console

    from bettong.cli.lab.runs import run_against, run_each
    from bettong.lab.spec import read_all

    if against is None and prepare is not None:
        raise typer.BadParameter("--prepare runs in the worktree of a commit: name the commit by --against")
    terminal = Console(highlight=False, stderr=json)
    specs = read_all(files)
    count = repeats or specs[0].repeats
    with terminable_command():
        if against is None:
            run_each(terminal, specs, count, out, json=json)
        else:
            run_against(terminal, specs, files, against, prepare, count, out, json=json)


@lab.command()
def soak(
    file: Annotated[
        Path, typer.Argument(metavar="RUN.toml", help="The run file; its last step is extended.")
    ],
    *,
    hours: Annotated[float, typer.Option(min=0.01, max=1000, help="Duration of the whole run.")] = 1.0,
    out: Annotated[Path, _OUT] = _RUNS,
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Hold a rate for hours, and report whether memory, latency or lag grow, or throughput falls.

    Exit code 10 when one does, or may: the worse end of the 95 % interval of its slope counts.
    """
    from datetime import UTC, datetime

    from rich.console import Console

    from bettong.cli.fitting_tables import print_fitting
    from bettong.cli.lab.tables import growth_table
    from bettong.lab.folder import check_writable, results, save
    from bettong.lab.machine.facts import run_facts
    from bettong.lab.run import once
    from bettong.lab.spec import lasting
    from bettong.lab.spec import read as read_spec
    from bettong.lab.statistics.growing import faults_of, grown, notes_on

    terminal = Console(highlight=False, stderr=json)
    spec = lasting(read_spec(file), hours * 3600)
    check_writable(out)
    machine = run_facts()
    with terminable_command(), showing_progress(f"{spec.name}, {hours:g} hours") as say:
        repeat = once(spec, say=say)
    found = grown(repeat.series, spec.lasting_s, since_s=spec.lasting_s - spec.steps[-1].seconds)
    if json:
        print_json(found)
    else:
        print_fitting(terminal, growth_table(found))
    for note in notes_on(found):
        terminal.print(note, markup=False, soft_wrap=True)
    print_folder(terminal, save(out, spec, [repeat], results(spec, [repeat], machine, datetime.now(UTC))))
    exit_with_faults(terminal, "BROKEN", faults_of(found))


@lab.command()
def find(
    file: Annotated[
        Path, typer.Argument(metavar="RUN.toml", help="The run file, with the objective to meet.")
    ],
    *,
    first: Annotated[float, typer.Option("--from", min=1, max=1e9, help="The first rate to try.")] = 10_000.0,
    seconds: Annotated[float, typer.Option(min=1, max=3600, help="For how long each rate is held.")] = 20.0,
    precision: Annotated[
        float, typer.Option(min=1, max=100, help="Precision of the rate found, in percent.")
    ] = 10.0,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON for scripts: each rate, and why it was missed.")
    ] = False,
) -> None:
    """Find the highest rate that an application sustains: its objective is met, and its lag does not grow.

    Each rate is tried on a new suite, for the warm-up and --seconds. Exit code 10 when none is sustained.
    """
    from rich.console import Console

    from bettong.cli.lab.tables import probe_line
    from bettong.errors import BettongError, SettingsError
    from bettong.lab.finding import probe
    from bettong.lab.spec import read as read_spec
    from bettong.lab.statistics.search import Probe, next_rate, sustained

    terminal = Console(highlight=False, stderr=json)
    spec = read_spec(file)
    probes: list[Probe] = []
    limit = ""
    failure: BettongError | None = None
    while not limit and (rate := next_rate(probes, first, precision / 100)) is not None:
        try:
            with terminable_command(), showing_progress(f"{spec.name}: {rate:,.0f} messages/s") as say:
                probes.append(probe(spec, rate, seconds, say=say))
        except BettongError as error:
            if not probes:
                raise
            limit = str(error)
            # A load that cannot be made for so high a rate only ends the search.
            failure = None if isinstance(error, SettingsError) else error
        else:
            terminal.print(probe_line(probes[-1]), markup=False, soft_wrap=True)
    found = sustained(probes)
    if json:
        tried = [dataclasses.asdict(each) for each in probes]
        row = {"run": spec.name, "sustained": found, "limit": limit, "probes": tried}
        typer.echo(json_lines.dumps(row, indent=2))
    if found is not None:
        text = (
            f"at least {found:,.0f} messages/s; {limit}"
            if limit
            else f"{found:,.0f} messages/s, within {precision:g} %"
        )
        terminal.print(f"sustained: {text}", markup=False, soft_wrap=True)
    if failure is not None:
        raise failure
    if found is None:
        terminal.print("none of these rates is sustained")
        raise typer.Exit(BROKEN)


@lab.command()
def report(
    runs: Annotated[
        list[Path], typer.Argument(exists=True, help="Folders of runs, or results files of `make bench`.")
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(help="The page to write; by default report.html in the run's folder, or above several."),
    ] = None,
) -> None:
    """Write a page about runs: summary, latency percentiles, faults, resource usage over time, the machine."""
    from bettong.lab.folder import unwritable
    from bettong.lab.page.page import page
    from bettong.lab.results import results_file

    alone = len(runs) == 1 and runs[0].is_dir()
    made = out or (results_file(runs[0]) if alone else runs[0].resolve()).with_name("report.html")
    text = page(runs)
    try:
        made.write_text(text)
    except OSError as error:
        raise unwritable(made, error) from None
    typer.echo(made)


@lab.command()
def history(
    folder: Annotated[Path, typer.Argument(help="Folder of runs.")] = _RUNS,
    *,
    run: Annotated[
        str | None, typer.Option(help="The run's name; required if the folder has several.")
    ] = None,
    least: Annotated[float, _LEAST] = 2.0,
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Show each metric of a run over all its results, and at which of them it became better or worse.

    Results with other steps, settings, ... than the newest, or of another machine, are left out, and listed.
    """
    from rich.console import Console

    from bettong.cli.fitting_tables import print_fitting
    from bettong.cli.lab.tables import history_table
    from bettong.lab.history import histories
    from bettong.lab.results import asked_alike, read_all

    terminal = Console(highlight=False, stderr=json)
    alike, left_out = asked_alike(read_all(folder, run))
    found = histories(alike, least=least / 100)
    if json:
        print_json(found)
    else:
        print_fitting(terminal, history_table(found))
    for line in left_out:
        terminal.print(line, markup=False, soft_wrap=True)


@lab.command()
def compare(
    before: Annotated[Path, _RESULTS],
    after: Annotated[Path, _RESULTS],
    *,
    least: Annotated[float, _LEAST] = 2.0,
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Report which metrics differ between two results, by how much, and whether that is more than noise.

    Exit code 10 when a metric became worse.
    """
    from rich.console import Console

    from bettong.cli.lab.showing import exit_if_worse, print_comparison
    from bettong.lab.results import differences, read
    from bettong.lab.statistics.comparison import compare

    one, other = read(before), read(after)
    found = compare(one.metrics, other.metrics, least=least / 100)
    if json:
        print_json(found)
    else:
        print_comparison(Console(highlight=False), found, differences(one, other))
    exit_if_worse(found)
