"""The folders of one run: its data, and its part of shared memory. Owned by one process at a time.

The owner locks a file in each folder; the kernel releases the lock when the owner ends, however it ends. So a temporary
folder that can be locked has no owner any more, and the next run removes it. The file also marks a suite's folder: a
folder that is not empty and has no mark is never used or removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import IO

from bettong.errors import LocalError
from bettong.local.record import FILES

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - shared memory is the point
_PREFIX = "bettong-run-"
_UNLOCKED = "bettong-new-"
_MARK = ".bettong-suite"

# All that a suite puts into its folder.
_ENTRIES = ("logs", "scratch", "kafka", "redis", "checkpoint", "results", "state", "secrets", *FILES, _MARK)


class Directories:
    """Makes the folders and locks them. `root` is `keep`, or a temporary folder; `state` is in shared memory, if any.

    Raises LocalError when another run owns `keep`, when `keep` holds other files, or cannot be made.
    """

    def __init__(self, keep: Path | None = None) -> None:
        self.kept = keep is not None
        self._locks: list[IO[str]] = []
        self._temporary: list[Path] = []
        sweep()
        try:
            self.root = self._made(keep) if keep is not None else self._new(Path(tempfile.gettempdir()))
            self.state = (self._new(SHARED_MEMORY) if SHARED_MEMORY.is_dir() else self.root) / "state"
        except BaseException:
            self.remove()
            raise

    @property
    def logs(self) -> Path:
        """The folder of the processes' logs."""
        return self.root / "logs"

    def reserve(self, application: str) -> None:
        """Assigns the folder to an application. Raises LocalError when it belongs to another one.

        Kafka's data there is of one application; another one would find topics and states that are not its own.
        """
        mark = self.root / _MARK
        holder = mark.read_text().strip()
        if holder and holder != application:
            raise LocalError(
                f"{self.root} holds application {holder!r}: give {application!r} a folder of its own with --dir DIR"
                f" (of `bettong run`: --keep DIR), or remove what is there: bettong down --remove --dir {self.root}"
            )
        mark.write_text(f"{application}\n")

    def remove(self) -> None:
        """Removes temporary folders and unlocks the others. Does nothing the second time."""
        for directory in self._temporary:
            shutil.rmtree(directory, ignore_errors=True)
        for lock in self._locks:
            lock.close()
        self._temporary, self._locks = [], []

    def _made(self, directory: Path) -> Path:
        directory = directory.resolve()
        claim(directory)
        self._locks.append(_owned(directory))
        return directory

    def _new(self, parent: Path) -> Path:
        unlocked = Path(tempfile.mkdtemp(prefix=_UNLOCKED, dir=parent))
        self._locks.append(_owned(unlocked))
        # Locked before it gets a name that another process's `sweep` would match.
        directory = unlocked.rename(parent / unlocked.name.replace(_UNLOCKED, _PREFIX, 1))
        self._temporary.append(directory)
        return directory


def sweep() -> None:
    """Removes the temporary folders of runs that were killed before they could remove them."""
    for parent in (Path(tempfile.gettempdir()), SHARED_MEMORY):
        for directory in parent.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):  # another user's, or its owner is removing it now
                found = directory.lstat()  # another user's link may lead anywhere
                mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
                lock = _locked(directory) if mine else None
                if lock is not None:
                    shutil.rmtree(directory, ignore_errors=True)
                    lock.close()


def claim(directory: Path) -> None:
    """Makes a suite's folder, or marks an empty one as such. Raises LocalError when it holds other files."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if not is_suite(directory) and (
            strange := sorted(path.name for path in directory.iterdir() if path.name not in FILES)
        ):
            raise LocalError(
                f"{directory} holds {', '.join(strange[:3])}{' ...' * (len(strange) > 3)} and no suite of"
                " Bettong's: give a new or an empty folder"
            )
        # It will hold the log, states and passwords of the suite. A folder that is refused keeps its mode.
        directory.chmod(0o700)
        (directory / _MARK).touch()
    except OSError as error:
        raise LocalError(f"{directory} cannot be used: {error}; choose another folder") from None


def is_suite(directory: Path) -> bool:
    """Whether the folder has a suite's mark."""
    return (directory / _MARK).is_file()


def remove_suite(directory: Path) -> list[Path]:
    """Removes a suite's files from its folder, and the folder if it is empty then; returns the other files in it.

    Raises LocalError for a folder that is not a suite's, that another process uses, or that cannot be removed.
    """
    if not is_suite(directory):
        raise LocalError(f"{directory} is no folder of a suite: remove it by hand if you mean to")
    try:
        with _owned(directory):
            return _remove_entries(directory)
    except OSError as error:
        raise LocalError(f"{directory} cannot be removed: {error}") from None


def _remove_entries(directory: Path) -> list[Path]:
    for name in _ENTRIES:
        path = directory / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    strange = sorted(directory.iterdir())
    if not strange:
        directory.rmdir()
    return strange


def _owned(directory: Path) -> IO[str]:
    """Locks a folder and returns the lock. Raises LocalError when another process holds it."""
    lock = _locked(directory)
    if lock is None:
        raise LocalError(
            f"another Bettong runs in {directory}: wait until it has ended, end it with `bettong down`, or use another"
            " folder"
        )
    return lock


def _locked(directory: Path) -> IO[str] | None:
    """Locks a folder and returns the lock; None when another process holds it."""
    lock = (directory / _MARK).open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock
