"""The newest saved snapshot of a partition, for its live record."""

from __future__ import annotations

from dataclasses import dataclass

from bettong import metrics


@dataclass(frozen=True, slots=True)
class SnapshotCost:
    """The cost of a snapshot that this process has saved: when (Unix s), bytes written, and duration.

    `paused_ms`: how long the partition was not folded meanwhile.
    """

    saved_s: float
    size: int
    took_ms: float
    paused_ms: float


@dataclass(frozen=True, slots=True)
class SavedSnapshot:
    """`cost`: None if another process saved it; its live record has the cost."""

    offset: int
    cost: SnapshotCost | None = None

    def metrics(self) -> dict[str, int | float]:
        """For a live record: values that are not known are omitted, so that the record keeps its own."""
        found: dict[str, int | float] = {metrics.SNAPSHOT_OFFSET.name: self.offset}
        if self.cost is not None:
            found[metrics.SNAPSHOT_SAVED.name] = round(self.cost.saved_s, 3)
            found[metrics.SNAPSHOT_BYTES.name] = self.cost.size
            found[metrics.SNAPSHOT_MS.name] = round(self.cost.took_ms, 3)
            found[metrics.SNAPSHOT_PAUSE_MS.name] = round(self.cost.paused_ms, 3)
        return found
