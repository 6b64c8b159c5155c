"""Asks git about a folder, and makes worktrees: temporary checkouts of other commits."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from bettong.errors import LabError
from bettong.lab.results import COMMIT, COMMITTED

_ASK_S_MAX = 60.0
# The user's hooks are for checkouts that somebody works in.
_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")


def toplevel(folder: Path) -> Path | None:
    """The root of the working tree that contains the folder; None if none does."""
    found = _output(folder, "rev-parse", "--show-toplevel")
    return Path(found).resolve() if found else None


def described(folder: Path) -> str | None:
    """The commit that is checked out, marked if files have changed since; None without git."""
    return _output(folder, "describe", "--always", "--dirty")


def commit_facts(folder: Path) -> dict[str, str]:
    """The commit that is checked out and its time, as results record them; empty without git."""
    commit, seconds = described(folder), _output(folder, "show", "--no-patch", "--format=%ct", "HEAD")
    if commit is None or seconds is None:
        return {}
    return {COMMIT: commit, COMMITTED: datetime.fromtimestamp(int(seconds), UTC).isoformat()}


def commit_of(folder: Path, name: str) -> str | None:
    """The commit that a branch, a tag or an abbreviated hash names; None if there is none."""
    return _output(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")


def changed_files(folder: Path) -> list[str]:
    """Changed and untracked files, relative to the root of the working tree."""
    return [line[3:] for line in (_output(folder, "status", "--porcelain") or "").splitlines()]


def content(folder: Path) -> str:
    """A text that changes when a tracked file does, or another commit is checked out; "" without git."""
    commit = _output(folder, "rev-parse", "HEAD")
    return "" if commit is None else commit + (_output(folder, "diff", "--no-ext-diff", "HEAD") or "")


@contextmanager
def worktree(root: Path, commit: str, folder: Path) -> Iterator[None]:
    """Checks the commit out into a new folder; removes that, and git's record of it, when the context exits.

    Raises LabError when git refuses.
    """
    try:
        ended = _git(root, None, *_NO_HOOKS, "worktree", "add", "--detach", str(folder), commit)
        if ended.returncode:
            raise LabError(f"git cannot make a worktree of {commit}: {ended.stderr.strip()}")
        yield
    finally:
        # Twice: git locks the worktree while it makes it.
        _git(root, None, "worktree", "remove", "--force", "--force", str(folder))


def _output(folder: Path, *words: str) -> str | None:
    """The output of git without the last newline; None if it fails or is not installed."""
    try:
        ended = _git(folder, _ASK_S_MAX, *words)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout.rstrip("\n") if ended.returncode == 0 else None


def _git(folder: Path, seconds_max: float | None, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs git in its own session, so that a Ctrl-C in the terminal reaches only us."""
    return subprocess.run(
        ("git", "-C", str(folder), *words),
        check=False,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=seconds_max,
        start_new_session=True,
    )
