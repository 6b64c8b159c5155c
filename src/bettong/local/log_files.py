"""Rotates log files without the help of the processes that write them."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

# As the broker keeps its own: three files of 20 MB.
LOG_BYTES_MAX = 20_000_000
LOGS_KEPT = 2
# What is kept of a log when a full disk has no room for a copy: the last lines, with long stack traces.
_LAST_BYTES = 64 * 1024


def rotate(log: Path, *, bytes_max: int = LOG_BYTES_MAX, kept: int = LOGS_KEPT) -> bool:
    """Once a log has `bytes_max`, copies it to `log.1`, moves `log.1` to `log.2`, and truncates it; whether it did.

    Its writers append (O_APPEND) and go on in the same file. Only a line written in the microseconds between the last
    read and the truncation is lost.

    Where there is no room for a copy, as on a full disk, the file is truncated all the same, and its last part is kept
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
        # Lines written during the copy.
        copy.write(full.read())
        copy.flush()
        os.truncate(log, 0)


def _keep_last(log: Path) -> None:
    """Frees disk space: removes an unfinished copy and truncates the log. Raises OSError when it cannot truncate."""
    with log.open("rb") as full:
        full.seek(max(0, full.seek(0, os.SEEK_END) - _LAST_BYTES))
        last = full.read(_LAST_BYTES)
    with suppress(OSError):
        numbered(log, 1).unlink(missing_ok=True)
    os.truncate(log, 0)
    with suppress(OSError):
        numbered(log, 1).write_bytes(last)


def numbered(log: Path, number: int) -> Path:
    """The path of a rotated part of a log; 1 is the newest."""
    return log.with_name(f"{log.name}.{number}")


def last_words(log: Path) -> str:
    """The last line of the log of a suite that has ended, or why there is none."""
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except FileNotFoundError:
        return "it was ended, and its folder removed"
    return lines[-1] if lines else "it printed nothing"
