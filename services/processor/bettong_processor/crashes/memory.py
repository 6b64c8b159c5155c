"""Memory that is available to this process, and that another one uses: from proc(5) and control groups."""

import os
from pathlib import Path

_PROC = Path("/proc")
_GROUPS = Path("/sys/fs/cgroup")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def left_bytes(proc: Path = _PROC, groups: Path = _GROUPS) -> int:
    """How much this process may still allocate before the kernel kills a process, of the machine or of its cgroup.

    The page cache counts as available, for the kernel reclaims it; shared memory does not.
    """
    machine = _numbers(proc / "meminfo").get("MemAvailable:", 0) * 1024
    path = next((line[3:] for line in _lines(proc / "self/cgroup") if line.startswith("0::")), "/")
    group = groups / path.strip().lstrip("/")
    limit = next(iter(_lines(group / "memory.max")), "max").strip()
    if not limit.isdecimal():
        return machine
    stat = _numbers(group / "memory.stat")
    current = int(next(iter(_lines(group / "memory.current")), "0"))
    return min(machine, int(limit) - current + stat.get("file", 0) - stat.get("shmem", 0))


def resident_bytes(pid: int, proc: Path = _PROC) -> int:
    """The resident set size of a process; 0 when it has ended."""
    found = next(iter(_lines(proc / str(pid) / "statm")), "0 0").split()
    return int(found[1]) * _PAGE_BYTES


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _numbers(path: Path) -> dict[str, int]:
    return {words[0]: int(words[1]) for line in _lines(path) if len(words := line.split()) >= 2}
