"""How much memory is left for this process, and how much another one has: proc(5), and the kernel's control groups."""

import os
from pathlib import Path

_PROC = Path("/proc")
_GROUPS = Path("/sys/fs/cgroup")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def left_bytes(proc: Path = _PROC, groups: Path = _GROUPS) -> int:
    """What this process may still take before the kernel ends one: of the machine, and of its own control group.

    What files have in memory counts as left, for the kernel gives it back; shared memory does not.
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
    """What a process has in memory; 0 when it is gone."""
    found = next(iter(_lines(proc / str(pid) / "statm")), "0 0").split()
    return int(found[1]) * _PAGE_BYTES


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _numbers(path: Path) -> dict[str, int]:
    return {words[0]: int(words[1]) for line in _lines(path) if len(words := line.split()) >= 2}
