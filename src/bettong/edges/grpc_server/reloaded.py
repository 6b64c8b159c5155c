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
    """The result of `read`, which is called again when one of the files has changed. Thread-safe.

    `read` raises SettingsError for invalid files. The constructor passes it on; later the previous content stays in
    use, and each invalid change is logged once.
    """

    def __init__(self, paths: Sequence[Path], read: Callable[[], _Content], log: Logger) -> None:
        self._paths = paths
        self._read = read
        self._log = log
        self._lock = threading.Lock()
        self._seen = self._signature()
        self._content = read()

    def current(self) -> _Content:
        """The newest valid content. Checks the files, in a few microseconds unless one has changed."""
        with self._lock:
            signature = self._signature()
            if signature != self._seen:
                self._seen = signature
                self._reload()
            return self._content

    def _reload(self) -> None:
        names = [str(path) for path in self._paths]
        try:
            self._content = self._read()
        except SettingsError as error:
            # A file that is still being written will change once more, and is then read again.
            self._log.error("changed files are invalid; the previous content stays in use", reason=str(error))
        else:
            self._log.info("files changed and were read again", files=names)

    def _signature(self) -> _Signature:
        return tuple(_of_file(path) for path in self._paths)


def _of_file(path: Path) -> tuple[int, int, int] | None:
    """Follows links: Kubernetes updates a mounted Secret by replacing one."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
