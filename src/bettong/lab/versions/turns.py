"""Runs two versions in turns, so that a machine that drifts slows both. Each runs its own `bettong lab run`.

    before, after, after, before, ...  ──> a folder for each repeat ──> joined: a folder for each version

The version's own code runs, measures and writes a repeat. Here only the folders are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bettong.errors import LabError
from bettong.lab.folder import RESULTS, join_repeats
from bettong.lab.versions.checkouts import Checkout, run_file, run_to_end
from bettong.local.processes import Command

# From SIGTERM to SIGKILL: a suite needs a minute, a release on a cluster some more.
_STOP_S_MAX = 600.0


def in_turns(
    before: Checkout,
    after: Checkout,
    files: Sequence[Path],
    repeats: int,
    *,
    scratch: Path,
    out: Path,
    say: Callable[[str], None],
) -> list[tuple[Path, Path]]:
    """Runs each file `repeats` times in both versions; returns the folders of each file's results, `before` first.

    The versions begin in turn, `before` first. Raises LabError if a repeat fails, or a version is changed meanwhile.
    `scratch`: for the repeats' folders. `say`: called with what runs now.
    """
    versions = (before, after)
    run_files = [[run_file(file, each, after) for each in versions] for file in files]
    contents = [each.content for each in versions]
    found: list[tuple[list[Path], list[Path]]] = [([], []) for _ in files]
    for repeat in range(repeats):
        for number, file in enumerate(files):
            for side in (0, 1) if repeat % 2 == 0 else (1, 0):
                version = versions[side]
                say(f"{file}, repeat {repeat + 1} of {repeats}, {version.name}")
                folder = scratch / f"{number}-{side}-{repeat}"
                found[number][side].append(_repeat(version, run_files[number][side], folder))
                if version.content != contents[side]:
                    raise LabError(
                        f"{version.name} was changed while it was measured: leave it alone until the end"
                    )
    return [(_joined(one, before, out), _joined(other, after, out)) for one, other in found]


def _joined(repeats: Sequence[Path], version: Checkout, out: Path) -> Path:
    return join_repeats(repeats, out, version.commit or version.name, version.facts)


def _repeat(version: Checkout, file: Path, folder: Path) -> Path:
    """Runs one repeat into its own folder. A missed objective is no failure: it leaves results, too."""
    words = ("-m", "bettong", "lab", "run", str(file), "--repeats", "1", "--out", str(folder))
    ended = run_to_end(
        Command(
            "lab run",
            (version.python, *words),
            folder.with_suffix(".log"),
            version.environment,
            version.folder,
            stop_s_max=_STOP_S_MAX,
        )
    )
    made = list(folder.glob(f"*/{RESULTS}"))
    if len(made) != 1:
        output = " | ".join(ended.tail()).rpartition("bettong: error: ")[2]  # without the steps before it
        raise LabError(f"{version.name}: `bettong lab run` ended with {ended.ending}: {output}")
    return made[0].parent
