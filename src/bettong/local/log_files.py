"""Log files that stay small, although their writers do not know of it."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

# As the broker keeps its own: three files of 20 MB.
LOG_BYTES_MAX = 20_000_000
LOGS_KEPT = 2
# Of a log that a full disk has no room to copy: enough for the last lines, with long stack traces.
_LAST_BYTES = 64 * 1024


def rotate(log: Path, *, bytes_max: int = LOG_BYTES_MAX, kept: int = LOGS_KEPT) -> bool:
    """Moves what a file holds into `log.1` when it has `bytes_max`, `log.1` into `log.2`; whether it did.

    Its writers append (O_APPEND) and go on in the same file, which is emptied. A line that is written between the
    last read and that, some microseconds, is lost; nothing else is.

    Where there is no room for a copy, as on a full disk, the file is emptied all the same, and its last part is kept
    if possible. Never raises.
    """
    try:
        if log.stat().st_size < bytes_max:
            return False
        try:
            _copy(log, kept)
        except OSError:
            _keep_last(log)
    except OSError:
        return False
    return True


def _copy(log: Path, kept: int) -> None:
    for number in range(kept - 1, 0, -1):
        older = numbered(log, number)
        if older.exists():
            older.replace(numbered(log, number + 1))
    with log.open("rb") as full, numbered(log, 1).open("wb") as copy:
        shutil.copyfileobj(full, copy)
        copy.flush()
        # What came meanwhile.
        copy.write(full.read())
        copy.flush()
        os.truncate(log, 0)


def _keep_last(log: Path) -> None:
    """Makes room: a copy that was begun is gone, the file is empty. Raises OSError when that cannot be."""
    with log.open("rb") as full:
        full.seek(max(0, full.seek(0, os.SEEK_END) - _LAST_BYTES))
        last = full.read(_LAST_BYTES)
    with suppress(OSError):
        numbered(log, 1).unlink(missing_ok=True)
    os.truncate(log, 0)
    with suppress(OSError):
        numbered(log, 1).write_bytes(last)


def numbered(log: Path, number: int) -> Path:
    """Where an older part of a log lies: 1 is the newest of them."""
    return log.with_name(f"{log.name}.{number}")
