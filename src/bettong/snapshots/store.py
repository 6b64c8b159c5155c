"""The interface of stores of snapshots."""

from collections.abc import Iterable
from typing import Protocol

from bettong.identifiers import PartitionId
from bettong.snapshots.chain import Increment


class SnapshotStore(Protocol):
    """The increments of the partitions of one application's stages. `tests/contract` tests every implementation.

    Saving is atomic: readers in any process see a whole increment or none. All increments that a chain from the newest
    roots needs are kept (see `chain`), the rest is deleted by a later save; so a zombie that saves an old increment
    evicts no newer one.
    Methods block for as long as the store takes (bounded) and raise StoreError when it fails. They may be called
    from any thread and process.
    """

    def save(self, partition: PartitionId, increment: Increment, data: bytes) -> None:
        """Stores the bytes of an increment; replaces those of the same name."""

    def load(self, partition: PartitionId, increment: Increment) -> bytes | None:
        """The bytes of an increment; None when it is not stored, or no longer."""

    def increments(self, partition: PartitionId) -> list[Increment]:
        """The stored increments, lowest offset first."""

    def clear(self) -> None:
        """Deletes all stored increments of the application."""


def read_chain(
    store: SnapshotStore, partition: PartitionId, increments: Iterable[Increment]
) -> list[bytes] | None:
    """The bytes of a chain; None when a part of it is no longer stored. Raises StoreError."""
    found: list[bytes] = []
    for each in increments:
        data = store.load(partition, each)
        if data is None:
            return None
        found.append(data)
    return found
