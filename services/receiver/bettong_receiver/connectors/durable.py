"""Files that a crash leaves whole, and folders that one receiver at a time writes to."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from bettong_receiver.errors import SinkError


def replace(path: Path, content: bytes) -> None:
    """Replaces a file whole or not at all: rename(2) is atomic, and comes after the content is on the disk.

    A loss of power may bring the file before back, until its folder is synced.
    """
    new = path.with_name(f"{path.name}-new")
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(folder: Path, *, remedy: str) -> int:
    """A descriptor that holds the folder's lock, which goes with the process that holds it, however that ends.

    Raises SinkError, with the remedy, when another one has it.
    """
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor
    os.close(descriptor)
    raise SinkError(f"{folder}: another receiver writes here; {remedy}")
