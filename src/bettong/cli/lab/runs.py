"""`bettong lab run`: measures several run files in turns, or two versions of the source tree."""

from __future__ import annotations

import dataclasses
import json as json_lines
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
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
from bettong.cli.lab.tables import kept_note, repeats_note, results_table
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
            if found:
                terminal.print(kept_note(spec.name, len(found), repeats), markup=False, soft_wrap=True)
                print_folder(
                    terminal, save(out, spec, found, results(spec, found, machine, datetime.now(UTC)))
                )
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
        faults += missed(spec.objective, measured.latencies_ms)
    if json:
        typer.echo(json_lines.dumps(rows, indent=2))
    exit_with_faults(terminal, "missed", faults)


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
            for spec, folders in zip(specs, turns.joined(out), strict=False):
                terminal.print(kept_note(spec.name, turns.pairs, repeats), markup=False, soft_wrap=True)
                for folder in folders:
                    print_folder(terminal, folder)
            raise
        made = turns.joined(out)
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
