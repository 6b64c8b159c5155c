"""Snapshots in an object store."""

import re
from contextlib import suppress

from bettong.edges.object_store.faults import is_absence
from bettong.edges.object_store.store import Files, ObjectStore
from bettong.errors import StoreUnavailableError
from bettong.identifiers import PartitionId
from bettong.snapshots.chain import Increment, increments_of, superfluous

_FOLDER = re.compile(r".+-\d+")

# For a command that carries no state.
_ANSWER_S_MAX = 15.0
# On top of it for what is carried. S3's read timeout gives up sooner when nothing at all comes.
_BYTES_A_S_MIN = 1024 * 1024
# The largest increment, by protobuf's own limit: how long reading one may take is not known before.
_INCREMENT_BYTES_MAX = 2 * 1024**3


class ObjectSnapshots:
    """A `SnapshotStore` in an object store. Raises StoreError.

    Atomic where a put replaces an object as a whole, and what was put is listed at once: in S3 (Amazon S3 User Guide,
    "Amazon S3 data consistency model") and the stores like it. In others (sftp, ftp) an increment may be
    seen half-written; its checksum shows it, and the one before it is taken.

    A save puts the increment and then deletes what is superfluous. When it ends in between, or the store is away by
    then, the next save of the partition deletes both: what lies there stays bounded.
    """

    def __init__(self, url: str, application: str) -> None:
        """`url` as `bettong.config.endpoints.snapshots_url` leaves it. Does not connect yet."""
        self._store = ObjectStore(url)
        self._application = application

    def save(self, partition: PartitionId, increment: Increment, data: bytes) -> None:
        """See SnapshotStore. StoreError also when the store refuses to delete: it would grow without end."""
        doing = f"saving the snapshot of {partition} at {increment.offset}"
        inside = f"{self._folder(partition)}/{increment.name}"

        def command(files: Files, root: str) -> None:
            files.pipe_file(f"{root}/{inside}", data, timeout=_transfer_s(len(data)))

        self._store.ask(doing, command)
        with suppress(StoreUnavailableError):  # it is saved; the next save deletes
            self._remove(partition, superfluous(self.increments(partition)))

    def load(self, partition: PartitionId, increment: Increment) -> bytes | None:
        """See SnapshotStore."""
        inside = f"{self._folder(partition)}/{increment.name}"

        def command(files: Files, root: str) -> bytes | None:
            try:
                return bytes(files.cat_file(f"{root}/{inside}", timeout=_transfer_s(_INCREMENT_BYTES_MAX)))
            except FileNotFoundError as error:
                if is_absence(error):
                    return None
                raise

        return self._store.ask(f"reading the snapshot of {partition} at {increment.offset}", command)

    def increments(self, partition: PartitionId) -> list[Increment]:
        """See SnapshotStore. Objects that are none are skipped."""
        doing = f"looking for snapshots of {partition}"
        return increments_of(self._names(doing, self._folder(partition), "file"))

    def clear(self) -> None:
        """See SnapshotStore. Leaves what is no snapshot."""
        for name in self._names("clearing snapshots", self._application, "directory"):
            if _FOLDER.fullmatch(name):
                stage, _, number = name.rpartition("-")
                partition = PartitionId(stage, int(number))
                self._remove(partition, self.increments(partition))

    def _folder(self, partition: PartitionId) -> str:
        return f"{self._application}/{partition.stage}-{partition.partition}"

    def _names(self, doing: str, inside: str, kind: str) -> list[str]:
        """The names in a folder of one kind, file or directory; none when there is no such folder."""

        def command(files: Files, root: str) -> list[str]:
            try:
                found = files.ls(f"{root}/{inside}", detail=True, timeout=_ANSWER_S_MAX)
            except FileNotFoundError as error:
                if is_absence(error):
                    return []
                raise
            return [each["name"].rstrip("/").rpartition("/")[2] for each in found if each["type"] == kind]

        return self._store.ask(doing, command)

    def _remove(self, partition: PartitionId, increments: list[Increment]) -> None:
        for increment in increments:
            inside = f"{self._folder(partition)}/{increment.name}"

            def command(files: Files, root: str, inside: str = inside) -> None:
                with suppress(FileNotFoundError):  # another process was quicker
                    files.rm_file(f"{root}/{inside}", timeout=_ANSWER_S_MAX)

            doing = f"deleting the snapshot of {partition} at {increment.offset}"
            self._store.ask(doing, command)


def _transfer_s(size_bytes: int) -> float:
    return _ANSWER_S_MAX + size_bytes / _BYTES_A_S_MIN
