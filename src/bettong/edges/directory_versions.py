"""Versions of reference tables in a directory, next to the snapshots.

path/
  references/
    prices-0123456789abcdef-0/      a series
      2-9f86...                     a version: <number>-<fingerprint>
      2-9f86....offsets             the offsets at which each partition's log names it
      .saving-...                   being written; stays if its writer is killed, removed by a later one
"""

import os
from collections.abc import Callable
from pathlib import Path

from bettong.edges.whole_files import write_whole
from bettong.errors import StoreError

_SAVING = ".saving-"


class DirectoryVersions:
    """`snapshots.references.NamedBytes` in files. Raises StoreError."""

    def __init__(self, path: Path, *, sync: Callable[[int], object] | None = None) -> None:
        """`path`, `sync`: see `DirectorySnapshots`. `sync` is also called with the folders above a file.

        A log record names a version as soon as it is stored: if a power failure removed the file's name again, the
        version would be missing for good.
        """
        self._path = path / "references"
        self._sync = sync

    def put(self, folder: str, name: str, data: bytes) -> None:
        """See NamedBytes."""
        try:
            for left in self._files(folder):
                if left.name.startswith(_SAVING):  # one driver writes at a time
                    left.unlink(missing_ok=True)
            write_whole(self._path / folder / name, data, prefix=_SAVING, sync=self._sync)
            self._sync_names(self._path / folder)
        except OSError as error:
            raise self._error(error) from None

    def get(self, folder: str, name: str) -> bytes | None:
        """See NamedBytes."""
        try:
            return (self._path / folder / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._error(error) from None

    def names(self, folder: str) -> list[str]:
        """See NamedBytes."""
        try:
            return [each.name for each in self._files(folder) if not each.name.startswith(_SAVING)]
        except OSError as error:
            raise self._error(error) from None

    def remove(self, folder: str, name: str) -> None:
        """See NamedBytes."""
        try:
            (self._path / folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise self._error(error) from None

    def _sync_names(self, folder: Path) -> None:
        """Syncs the series' folder and its three parents, up to the one that holds the application's."""
        if self._sync is None:
            return
        for each in (folder, *list(folder.parents)[:3]):
            descriptor = os.open(each, os.O_RDONLY | os.O_CLOEXEC)
            try:
                self._sync(descriptor)
            finally:
                os.close(descriptor)

    def _files(self, folder: str) -> list[Path]:
        try:
            return list((self._path / folder).iterdir())
        except FileNotFoundError:
            return []

    def _error(self, error: OSError) -> StoreError:
        return StoreError(
            f"reference tables in {self._path}: {error}; the folder must be writable and have room"
        )
