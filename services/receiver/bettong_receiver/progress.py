"""How far one connector, or a subscriber, is in one partition of a sink. Pure.

Progress after offset *o* is a fold of the partition's log up to *o*, counts included: a task that
restarts from saved progress skips, takes and counts as if it had never stopped.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from bettong.delivery import DeliveryTable, Verdict
from bettong.frames.frame import Frame, FrameKind
from bettong.identifiers import NO_SEQUENCE, SequenceNumber


class SinkPartition(NamedTuple):
    """A partition of a sink, written `sink/partition`."""

    sink: str
    partition: int

    def __str__(self) -> str:
        return f"{self.sink}/{self.partition}"


@dataclass(slots=True)
class DeliveryCounts:
    """What became of a partition's records since offset 0. Ticks and marks are in none of them."""

    frames: int = 0
    messages: int = 0
    duplicates: int = 0
    gaps: int = 0
    unreadable: int = 0
    # Messages that a destination refused, of a sink with on_error="skip".
    skipped: int = 0

    def add(self, other: "DeliveryCounts") -> None:
        """Adds the counts of another partition."""
        self.frames += other.frames
        self.messages += other.messages
        self.duplicates += other.duplicates
        self.gaps += other.gaps
        self.unreadable += other.unreadable
        self.skipped += other.skipped


@dataclass(slots=True)
class DeadLetterOutbox:
    """Dead letters of one partition: of messages that a destination refused.

    `pending`: those that may be missing in the log, by the offset of their frame and their index in it, with reasons.
    `last`: the number of the newest frame of dead letters before them; 0 when there is none.
    """

    pending: dict[int, dict[int, str]] = field(default_factory=dict)
    last: SequenceNumber = NO_SEQUENCE


@dataclass(slots=True)
class DeliveryProgress:
    """The next offset, the delivery table and the counts.

    `adopts`: this progress begins where an older part of the log is gone, so the first frame seen of
    an origin is taken as it comes; what it calls `previous` can be in the lost part only.
    """

    offset: int = 0
    table: DeliveryTable = field(default_factory=DeliveryTable)
    counts: DeliveryCounts = field(default_factory=DeliveryCounts)
    adopts: bool = False
    outbox: DeadLetterOutbox = field(default_factory=DeadLetterOutbox)

    @classmethod
    def fresh(cls, beginning: int) -> "DeliveryProgress":
        """Where a connector starts that has no position: at the beginning of a log, which may have been cut."""
        return cls(offset=beginning, adopts=beginning > 0)

    def takes(self, offset: int, frame: Frame | None) -> bool:
        """Moves past the record at `offset` and says whether its messages are to be delivered.

        `frame` is None when the record is no frame. False for a record below this progress, which does not move it.
        """
        if offset < self.offset:
            return False
        self.offset = offset + 1
        if frame is None:
            self.counts.unreadable += 1
            return False
        if frame.kind is not FrameKind.DATA:
            return False
        if self.adopts and frame.origin not in self.table.highest:
            self.table.open(frame.origin, acknowledged=frame.previous, now_ns=frame.ingest_ns)
        verdict = self.table.take(
            frame.origin, sequence=frame.sequence, previous=frame.previous, now_ns=frame.ingest_ns
        )
        self.counts.duplicates += verdict is Verdict.DUPLICATE
        self.counts.gaps += verdict is Verdict.GAP
        return verdict is Verdict.TAKE

    def delivered(self, messages: int) -> None:
        """Counts a frame that `takes` said yes to."""
        self.counts.frames += 1
        self.counts.messages += messages

    def spoiled(self) -> None:
        """Counts a frame that `takes` said yes to, but whose body is not the sink's."""
        self.counts.unreadable += 1
