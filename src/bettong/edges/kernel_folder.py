"""The folder of compiled functions. These are code, so it is used only if no other user can have written them."""

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def kernel_folder(cache: Path, report: Callable[[str], object] = sys.stderr.write) -> Path | None:
    """The folder of `BETTONG_KERNEL_CACHE`, closed to other users; None if it cannot be trusted or created.

    Then functions are compiled at each start; `report` gets a line with the cause if it cannot be trusted. Files in it
    that others may have written are removed, and compiled again.
    """
    folder = folder_of(cache)
    if folder is None:
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about, above = folder.lstat(), folder.resolve().parent.stat()
        # Users who may rename the folder could replace it; in a sticky parent (/tmp) only the owner may.
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
        # The home directory is not writable, as in a container: no cache.
        return None
    return folder


def folder_of(cache: Path) -> Path | None:
    """The folder with `~` expanded; None, for no cache, if the user has no home directory."""
    try:
        return cache.expanduser()
    except RuntimeError:
        return None
