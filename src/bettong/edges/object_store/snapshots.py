"""Snapshots in an object store."""

import re
from contextlib import suppress

from bettong.edges.object_store.objects import Objects
from bettong.errors import StoreUnavailableError
from bettong.identifiers import PartitionId
from bettong.snapshots.chain import Increment, increments_of, superfluous

_FOLDER = re.compile(r".+-\d+")


class ObjectSnapshots:
    """A `SnapshotStore` in an object store. Raises StoreError.

    Saves are atomic if a put replaces an object atomically and lists show it at once: in S3 (Amazon S3 User Guide,
    "Amazon S3 data consistency model") and compatible stores. In others (sftp, ftp) a reader may see a partly written
    increment; its checksum reveals that, and the previous one is used.

    A save puts the increment and then deletes superfluous ones. If it is interrupted in between, or the store becomes
    unavailable, the next save of the partition deletes them: so the number of objects stays bounded.
    """

    def __init__(self, url: str, application: str) -> None:
        """`url` as returned by `bettong.config.endpoints.snapshots_url`. Does not connect yet."""
        self._objects = Objects(url)
        self._application = application

    def save(self, partition: PartitionId, increment: Increment, data: bytes) -> None:
        """See SnapshotStore. Raises StoreError also if the store refuses to delete: it would grow without bound."""
        doing = f"saving the snapshot of {partition} at {increment.offset}"
        self._objects.put(doing, f"{self._folder(partition)}/{increment.name}", data)
        with suppress(StoreUnavailableError):  # it is saved; the next save will delete
            self._remove(partition, superfluous(self.increments(partition)))

    def load(self, partition: PartitionId, increment: Increment) -> bytes | None:
        """See SnapshotStore."""
        doing = f"reading the snapshot of {partition} at {increment.offset}"
        return self._objects.get(doing, f"{self._folder(partition)}/{increment.name}")

    def increments(self, partition: PartitionId) -> list[Increment]:
        """See SnapshotStore. Skips objects that are no increments."""
        doing = f"listing snapshots of {partition}"
        return increments_of(self._objects.names(doing, self._folder(partition), "file"))

    def clear(self) -> None:
        """See SnapshotStore. Keeps objects that are no snapshots."""
        for name in self._objects.names("clearing snapshots", self._application, "directory"):
            if _FOLDER.fullmatch(name):
                stage, _, number = name.rpartition("-")
                partition = PartitionId(stage, int(number))
                self._remove(partition, self.increments(partition))

    def _folder(self, partition: PartitionId) -> str:
        return f"{self._application}/{partition.stage}-{partition.partition}"

    def _remove(self, partition: PartitionId, increments: list[Increment]) -> None:
        for increment in increments:
            doing = f"deleting the snapshot of {partition} at {increment.offset}"
            self._objects.remove(doing, f"{self._folder(partition)}/{increment.name}")
