"""How much a contestant keeps: memory of all its processes, and what it has stored of its state.

Memory counts what a process shares with others by its part (PSS), where Linux tells it, and garbage that nobody has
collected yet. Stored is what a new start would read: the files of checkpoints, snapshots and state stores, old ones
that are kept beside the newest among them; for Bettong the snapshots in its Redis. Logs are not counted, neither
Bettong's own nor the changelog topics of Quix Streams.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from bettong.lab.target.sampling import own_pss_mb

# What a race measures beside speed, and in which unit.
METRICS = (("memory at the start", "MB"), ("memory at the end", "MB"), ("stored state", "MB"))

BYTES_OF_MB = 1 << 20


def memory_mb(pids: Iterable[int]) -> float:
    """Of these processes and all below them."""
    found = 0.0
    for pid in pids:
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                found += own_pss_mb(each) or each.memory_info().rss / BYTES_OF_MB
    return found


def bytes_below(folder: Path) -> int:
    """Of all files; what its owner removes meanwhile counts for nothing."""
    found = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            if path.is_file():
                found += path.stat().st_size
    return found
