"""Runs two versions in turns, so that a machine that drifts slows both. Each runs its own `bettong lab run`.

    before, after, after, before, ...  ──> a folder for each repeat ──> joined: a folder for each version

The version's own code runs, measures and writes a repeat. Here only the folders are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bettong.errors import LabError
from bettong.lab.folder import RESULTS, join_repeats
from bettong.lab.versions.checkouts import Checkout, run_file, run_to_end
from bettong.local.processes import Command

# From SIGTERM to SIGKILL: a suite needs a minute, a release on a cluster some more.
_STOP_S_MAX = 600.0


@dataclass(frozen=True, slots=True)
class _Version:
    """A version as it was when the turns began. `label`: its commit, or how the user named it."""

    checkout: Checkout
    label: str
    facts: Mapping[str, str]
    content: str

    @classmethod
    def of(cls, checkout: Checkout) -> Self:
        return cls(checkout, checkout.commit or checkout.name, checkout.facts, checkout.content)

    def join(self, repeats: Sequence[Path], out: Path) -> Path:
        return join_repeats(repeats, out, self.label, self.facts)


class VersionTurns:
    """Measures run files in two versions. `scratch`: for the repeats' folders."""

    def __init__(self, before: Checkout, after: Checkout, files: Sequence[Path], scratch: Path) -> None:
        """Raises LabError if a version lacks a file."""
        self._run_files = [[run_file(file, each, after) for each in (before, after)] for file in files]
        self._files = files
        self._versions = (_Version.of(before), _Version.of(after))
        self._scratch = scratch
        # By file: the folders of both versions, a pair for each repeat.
        self.finished: list[list[tuple[Path, Path]]] = [[] for _ in files]

    def run(self, repeats: int, say: Callable[[str], None]) -> None:
        """Runs each file `repeats` times in both versions, which begin in turn, `before` first.

        Raises LabError if a repeat fails, or a version is changed meanwhile. `say`: called with what runs now.
        """
        for repeat in range(repeats):
            for number, file in enumerate(self._files):
                pair: dict[int, Path] = {}
                for side in (0, 1) if repeat % 2 == 0 else (1, 0):
                    version = self._versions[side]
                    say(f"{file}, repeat {repeat + 1} of {repeats}, {version.checkout.name}")
                    folder = self._scratch / f"{number}-{side}-{repeat}"
                    pair[side] = _repeat(version.checkout, self._run_files[number][side], folder)
                    if version.checkout.content != version.content:
                        raise LabError(
                            f"{version.checkout.name} was changed while it was measured: leave it alone until the end"
                        )
                self.finished[number].append((pair[0], pair[1]))

    def join(self, pairs: Sequence[tuple[Path, Path]], out: Path) -> tuple[Path, Path]:
        """Joins the finished pairs of a file, one at least: the folders of its results in both versions."""
        before, after = zip(*pairs, strict=True)
        return self._versions[0].join(before, out), self._versions[1].join(after, out)


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
