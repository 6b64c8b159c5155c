"""Numbers the frames of one session: which sequence its origin last sent to each partition, and at which offset.

    OPEN(4)  5  6 ──── the partition's log, records of others in between ──── 7
       o1   o2  o3                                                           o4

A consumer may have forgotten an origin only when REMEMBERED_RECORDS records or more of the partition lie between two
records of it (see `bettong.delivery`). So a frame closer than that to the session's record before it is never mistaken
for a gap, whatever any clock says. A frame that is too far away gets no receipt; to make this rare, a partition whose
end may be far from the session's last record is opened again first.
"""

from dataclasses import dataclass

from bettong.delivery import REMEMBERED_RECORDS
from bettong.identifiers import SequenceNumber

# Half of the records that consumers remember: a safety factor of two.
DISTANCE_MAX = REMEMBERED_RECORDS // 2

# A partition is opened again when this sender knows of so many records after the session's last one: half of
# DISTANCE_MAX, for the other half may be in flight. Or when the session was silent for so long, for records of other
# senders are not seen: below 4,300 of them a second in one partition, no frame is then sent in vain.
OPEN_DISTANCE = DISTANCE_MAX // 2
SILENT_S_MAX = 10.0


@dataclass(slots=True)
class _SentTo:
    """What a session has sent to one partition.

    The thread that handles acknowledgements writes the last three fields, the sending thread the others.
    """

    last: SequenceNumber
    sent: int = 0
    sent_s: float = 0.0
    failed: bool = False
    offset: int = -1
    answered: int = 0


class Numbering:
    """The `previous` of each frame, by partition, for the partitions that the session may send to.

    One thread sends, another one may call `answered` and `lost`.
    """

    def __init__(self, ends: list[int], *, acknowledged: SequenceNumber) -> None:
        """`ends`: the newest known offset of each partition, which sessions share and update."""
        self._ends = ends
        self._sent_to = [_SentTo(acknowledged) for _ in ends]

    def must_open(self, partition: int, now_s: float) -> bool:
        """Whether the partition must be opened before a frame; `now_s` is of a monotonic clock."""
        at = self._sent_to[partition]
        if at.sent == 0:
            return True
        # Not while a record is in flight, or after one was lost: OPEN says that everything before it is in the log.
        if at.answered != at.sent or at.failed:
            return False
        return now_s - at.sent_s >= SILENT_S_MAX or self._ends[partition] - at.offset >= OPEN_DISTANCE

    def open(self, partition: int, now_s: float) -> SequenceNumber:
        """Notes that the partition is opened (again), and returns the sequence last sent there."""
        at = self._sent_to[partition]
        at.sent += 1
        at.sent_s = now_s
        return at.last

    def sent_s(self, partition: int) -> float:
        """When something was sent there last; 0 when nothing was."""
        return self._sent_to[partition].sent_s

    def last_sent(self, *, everywhere: bool) -> list[tuple[int, SequenceNumber]]:
        """The partitions that were opened, or all of them, each with the sequence last sent there."""
        return [(partition, at.last) for partition, at in enumerate(self._sent_to) if at.sent or everywhere]

    def number(self, partition: int, sequence: SequenceNumber, now_s: float) -> SequenceNumber:
        """Notes that frame `sequence` goes there, and returns its `previous`."""
        at = self._sent_to[partition]
        previous, at.last = at.last, sequence
        at.sent += 1
        at.sent_s = now_s
        return previous

    def answered(self, partition: int, offset: int, *, opens: bool) -> bool:
        """Notes the offset of an appended record. Records of a partition are answered in the order they were sent in.

        Returns False when consumers may have forgotten the origin before this record, and it does not open the
        partition; also when its offset is not above the one before: then this is another log, without earlier records.
        """
        at = self._sent_to[partition]
        if offset <= at.offset:
            self._ends[partition] = offset
            at.answered += 1
            return False
        remembered = opens or offset - at.offset <= DISTANCE_MAX
        at.offset = offset
        self._ends[partition] = max(self._ends[partition], offset)
        at.answered += 1  # written last: from here on the partition may be opened again
        return remembered

    def lost(self, partition: int) -> None:
        """Notes that appending a record failed; the record may be in the log all the same."""
        at = self._sent_to[partition]
        at.failed = True
        at.answered += 1
