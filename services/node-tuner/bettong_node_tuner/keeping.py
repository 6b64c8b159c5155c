"""The journal on disk: one file, written as a whole and atomically, for this boot."""

import fcntl
import os
from pathlib import Path
from typing import Self

from bettong_node_tuner.errors import JournalError
from bettong_node_tuner.journal import Journal, from_text, to_text

NAME = "journal.json"
EARLIER = "journal.earlier-boot.json"
_LOCK = "lock"


class Keeping:
    """The journal's folder, held by one tuner at a time: a context manager. Raises JournalError with a remedy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock: int | None = None

    def __enter__(self) -> Self:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self._folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise JournalError(
                f"{self._folder}: another tuner holds the journal; stop it first, or let it tune the node"
            ) from None
        except OSError as error:
            self.close()
            raise JournalError(
                f"{self._folder}: cannot be written ({error}); give another --journal"
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Releases the folder to other tuners."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def load(self, boot: str) -> Journal:
        """The journal of this boot. One of an earlier boot is moved aside: the kernel has restarted since."""
        found = self.read(boot)
        if found is None:
            (self._folder / NAME).replace(self._folder / EARLIER)
            return Journal(boot)
        return found

    def read(self, boot: str) -> Journal | None:
        """The journal of this boot, empty where there is none; None when it is of an earlier boot. Changes nothing."""
        path = self._folder / NAME
        try:
            found = from_text(path.read_text())
        except FileNotFoundError:
            return Journal(boot)
        except OSError as error:
            raise JournalError(f"{path}: cannot be read ({error})") from error
        except JournalError as error:
            raise JournalError(
                f"{path}: {error}. It has the values to restore, so nothing is written without it: read it, set"
                " the old values by hand, and move it away"
            ) from error
        return found if found.boot == boot else None

    def save(self, journal: Journal) -> None:
        """Writes it to disk, whole or not at all: rename(2), with file and folder synced."""
        path, fresh = self._folder / NAME, self._folder / f"{NAME}.new"
        try:
            descriptor = os.open(fresh, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(to_text(journal))
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
            folder = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise JournalError(
                f"{path}: cannot be written ({error}); nothing more is changed without a journal"
            ) from error
