"""What is known of a partition's newest snapshot in the store, for its live record."""

from __future__ import annotations

from dataclasses import dataclass

from bettong import metrics


@dataclass(frozen=True, slots=True)
class SnapshotCost:
    """Of one that this process has saved: when (Unix s), how many bytes it wrote, and how long that took.

    `paused_ms`: for how long nothing of the partition was folded meanwhile.
    """

    saved_s: float
    size: int
    took_ms: float
    paused_ms: float


@dataclass(frozen=True, slots=True)
class SavedSnapshot:
    """`cost`: None of one that another process has saved, whose record says it."""

    offset: int
    cost: SnapshotCost | None = None

    def metrics(self) -> dict[str, int | float]:
        """For a live record: what is not known is left out, and stays there."""
        found: dict[str, int | float] = {metrics.SNAPSHOT_OFFSET.name: self.offset}
        if self.cost is not None:
            found[metrics.SNAPSHOT_SAVED.name] = round(self.cost.saved_s, 3)
            found[metrics.SNAPSHOT_BYTES.name] = self.cost.size
            found[metrics.SNAPSHOT_MS.name] = round(self.cost.took_ms, 3)
            found[metrics.SNAPSHOT_PAUSE_MS.name] = round(self.cost.paused_ms, 3)
        return found
