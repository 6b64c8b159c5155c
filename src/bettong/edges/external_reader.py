"""The interface through which a sender reads an external system, partition by partition."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(slots=True)
class ExternalRecords:
    """Records of a partition in order, as columns of equal length. Offsets increase, with gaps.

    `timestamps_ms`: 0 without a timestamp; `values`: None for records without a value (Kafka's tombstones).
    """

    offsets: list[int] = field(default_factory=list)
    timestamps_ms: list[int] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)


class ExternalReader(Protocol):
    """Reads records from given offsets. Used from one thread.

    Reading again from an offset returns the same records at the same offsets, except those deleted meanwhile. Every
    method but `close` raises LogUnavailableError for transient errors, LogError for those that need an operator; waits
    are bounded by some seconds.
    """

    def partitions(self) -> list[int]:
        """The current partitions, in order."""

    def identity(self) -> str:
        """The identity of what is read: another one once it was deleted and made anew. "" if the system has none."""

    def bounds(self, partitions: list[int]) -> dict[int, tuple[int, int]]:
        """For each partition the offset of its oldest record, and the one after its newest."""

    def assign(self, starts: Mapping[int, int]) -> None:
        """Starts to read these partitions, each from its offset."""

    def poll(self, timeout_ms: int, records_max: int) -> dict[int, ExternalRecords]:
        """The next records of each partition; nothing while the external system is unavailable.

        Raises LogTruncatedError when records were deleted before they were read.
        """

    def position(self, partition: int) -> int:
        """The next offset of a partition that `poll` may return: all records below it were returned."""

    def lag(self) -> int:
        """Records that were not returned yet, as far as is known."""

    def close(self) -> None:
        """Releases the connection. Never raises."""
