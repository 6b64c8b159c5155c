"""How much memory the kernel's control groups leave to this process: what a container has, not its machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_ROOT = Path("/")


def memory_limit_bytes(root: Path = _ROOT) -> int | None:
    """The least limit of its groups, of both versions; None where there is none, as outside of Linux.

    A group that is not seen from here (a container sees itself as the root) counts by those above it.
    """
    found = [limit for path in _files(root) if (limit := _number(path)) is not None]
    return min(found, default=None)


def _files(root: Path) -> Iterator[Path]:
    """Of its group, and of each above it, where the limit would be."""
    groups = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0":
            base, name = groups, "memory.max"
        elif "memory" in controllers.split(","):
            base, name = groups / "memory", "memory.limit_in_bytes"
        else:
            continue
        own = PurePosixPath(path.lstrip("/"))
        for group in (own, *own.parents):
            if ".." not in group.parts:
                yield base / group / name


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None  # "max": no limit


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
