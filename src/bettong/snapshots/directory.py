"""Snapshots in a directory: the store without a server.

    path/
      check-0/              <stage>-<partition>
        1200                a snapshot, named by its offset
        1450
        .saving-1500-x1y2   being written; left behind when its writer is killed, removed by a later save

A file gets its name by a rename, so whoever opens it sees all of it, in any process, on any file system whose
renames are atomic.
"""

import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from bettong.errors import StoreError
from bettong.snapshots.store import SNAPSHOTS_KEPT

_FOLDER = re.compile(r".+-\d+")
_SAVING = re.compile(r"\.saving-(\d+)-.*")

# A save or a look is begun again when another process removes what it works on. Each such removal is the trace of
# a newer snapshot or of a `clear`; nobody does that ten times in the time of one save.
_ATTEMPTS_MAX = 10


class DirectorySnapshots:
    """A `SnapshotStore` in files. Several processes may save, read and clear at a time. Raises StoreError."""

    def __init__(self, path: Path, *, sync: Callable[[int], object] | None = None) -> None:
        """`path` is made when it is first needed, and holds one application's snapshots only.

        `sync` (give `os.fsync`) is called with the descriptor of each file before it gets its name. Without it
        snapshots survive a killed process, but perhaps not a power failure.
        """
        self._path = path
        self._sync = sync

    def save(self, stage: str, partition: int, offset: int, data: bytes) -> None:
        """See SnapshotStore."""
        folder = self._folder(stage, partition)
        for _ in range(_ATTEMPTS_MAX):
            kept = self.offsets(stage, partition)
            if len(kept) >= SNAPSHOTS_KEPT and offset < kept[-SNAPSHOTS_KEPT]:
                return
            with suppress(FileNotFoundError):
                self._write(folder, offset, data)
                self._trim(folder)
                return
        raise self._error(
            f"{folder.name}/{offset}: removed by others {_ATTEMPTS_MAX} times while it was saved"
        )

    def newest(self, stage: str, partition: int, *, at_most: int | None = None) -> tuple[int, bytes] | None:
        """See SnapshotStore."""
        folder = self._folder(stage, partition)
        for _ in range(_ATTEMPTS_MAX):
            kept = [each for each in self.offsets(stage, partition) if at_most is None or each <= at_most]
            if not kept:
                return None
            with suppress(FileNotFoundError):
                return kept[-1], self._read(folder / str(kept[-1]))
        raise self._error(f"{folder.name}: removed by others {_ATTEMPTS_MAX} times while it was read")

    def offsets(self, stage: str, partition: int) -> list[int]:
        """See SnapshotStore."""
        names = self._names(self._folder(stage, partition))
        return sorted(int(name) for name in names if name.isdecimal())

    def clear(self) -> None:
        """See SnapshotStore. Leaves the folders, which others may be saving into, and what is no snapshot."""
        for name in self._names(self._path):
            if _FOLDER.fullmatch(name):
                folder = self._path / name
                for file in self._names(folder):
                    if file.isdecimal() or _SAVING.fullmatch(file):
                        self._remove(folder / file)

    def _folder(self, stage: str, partition: int) -> Path:
        return self._path / f"{stage}-{partition}"

    def _write(self, folder: Path, offset: int, data: bytes) -> None:
        """Raises FileNotFoundError when another process removed the folder or the file meanwhile."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder, prefix=f".saving-{offset}-", delete=False) as file:
                saving = Path(file.name)
                try:
                    file.write(data)
                    file.flush()
                    if self._sync is not None:
                        self._sync(file.fileno())
                    saving.replace(folder / str(offset))
                except BaseException:
                    saving.unlink(missing_ok=True)
                    raise
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._error(str(error)) from None

    def _trim(self, folder: Path) -> None:
        """Removes all but the newest, and what killed writers of older offsets left."""
        names = self._names(folder)
        kept = sorted(int(name) for name in names if name.isdecimal())[-SNAPSHOTS_KEPT:]
        if not kept:
            return  # cleared meanwhile
        for name in names:
            saving = _SAVING.fullmatch(name)
            offset = int(saving[1]) if saving else int(name) if name.isdecimal() else kept[0]
            if offset < kept[0]:
                self._remove(folder / name)

    def _names(self, folder: Path) -> list[str]:
        try:
            return [each.name for each in folder.iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._error(str(error)) from None

    def _read(self, file: Path) -> bytes:
        try:
            return file.read_bytes()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._error(str(error)) from None

    def _remove(self, file: Path) -> None:
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise self._error(str(error)) from None

    def _error(self, reason: str) -> StoreError:
        return StoreError(f"snapshots in {self._path}: {reason}; the folder must be writable and have room")
