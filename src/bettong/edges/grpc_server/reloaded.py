"""Files that are read again when they change."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from bettong.errors import SettingsError
from bettong.logs import Logger

_Content = TypeVar("_Content")
_Signature = tuple[tuple[int, int, int] | None, ...]


class Reloaded(Generic[_Content]):
    """What `read` makes of files, and makes anew once one of them has changed. Safe to ask from several threads.

    `read` raises SettingsError for files that are wrong. At first that is the caller's; later what was right before
    stays in force, and the log says so, once a change.
    """

    def __init__(self, paths: Sequence[Path], read: Callable[[], _Content], log: Logger) -> None:
        self._paths = paths
        self._read = read
        self._log = log
        self._lock = threading.Lock()
        self._seen = self._signature()
        self._content = read()

    def current(self) -> _Content:
        """The newest content that was right. Looks at the files: a few microseconds unless one has changed."""
        with self._lock:
            signature = self._signature()
            if signature != self._seen:
                self._seen = signature
                self._renew()
            return self._content

    def _renew(self) -> None:
        names = [str(path) for path in self._paths]
        try:
            self._content = self._read()
        except SettingsError as error:
            # A file that is still being written changes once more, and is read again then.
            self._log.error("changed files are invalid; the previous content stays in use", reason=str(error))
        else:
            self._log.info("files changed and were read again", files=names)

    def _signature(self) -> _Signature:
        return tuple(_of_file(path) for path in self._paths)


def _of_file(path: Path) -> tuple[int, int, int] | None:
    """Follows links: Kubernetes changes a mounted Secret by turning one."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
