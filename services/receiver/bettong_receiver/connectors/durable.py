"""Atomic, durable file replacement, and locks that let only one receiver at a time write to a folder."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from bettong_receiver.errors import SinkError


def replace(path: Path, content: bytes) -> None:
    """Replaces a file atomically: rename(2) is atomic, and comes after the content is on the disk.

    A power failure may bring the old file back until its folder is synced.
    """
    new = path.with_name(f"{path.name}-new")
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def sync_folder(folder: Path) -> None:
    """Makes new, renamed and deleted names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(folder: Path, *, remedy: str) -> int:
    """Locks a folder and returns the descriptor that holds the lock. The kernel releases it when the process ends.

    Raises SinkError, with the remedy, when another process holds the lock.
    """
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor
    os.close(descriptor)
    raise SinkError(f"{folder}: another receiver writes here; {remedy}")
