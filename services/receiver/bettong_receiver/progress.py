"""The progress of one connector or subscriber in one partition of a sink. Pure.

Progress after offset *o* is a fold of the partition's log up to *o*, counts included: a task that
restarts from saved progress skips, delivers and counts as if it had never stopped.
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
    """Counts of a partition's records since offset 0, by outcome. Ticks and marks are not counted."""

    frames: int = 0
    messages: int = 0
    duplicates: int = 0
    gaps: int = 0
    unreadable: int = 0
    # Messages that a destination refused and the sink skips (on_error="skip").
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
    """Dead letters of one partition, for messages that a destination refused.

    `pending`: reasons of those that may be missing in the log, by the offset of their frame and their index in it.
    `last`: the sequence number of the last frame of dead letters before them; 0 when there is none.
    """

    pending: dict[int, dict[int, str]] = field(default_factory=dict)
    last: SequenceNumber = NO_SEQUENCE


@dataclass(slots=True)
class DeliveryProgress:
    """The next offset, the delivery table and the counts.

    `adopts`: this progress starts after a truncated part of the log, so the first frame of an origin is
    accepted without a gap check; its `previous` can only be in the truncated part.
    """

    offset: int = 0
    table: DeliveryTable = field(default_factory=DeliveryTable)
    counts: DeliveryCounts = field(default_factory=DeliveryCounts)
    adopts: bool = False
    outbox: DeadLetterOutbox = field(default_factory=DeadLetterOutbox)

    @classmethod
    def fresh(cls, beginning: int) -> "DeliveryProgress":
        """The progress of a connector without a position: at the first offset of a log that may have been truncated."""
        return cls(offset=beginning, adopts=beginning > 0)

    def advance(self, offset: int, frame: Frame | None) -> bool:
        """Advances past the record at `offset`; returns whether to deliver its messages.

        `frame` is None when the record is no frame. A record below this progress is ignored: returns False.
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

    def count_delivered(self, messages: int) -> None:
        """Counts a frame for which `advance` returned True."""
        self.counts.frames += 1
        self.counts.messages += messages

    def count_unreadable(self) -> None:
        """Counts a frame for which `advance` returned True, but whose body does not belong to the sink."""
        self.counts.unreadable += 1
