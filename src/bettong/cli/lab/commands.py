"""`bettong lab`: what distorts measurements on this machine, and whether two of them differ."""

from __future__ import annotations

import dataclasses
import json as json_lines
from pathlib import Path
from typing import Annotated

import typer

from bettong.cli.exit_codes import BROKEN
from bettong.cli.lab.showing import end_with, print_json, say_where, saying

lab = typer.Typer(help="Measurements that can be trusted: what distorts them here, and whether two differ.")

_RESULTS = typer.Argument(help="The folder of a run, a results file, or a folder of either: its newest.")
_RUNS = Path("lab-results")
_OUT = typer.Option(help="Folder in which each run gets one of its own.")
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
        int | None, typer.Option(min=1, max=100, help="How often each; by default as the first file says.")
    ] = None,
    out: Annotated[Path, _OUT] = _RUNS,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="COMMIT|DIR",
            help="Take turns with another version, and compare: a commit, branch or tag, or a checkout's folder.",
        ),
    ] = None,
    prepare: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="Run first in the worktree of --against, such as 'uv sync'."),
    ] = None,
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Measure applications under a load, with checked results, and write all that was measured into folders.

    They run on this machine, or on a cluster that the run file names; all that was started goes at the end.
    Exit code 10 when a step misses its objective; 1 when results are wrong, and then nothing was measured.
    With --against it prints what `bettong lab compare` does, and ends as that does; no objective is judged.
    """
    from rich.console import Console

    from bettong.cli.lab.runs import run_against, run_each
    from bettong.lab.spec import read_all

    if against is None and prepare is not None:
        raise typer.BadParameter("--prepare is for the worktree of a commit: name one by --against")
    terminal = Console(highlight=False, stderr=json)
    specs = read_all(files)
    count = repeats or specs[0].repeats
    if against is None:
        run_each(terminal, specs, count, out, json=json)
    else:
        run_against(terminal, specs, files, against, prepare, count, out, json=json)


@lab.command()
def soak(
    file: Annotated[
        Path, typer.Argument(metavar="RUN.toml", help="The run file; its last step is made longer.")
    ],
    *,
    hours: Annotated[float, typer.Option(min=0.01, max=1000, help="How long it takes in all.")] = 1.0,
    out: Annotated[Path, _OUT] = _RUNS,
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Hold a rate for hours and say whether memory, latency or lag grow, or throughput falls.

    Exit code 10 when one does, or may: the end of its slope's 95 % interval that is worse counts.
    """
    from datetime import UTC, datetime

    from rich.console import Console

    from bettong.cli.fitting_tables import print_fitting
    from bettong.cli.lab.tables import growth_table
    from bettong.lab.folder import results, save
    from bettong.lab.machine.facts import run_facts
    from bettong.lab.run import once
    from bettong.lab.spec import lasting
    from bettong.lab.spec import read as read_spec
    from bettong.lab.statistics.growing import grown

    terminal = Console(highlight=False, stderr=json)
    spec, machine = lasting(read_spec(file), hours * 3600), run_facts()
    with saying(f"{spec.name}, {hours:g} hours") as say:
        repeat = once(spec, say=say)
    found = grown(repeat.series, hours * 3600)
    made = save(out, spec, [repeat], results(spec, [repeat], machine, datetime.now(UTC)))
    if json:
        print_json(found)
    else:
        print_fitting(terminal, growth_table(found))
    say_where(terminal, made)
    faults = [each.fault for each in found if each.fault]
    end_with(terminal, "BROKEN", faults)


@lab.command()
def find(
    file: Annotated[
        Path, typer.Argument(metavar="RUN.toml", help="The run file; its objective is what counts.")
    ],
    *,
    first: Annotated[float, typer.Option("--from", min=1, help="The rate that is tried first.")] = 10_000.0,
    seconds: Annotated[float, typer.Option(min=1, max=3600, help="How long each rate is held.")] = 20.0,
    precision: Annotated[float, typer.Option(min=1, max=100, help="How near to come, in percent.")] = 10.0,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON for scripts: each rate, met or why not.")
    ] = False,
) -> None:
    """Find the highest rate that an application sustains: within its objective, and without a lag that grows.

    Each rate is tried on a suite of its own, for the warm-up and --seconds. Exit code 10 when none is sustained.
    """
    from rich.console import Console

    from bettong.cli.lab.tables import probe_line
    from bettong.lab.finding import probe
    from bettong.lab.spec import read as read_spec
    from bettong.lab.statistics.search import Probe, next_rate, sustained

    terminal = Console(highlight=False, stderr=json)
    spec = read_spec(file)
    probes: list[Probe] = []
    while (rate := next_rate(probes, first, precision / 100)) is not None:
        with saying(f"{spec.name}: {rate:,.0f} messages/s") as say:
            probes.append(probe(spec, rate, seconds, say=say))
        terminal.print(probe_line(probes[-1]), markup=False, soft_wrap=True)
    found = sustained(probes)
    if json:
        tried = [dataclasses.asdict(each) for each in probes]
        typer.echo(json_lines.dumps({"run": spec.name, "sustained": found, "probes": tried}, indent=2))
    if found is None:
        terminal.print("none of these rates is sustained")
        raise typer.Exit(BROKEN)
    terminal.print(f"sustained: {found:,.0f} messages/s, within {precision:g} %")


@lab.command()
def report(
    runs: Annotated[
        list[Path], typer.Argument(exists=True, help="Folders of runs, or results files of `make bench`.")
    ],
    *,
    out: Annotated[
        Path | None, typer.Option(help="The page; by default report.html in the folder, of several above it.")
    ] = None,
) -> None:
    """Make a page of runs: summary, latencies by percentile, faults, what was used over time, the machine."""
    from bettong.lab.page.page import page

    alone = len(runs) == 1 and runs[0].is_dir()
    made = out or (runs[0] if alone else runs[0].parent) / "report.html"
    made.write_text(page(runs))
    typer.echo(made)


@lab.command()
def history(
    folder: Annotated[Path, typer.Argument(help="Folder of runs.")] = _RUNS,
    *,
    run: Annotated[
        str | None, typer.Option(help="The run's name; needed where the folder holds several.")
    ] = None,
    least: Annotated[float, _LEAST] = 2.0,
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Show each metric of a run through all its results, and from which one on it is better or worse.

    Results that were not run as the newest is (steps, settings, ...) are left out, and it says so.
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
    """Say which metrics differ between two results, by how much, and whether that is more than noise.

    Exit code 10 when a metric became worse.
    """
    from rich.console import Console

    from bettong.cli.lab.showing import end_compared, print_comparison
    from bettong.lab.results import differences, read
    from bettong.lab.statistics.comparison import compare

    one, other = read(before), read(after)
    found = compare(one.metrics, other.metrics, least=least / 100)
    if json:
        print_json(found)
    else:
        print_comparison(Console(highlight=False), found, differences(one, other))
    end_compared(found)
