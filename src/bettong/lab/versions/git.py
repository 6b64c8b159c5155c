"""What git says of a folder, and worktrees: checkouts of other commits that go when they are no longer needed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from bettong.errors import LabError
from bettong.lab.results import COMMIT, COMMITTED

_ASK_S_MAX = 60.0
# Hooks of the user's are for a checkout that somebody works in.
_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")


def toplevel(folder: Path) -> Path | None:
    """The root of the working tree that the folder lies in; None where it lies in none."""
    found = _said(folder, "rev-parse", "--show-toplevel")
    return Path(found).resolve() if found else None


def described(folder: Path) -> str | None:
    """The commit that is checked out, and whether it was changed since; None where there is none."""
    return _said(folder, "describe", "--always", "--dirty")


def commit_facts(folder: Path) -> dict[str, str]:
    """The commit that is checked out and when it was made, as results have them; empty where there is none."""
    commit, seconds = described(folder), _said(folder, "show", "--no-patch", "--format=%ct", "HEAD")
    if commit is None or seconds is None:
        return {}
    return {COMMIT: commit, COMMITTED: datetime.fromtimestamp(int(seconds), UTC).isoformat()}


def commit_of(folder: Path, name: str) -> str | None:
    """The commit of a branch, a tag or a part of its number; None where it names none."""
    return _said(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")


def changed_files(folder: Path) -> list[str]:
    """What is not as it was committed, or not committed at all; from the root of the working tree."""
    return [line[3:] for line in (_said(folder, "status", "--porcelain") or "").splitlines()]


def content(folder: Path) -> str:
    """Another one when what is committed was changed, or another commit is checked out; "" where there is no git."""
    commit = _said(folder, "rev-parse", "HEAD")
    return "" if commit is None else commit + (_said(folder, "diff", "--no-ext-diff", "HEAD") or "")


@contextmanager
def worktree(root: Path, commit: str, folder: Path) -> Iterator[None]:
    """Checks the commit out into a folder that is not there yet; removes it, and what git knows of it, when it is left.

    Raises LabError when git refuses.
    """
    try:
        ended = _git(root, None, *_NO_HOOKS, "worktree", "add", "--detach", str(folder), commit)
        if ended.returncode:
            raise LabError(f"no worktree of {commit} can be made: {ended.stderr.strip()}")
        yield
    finally:
        # Twice: it is locked while it is made.
        _git(root, None, "worktree", "remove", "--force", "--force", str(folder))


def _said(folder: Path, *words: str) -> str | None:
    """What git answers, without the newline; None where it has no answer, or is not there."""
    try:
        ended = _git(folder, _ASK_S_MAX, *words)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout.rstrip("\n") if ended.returncode == 0 else None


def _git(folder: Path, seconds_max: float | None, *words: str) -> subprocess.CompletedProcess[str]:
    """In a session of its own, so that a Ctrl-C in the terminal reaches only us."""
    return subprocess.run(
        ("git", "-C", str(folder), *words),
        check=False,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=seconds_max,
        start_new_session=True,
    )
