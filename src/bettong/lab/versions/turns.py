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


class VersionTurns:
    """Measures run files in two versions. `scratch`: for the repeats' folders."""

    def __init__(self, before: Checkout, after: Checkout, files: Sequence[Path], scratch: Path) -> None:
        """Raises LabError if a version lacks a file."""
        self._versions = (before, after)
        self._files = files
        self._run_files = [[run_file(file, each, after) for each in self._versions] for file in files]
        self._contents = [each.content for each in self._versions]
        self._scratch = scratch
        # By file: the folders of both versions, a pair for each repeat.
        self._found: list[list[tuple[Path, Path]]] = [[] for _ in files]

    @property
    def pairs(self) -> int:
        """How many repeats of all files both versions have finished."""
        return min(map(len, self._found))

    def run(self, repeats: int, say: Callable[[str], None]) -> None:
        """Runs each file `repeats` times in both versions, which begin in turn, `before` first.

        Raises LabError if a repeat fails, or a version is changed meanwhile. `say`: called with what runs now.
        """
        for repeat in range(repeats):
            for number, file in enumerate(self._files):
                pair: dict[int, Path] = {}
                for side in (0, 1) if repeat % 2 == 0 else (1, 0):
                    version = self._versions[side]
                    say(f"{file}, repeat {repeat + 1} of {repeats}, {version.name}")
                    folder = self._scratch / f"{number}-{side}-{repeat}"
                    pair[side] = _repeat(version, self._run_files[number][side], folder)
                    if version.content != self._contents[side]:
                        raise LabError(
                            f"{version.name} was changed while it was measured: leave it alone until the end"
                        )
                self._found[number].append((pair[0], pair[1]))

    def joined(self, out: Path) -> list[tuple[Path, Path]]:
        """Joins the finished pairs of each file: the folders of its results in both versions. None without a pair."""
        return [
            (_joined(one, self._versions[0], out), _joined(other, self._versions[1], out))
            for one, other in (zip(*found[: self.pairs], strict=True) for found in self._found if self.pairs)
        ]


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
