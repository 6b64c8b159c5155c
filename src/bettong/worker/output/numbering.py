"""The sequence numbers that make delivery of frames effectively once.

An output frame of a stage carries `sequence = (input offset + 1) * PARTS_MAX + part`: it grows with the log, and a
replay assigns the same number to the same frame. Usually there is one part for each input frame and destination;
results of several schemas, or beyond the frame limit, are spread over several.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from bettong.identifiers import NO_SEQUENCE, Origin, SequenceNumber

# Frames that one input frame may lead to at one destination. 2**20 leaves 2**44 offsets before a sequence
# outgrows 64 bits: at 10,000 frames a second in one partition, 55 years.
PARTS_MAX = 2**20


@dataclass(slots=True)
class SentTable:
    """The last sequence sent, by origin and destination partition. Part of the partition's state."""

    sequences: dict[tuple[Origin, int], SequenceNumber] = field(default_factory=dict)

    @classmethod
    def of(cls, sent: Iterable[tuple[Origin, int, SequenceNumber]]) -> Self:
        """The table of origins, partitions and sequences that a snapshot holds."""
        return cls({(origin, partition): sequence for origin, partition, sequence in sent})

    def last(self, origin: Origin, partition: int) -> SequenceNumber:
        """The last number that was assigned; 0 before the first."""
        return self.sequences.get((origin, partition), NO_SEQUENCE)

    def number(self, origin: Origin, partition: int, offset: int) -> tuple[SequenceNumber, SequenceNumber]:
        """The `(sequence, previous)` of the next frame there that results from input `offset`."""
        previous = self.last(origin, partition)
        sequence = SequenceNumber(max((offset + 1) * PARTS_MAX, previous + 1))
        self.sequences[origin, partition] = sequence
        return sequence, previous
