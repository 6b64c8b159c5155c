"""`bettong lab run`: measures several run files in turns, or two versions of the source tree."""

from __future__ import annotations

import dataclasses
import json as json_lines
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import typer
from rich.console import Console

from bettong.cli.fitting_tables import print_fitting
from bettong.cli.lab.showing import (
    exit_if_worse,
    exit_with_faults,
    print_comparison,
    print_folder,
    showing_progress,
)
from bettong.cli.lab.tables import repeats_note, results_table
from bettong.errors import LabError
from bettong.lab.folder import check_writable, results, save
from bettong.lab.machine.facts import run_facts
from bettong.lab.results import differences, read
from bettong.lab.run import Repeat, once
from bettong.lab.spec import RunSpec
from bettong.lab.statistics.comparison import Comparison, check_installed, compare
from bettong.lab.statistics.objective import missed
from bettong.lab.tails import tail_notes
from bettong.lab.versions.checkouts import other, this_tree
from bettong.lab.versions.turns import VersionTurns


def run_each(terminal: Console, specs: Sequence[RunSpec], repeats: int, out: Path, *, json: bool) -> None:
    """Runs each spec `repeats` times, in turns, and prints its results; exits with the code of missed objectives.

    Finished repeats are saved, too, when a later one fails or is interrupted.
    """
    check_writable(out)
    machine = run_facts()
    repeated: list[list[Repeat]] = [[] for _ in specs]
    try:
        for number in range(repeats):
            for spec, found in zip(specs, repeated, strict=True):
                with showing_progress(f"{spec.name}, repeat {number + 1} of {repeats}") as say:
                    found.append(once(spec, say=say))
    except BaseException:
        for spec, found in zip(specs, repeated, strict=True):
            _keep(terminal, spec.name, len(found), repeats, partial(_saved, out, spec, found, machine))
        raise
    faults, rows = [], []
    for spec, found in zip(specs, repeated, strict=True):
        measured = results(spec, found, machine, datetime.now(UTC))
        rows.append(measured.model_dump(mode="json"))
        if not json:
            print_fitting(terminal, results_table(measured))
        print_folder(terminal, save(out, spec, found, measured))
        names = [each.name for each in measured.measurements]
        for note in filter(None, (*tail_notes(measured), repeats_note(names, repeats))):
            terminal.print(note, markup=False, soft_wrap=True)
        faults += missed(spec.objective, measured.latencies_ms, spec.judged_steps)
    if json:
        typer.echo(json_lines.dumps(rows, indent=2))
    exit_with_faults(terminal, "missed", faults)


def _saved(out: Path, spec: RunSpec, found: Sequence[Repeat], machine: dict[str, str]) -> Sequence[Path]:
    return [save(out, spec, found, results(spec, found, machine, datetime.now(UTC)))]


def _keep(
    terminal: Console, run: str, finished: int, repeats: int, saved: Callable[[], Sequence[Path]]
) -> None:
    """Saves the finished repeats of a run that fails. If that fails, too, prints why: the run's own error is raised."""
    if not finished:
        return
    try:
        folders = saved()
    except (LabError, OSError) as error:
        terminal.print(
            f"{run}: {finished} of {repeats} repeats are lost: {error}", markup=False, soft_wrap=True
        )
        return
    terminal.print(f"{run}: kept {finished} of {repeats} repeats", markup=False, soft_wrap=True)
    for folder in folders:
        print_folder(terminal, folder)


def run_against(
    terminal: Console,
    specs: Sequence[RunSpec],
    files: Sequence[Path],
    against: str,
    prepare: str | None,
    repeats: int,
    out: Path,
    *,
    json: bool,
) -> None:
    """Runs the files in both versions, prints each file's comparison, and exits as `bettong lab compare` does."""
    check_installed()
    check_writable(out)
    here = this_tree()
    with ExitStack() as opened:
        scratch = Path(opened.enter_context(TemporaryDirectory(prefix="bettong-lab-")))
        with showing_progress(against) as say:
            say("preparing its tree")
            before = opened.enter_context(other(against, here, prepare))
        for word, version in (("before", before), ("after", here)):
            terminal.print(f"{word}: {version}", markup=False, soft_wrap=True)
        turns = VersionTurns(before, here, files, scratch)
        try:
            with showing_progress(f"in turns with {against}") as say:
                turns.run(repeats, say)
        except BaseException:
            for spec, pairs in zip(specs, turns.finished, strict=True):
                _keep(terminal, spec.name, len(pairs), repeats, partial(turns.join, pairs, out))
            raise
        made = [turns.join(pairs, out) for pairs in turns.finished]
    compared: list[Comparison] = []
    rows = []
    for spec, folders in zip(specs, made, strict=True):
        one, another = map(read, folders)
        found = compare(one.metrics, another.metrics)
        compared += found
        rows += [{"run": spec.name, **dataclasses.asdict(each)} for each in found]
        if not json:
            terminal.print(spec.name, style="bold", markup=False)
            print_comparison(terminal, found, differences(one, another))
        for folder in folders:
            print_folder(terminal, folder)
    if json:
        typer.echo(json_lines.dumps(rows, indent=2))
    exit_if_worse(compared)
