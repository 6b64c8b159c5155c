"""Divides a partition of an external system into frames. Pure.

A frame's sequence is the offset after its last record. Consumers recognize a repeated frame by its sequence, so a
sender that reads the partition again must divide it at the same offsets: after a crash, and beside a sender that was
thought dead. So boundaries are decided once and stored before their frames are sent:

    offsets   0 . . . . | . . . . . . | . . . |. . .
                        5             11      15       the boundaries: sequences 5, 11, 15
              durable ──┘ └─ stored, perhaps sent, no receipt yet ─┘

Reading resumes at `durable`; the boundaries after it stay as they were. Records that were compacted away meanwhile make
a frame smaller, which changes nothing for consumers that have read it. While no frame is in flight, `durable` also
moves past records that no frame carries: tombstones, aborted records, transaction markers.
"""

import json
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from bettong.edges.external_reader import ExternalRecords
from bettong.errors import FrameError
from bettong.identifiers import SequenceNumber
from bettong.ingest.requests import SENT_NS_MAX

# Large enough that the cost per frame is small, even if split over many partitions. No frame waits to be full.
BATCH_RECORDS_MAX = 10_000
BATCH_BYTES_MAX = 1024 * 1024
# Overhead of a record in a frame.
_RECORD_BYTES = 8
# The end offset of a value of variable width.
_OFFSET_BYTES = 8
_MS_NS = 1_000_000


def bytes_that_fit(frame_bytes_max: int) -> int:
    """How many bytes of records a batch may have: half a frame is left for columns of fixed width."""
    return min(BATCH_BYTES_MAX, frame_bytes_max // 2)


def records_that_fit(widths: Sequence[int], frame_bytes_max: int) -> int:
    """How many records a batch may have to fit a frame as columns too, in which short records grow.

    `widths`: see Schema. An eighth of the space is left for the header of the columns.
    """
    row_bytes = sum(width or _OFFSET_BYTES for width in widths)
    room = (frame_bytes_max - bytes_that_fit(frame_bytes_max)) * 7 // 8
    return min(BATCH_RECORDS_MAX, max(1, room // max(1, row_bytes)))


@dataclass(slots=True)
class BatchBoundaries:
    """The ends of one partition's batches: `durable`, and in order the ends decided above it.

    `identity`: of what was read, see `ExternalReader`; "" if unknown, also to senders of before it was stored.
    """

    durable: SequenceNumber
    ends: list[int] = field(default_factory=list)
    identity: str = ""

    def encode(self) -> bytes:
        """The stored form."""
        return json.dumps({"durable": self.durable, "ends": self.ends, "identity": self.identity}).encode()

    @classmethod
    def decode(cls, data: bytes) -> "BatchBoundaries":
        """Raises FrameError for bytes that are not batch boundaries."""
        try:
            values = json.loads(data)
            boundaries = cls(
                SequenceNumber(int(values["durable"])),
                [int(end) for end in values["ends"]],
                str(values.get("identity", "")),
            )
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise FrameError(f"{data[:100]!r} are no batch boundaries: {error}") from None
        if boundaries.ends != sorted(set(boundaries.ends)) or any(
            end <= boundaries.durable for end in boundaries.ends
        ):
            raise FrameError(f"{data[:100]!r} are no batch boundaries: they must grow from above durable")
        return boundaries


@dataclass(frozen=True, slots=True)
class ExternalBatch:
    """The content of a frame: its sequence, its messages in order, and the offset of each.

    `sent_ns`: the oldest timestamp, Unix nanoseconds; 0 when no message has one that a frame can hold.
    """

    end: int
    values: list[bytes]
    sent_ns: int
    offsets: list[int]


class Batcher:
    """Divides the records of one partition: first at the stored boundaries, then at new ones."""

    def __init__(
        self,
        boundaries: BatchBoundaries,
        *,
        batch_bytes_max: int = BATCH_BYTES_MAX,
        batch_records_max: int = BATCH_RECORDS_MAX,
    ) -> None:
        self.boundaries = boundaries
        self._due = deque(boundaries.ends)
        self._pending = ExternalRecords()
        self._batch_bytes_max = batch_bytes_max
        self._batch_records_max = batch_records_max

    def batches(self, records: ExternalRecords | None, position: int) -> tuple[list[ExternalBatch], bool]:
        """The complete batches, and whether there are new boundaries, which must be stored before any is sent.

        `records`: those after the previous call's, None when there are none. `position`: all records below it have
        been passed.
        """
        if records is not None:
            self._pending.offsets += records.offsets
            self._pending.timestamps_ms += records.timestamps_ms
            self._pending.values += records.values
        found = []
        while self._due and self._due[0] <= position:
            batch = self._split_off(self._due.popleft())
            if batch.values:
                found.append(batch)
            else:
                self.boundaries.ends.remove(batch.end)  # nobody will acknowledge it
        if self._due:
            return found, False
        new = [batch for batch in map(self._split_off, self._decide_ends()) if batch.values]
        self.boundaries.ends += [batch.end for batch in new]
        return [*found, *new], bool(new)

    def pass_over(self, position: int) -> bool:
        """Moves `durable` to `position` unless a frame waits for its receipt; returns whether it moved."""
        if self.boundaries.ends or self._pending.offsets:
            return False
        return self.acknowledge(SequenceNumber(position))

    def acknowledge(self, sequence: SequenceNumber) -> bool:
        """Notes that everything up to that sequence is durable; returns whether `durable` moved."""
        if sequence <= self.boundaries.durable:
            return False
        self.boundaries.durable = sequence
        self.boundaries.ends = [end for end in self.boundaries.ends if end > sequence]
        return True

    def _decide_ends(self) -> list[int]:
        """Ends of batches for all pending records."""
        offsets = self._pending.offsets
        sizes = accumulate(_RECORD_BYTES + len(value or b"") for value in self._pending.values)
        sums = [0, *sizes]  # of all records before each one
        ends: list[int] = []
        start = 0
        while start < len(offsets):
            fitting = bisect_right(sums, sums[start] + self._batch_bytes_max, start + 1) - 1
            # One record is taken, however large.
            start = min(max(fitting, start + 1), start + self._batch_records_max)
            ends.append(offsets[start - 1] + 1)
        return ends

    def _split_off(self, end: int) -> ExternalBatch:
        pending = self._pending
        inside = bisect_left(pending.offsets, end)
        offsets, stamps = pending.offsets[:inside], pending.timestamps_ms[:inside]
        values = [value for value in pending.values[:inside] if value is not None]
        if len(values) < inside:
            pairs = zip(offsets, pending.values[:inside], strict=True)
            offsets = [offset for offset, value in pairs if value is not None]
        self._pending = ExternalRecords(
            pending.offsets[inside:], pending.timestamps_ms[inside:], pending.values[inside:]
        )
        oldest_ns = min(filter(None, stamps), default=0) * _MS_NS
        # Kafka accepts any number as a timestamp, such as microseconds.
        return ExternalBatch(end, values, oldest_ns if oldest_ns <= SENT_NS_MAX else 0, offsets)
