"""Log files that stay small, although their writers do not know of it."""

import contextlib
import os
import shutil
from pathlib import Path

# As the broker keeps its own: three files of 20 MB.
LOG_BYTES_MAX = 20_000_000
LOGS_KEPT = 2


def rotate(log: Path, *, bytes_max: int = LOG_BYTES_MAX, kept: int = LOGS_KEPT) -> bool:
    """Moves what a file holds into `log.1` when it has `bytes_max`, `log.1` into `log.2`; whether it did.

    Its writers append (O_APPEND) and go on in the same file, which is emptied. A line that is written between the
    last read and that, some microseconds, is lost; nothing else is.
    """
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size < bytes_max:
            return False
        for number in range(kept - 1, 0, -1):
            older = numbered(log, number)
            if older.exists():
                older.replace(numbered(log, number + 1))
        with log.open("rb") as full, numbered(log, 1).open("wb") as copy:
            shutil.copyfileobj(full, copy)
            copy.flush()
            # What came meanwhile.
            copy.write(full.read())
            os.truncate(log, 0)
        return True
    return False


def numbered(log: Path, number: int) -> Path:
    """Where an older part of a log lies: 1 is the newest of them."""
    return log.with_name(f"{log.name}.{number}")
