"""The memory limit that the kernel's control groups set for this process: the container's, not the machine's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_ROOT = Path("/")


def memory_limit_bytes(root: Path = _ROOT) -> int | None:
    """The lowest limit of this process's groups, of cgroup v1 or v2; None without a limit, as outside Linux.

    A group that is not visible here (a container sees itself as the root) is replaced by its visible ancestors.
    """
    found = [limit for path in _files(root) if (limit := _number(path)) is not None]
    return min(found, default=None)


def _files(root: Path) -> Iterator[Path]:
    """The files that hold the limits of this process's groups and of their ancestors."""
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
