"""The folder of compiled functions, which are code: used only where no other user can have written them."""

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def kernel_folder(cache: Path, report: Callable[[str], object] = sys.stderr.write) -> Path | None:
    """The folder of `BETTONG_KERNEL_CACHE`, closed to others; None where it cannot be trusted or made.

    Then functions are compiled at each start, and `report` gets a line that says why. Files in it that others may
    have written are removed: they are compiled again.
    """
    folder = folder_of(cache)
    if folder is None:
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about, above = folder.lstat(), folder.resolve().parent.stat()
        # Who may rename the folder may put another one there; in a sticky one (/tmp) only its owner may.
        open_above = above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid() or open_above:
            report(
                f"BETTONG_KERNEL_CACHE: {folder} is another user's, a link, or where all may write: nothing is"
                " kept there, functions are compiled at each start; name a folder of your own\n"
            )
            return None
        folder.chmod(0o700)
        for path in folder.rglob("*"):
            found = path.lstat()
            if found.st_uid != os.geteuid() or (
                found.st_mode & _OTHERS_MAY_WRITE and not stat.S_ISDIR(found.st_mode)
            ):
                path.unlink(missing_ok=True)
    except OSError:
        # No home that can be written: nothing is kept, as in a container.
        return None
    return folder


def folder_of(cache: Path) -> Path | None:
    """The folder with `~` resolved; None, that is no cache, for a user without a home."""
    try:
        return cache.expanduser()
    except RuntimeError:
        return None
