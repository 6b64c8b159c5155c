"""The seam of readers: how a sender reads an external system, partition by partition."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(slots=True)
class ExternalRecords:
    """Records of a partition in order, as columns of one length: offsets grow, with gaps.

    `timestamps_ms` are 0 where there is none; `values` None: records without a value (Kafka's tombstones).
    """

    offsets: list[int] = field(default_factory=list)
    timestamps_ms: list[int] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)


class ExternalReader(Protocol):
    """Reads records from given offsets. Used from one thread.

    Reading again from an offset gives the same records at the same offsets, but for those that were deleted meanwhile.
    Every method but `close` raises LogUnavailableError for what passes by itself, LogError for what somebody must mend;
    waits are bounded by some seconds.
    """

    def partitions(self) -> list[int]:
        """All partitions there are now, in order."""

    def bounds(self, partitions: list[int]) -> dict[int, tuple[int, int]]:
        """For each partition the offset of its oldest record, and the one behind its newest."""

    def assign(self, starts: Mapping[int, int]) -> None:
        """Reads these partitions, each from its offset."""

    def poll(self, timeout_ms: int, records_max: int) -> dict[int, ExternalRecords]:
        """The next records of each partition; nothing while the other side is away.

        Raises LogTruncatedError when records were deleted before they were read.
        """

    def position(self, partition: int) -> int:
        """The next offset of a partition that `poll` may return: all records below it were returned."""

    def lag(self) -> int:
        """Records that are there and were not returned yet, as far as is known."""

    def close(self) -> None:
        """Releases the connection. Never raises."""
