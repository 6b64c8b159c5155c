"""Where snapshots are kept: the contract of every store of them."""

from typing import Protocol

# Two, so that a reader which has chosen the older one still finds it while a newer one is being saved, and so
# that a damaged newest one has a predecessor. More would only cost memory and longer retention of the log.
SNAPSHOTS_KEPT = 2


class SnapshotStore(Protocol):
    """Snapshots of the partitions of one application's stages, by offset. `tests/contract` holds the proof.

    Saving is atomic: readers in any process see a whole snapshot or none. Of each partition the
    `SNAPSHOTS_KEPT` highest offsets saved are kept. So a zombie that saves an old offset pushes out nothing newer,
    and one that saves an offset again replaces a state by the same state (it is a fold of the log).
    Methods block for as long as the store takes (bounded) and raise StoreError when it fails. They may be called
    from any thread and process.
    """

    def save(self, stage: str, partition: int, offset: int, data: bytes) -> None:
        """Keeps `data` as the state after all records below `offset`."""

    def newest(self, stage: str, partition: int, *, at_most: int | None = None) -> tuple[int, bytes] | None:
        """The snapshot of the highest offset, of those not above `at_most`; None when there is none."""

    def offsets(self, stage: str, partition: int) -> list[int]:
        """The offsets of the snapshots that are kept, lowest first."""

    def clear(self) -> None:
        """Deletes every snapshot of the application that is kept now."""
