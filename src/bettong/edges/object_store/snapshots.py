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

    Atomic where a put replaces an object as a whole, and what was put is listed at once: in S3 (Amazon S3 User Guide,
    "Amazon S3 data consistency model") and the stores like it. In others (sftp, ftp) an increment may be
    seen half-written; its checksum shows it, and the one before it is taken.

    A save puts the increment and then deletes what is superfluous. When it ends in between, or the store is away by
    then, the next save of the partition deletes both: what lies there stays bounded.
    """

    def __init__(self, url: str, application: str) -> None:
        """`url` as `bettong.config.endpoints.snapshots_url` leaves it. Does not connect yet."""
        self._objects = Objects(url)
        self._application = application

    def save(self, partition: PartitionId, increment: Increment, data: bytes) -> None:
        """See SnapshotStore. StoreError also when the store refuses to delete: it would grow without end."""
        doing = f"saving the snapshot of {partition} at {increment.offset}"
        self._objects.put(doing, f"{self._folder(partition)}/{increment.name}", data)
        with suppress(StoreUnavailableError):  # it is saved; the next save deletes
            self._remove(partition, superfluous(self.increments(partition)))

    def load(self, partition: PartitionId, increment: Increment) -> bytes | None:
        """See SnapshotStore."""
        doing = f"reading the snapshot of {partition} at {increment.offset}"
        return self._objects.get(doing, f"{self._folder(partition)}/{increment.name}")

    def increments(self, partition: PartitionId) -> list[Increment]:
        """See SnapshotStore. Objects that are none are skipped."""
        doing = f"looking for snapshots of {partition}"
        return increments_of(self._objects.names(doing, self._folder(partition), "file"))

    def clear(self) -> None:
        """See SnapshotStore. Leaves what is no snapshot."""
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
