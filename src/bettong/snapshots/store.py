"""Where snapshots are kept: the contract of every store of them."""

from collections.abc import Iterable
from typing import Protocol

from bettong.identifiers import PartitionId
from bettong.snapshots.chain import Increment


class SnapshotStore(Protocol):
    """The increments of the partitions of one application's stages. `tests/contract` holds the proof.

    Saving is atomic: readers in any process see a whole increment or none. Whatever a chain from the newest
    roots needs is kept (see `chain`), the rest is deleted by a later save; so a zombie that saves something
    old pushes out nothing newer.
    Methods block for as long as the store takes (bounded) and raise StoreError when it fails. They may be called
    from any thread and process.
    """

    def save(self, partition: PartitionId, increment: Increment, data: bytes) -> None:
        """Keeps the bytes of an increment. One of the same name is replaced."""

    def load(self, partition: PartitionId, increment: Increment) -> bytes | None:
        """The bytes of an increment; None when it is not kept, or no longer."""

    def increments(self, partition: PartitionId) -> list[Increment]:
        """What is kept now, lowest offset first."""

    def clear(self) -> None:
        """Deletes every increment of the application that is kept now."""


def read_chain(
    store: SnapshotStore, partition: PartitionId, increments: Iterable[Increment]
) -> list[bytes] | None:
    """The bytes of a chain; None when a part of it is no longer kept. Raises StoreError."""
    found: list[bytes] = []
    for each in increments:
        data = store.load(partition, each)
        if data is None:
            return None
        found.append(data)
    return found
