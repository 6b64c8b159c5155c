"""The files of the tree, as rules of style read them."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Source:
    """One file of the tree, by its path from the root."""

    path: PurePosixPath
    text: str

    @property
    def is_python(self) -> bool:
        return self.path.suffix == ".py"

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of a Python file; none of any other."""
        return list(ast.walk(self.tree)) if self.is_python else []

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=str(self.path))


Finding = tuple[int, str]  # line, what is wrong and what to do
Rule = Callable[[Source], Iterator[Finding]]


def files_of_the_tree(root: Path) -> list[PurePosixPath]:
    """What git tracks, and what it would track: untracked files that nothing ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    return [PurePosixPath(name) for name in sorted(set(done.stdout.split("\0"))) if (root / name).is_file()]


@cache
def sources() -> tuple[Source, ...]:
    """Every text file of the tree; files that are not UTF-8 are data."""
    found = []
    for path in files_of_the_tree(ROOT):
        try:
            found.append(Source(path, (ROOT / path).read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return tuple(found)
