"""Snapshots in a directory: the snapshot store that needs no server.

    path/
      check-0/                        <stage>-<partition>
        1200-0-1200                   an increment: <offset>-<since>-<root>
        1450-1200-1200
        .saving-1500-1450-1200-x1y2   being written; stays if its writer is killed, removed by a later save

A file gets its name by a rename, so every process that opens it sees its full content, on any file system with atomic
renames.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from bettong.edges.whole_files import write_whole
from bettong.errors import StoreError
from bettong.identifiers import PartitionId
from bettong.snapshots.chain import Increment, increments_of, needed_from

_FOLDER = re.compile(r".+-\d+")
_SAVING = re.compile(r"\.saving-(\d+-\d+-\d+)-.*")

# A save is retried when another process removes its file or folder. Each removal comes from a newer root or a
# `clear`; ten of them during one save do not happen in practice.
_ATTEMPTS_MAX = 10


class DirectorySnapshots:
    """A `SnapshotStore` in files. Several processes may save, read and clear concurrently. Raises StoreError."""

    def __init__(self, path: Path, *, sync: Callable[[int], object] | None = None) -> None:
        """`path` is created when first needed, and holds one application's snapshots only.

        `sync` (such as `os.fsync`) is called with the descriptor of each file before the rename. Without it
        snapshots survive a killed process, but perhaps not a power failure.
        """
        self._path = path
        self._sync = sync

    def save(self, partition: PartitionId, increment: Increment, data: bytes) -> None:
        """See SnapshotStore."""
        folder = self._folder(partition)
        for _ in range(_ATTEMPTS_MAX):
            if increment.offset < needed_from([*self.increments(partition), increment]):
                return
            with suppress(FileNotFoundError):
                self._write(folder, increment, data)
                self._trim(folder)
                return
        raise self._error(
            f"{folder.name}/{increment.name}: removed by others {_ATTEMPTS_MAX} times while it was saved"
        )

    def load(self, partition: PartitionId, increment: Increment) -> bytes | None:
        """See SnapshotStore."""
        try:
            return (self._folder(partition) / increment.name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._error(str(error)) from None

    def increments(self, partition: PartitionId) -> list[Increment]:
        """See SnapshotStore."""
        return increments_of(self._names(self._folder(partition)))

    def clear(self) -> None:
        """See SnapshotStore. Keeps folders, into which others may be saving, and files that are no snapshots."""
        for name in self._names(self._path):
            folder = self._path / name
            if _FOLDER.fullmatch(name) and folder.is_dir():
                for file in self._names(folder):
                    if Increment.parse(file) or _SAVING.fullmatch(file):
                        self._remove(folder / file)

    def _folder(self, partition: PartitionId) -> Path:
        return self._path / f"{partition.stage}-{partition.partition}"

    def _write(self, folder: Path, increment: Increment, data: bytes) -> None:
        """Raises FileNotFoundError when another process removed the folder or the file meanwhile."""
        try:
            write_whole(folder / increment.name, data, prefix=f".saving-{increment.name}-", sync=self._sync)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._error(str(error)) from None

    def _trim(self, folder: Path) -> None:
        """Removes increments that no chain needs, and leftovers of killed writers of older increments."""
        names = self._names(folder)
        first = needed_from(increments_of(names))
        for name in names:
            saving = _SAVING.fullmatch(name)
            increment = Increment.parse(saving[1] if saving else name)
            if increment is not None and increment.offset < first:
                self._remove(folder / name)

    def _names(self, folder: Path) -> list[str]:
        try:
            return [each.name for each in folder.iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._error(str(error)) from None

    def _remove(self, file: Path) -> None:
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise self._error(str(error)) from None

    def _error(self, reason: str) -> StoreError:
        return StoreError(f"snapshots in {self._path}: {reason}; the folder must be writable and have room")
