"""The dead letters of an application in the log, and which of them were sent again.

A dead letter's id is its position, `partition.offset.row`, which does not change as others are added. Frames that
were written again (a replay) are skipped, by the delivery rule: a copy of a dead letter has no id, or its message could
be sent again under each.

A command that sends a dead letter again opens a session under a stream named after it. For such a stream the sender
leaves a mark in the topic at each opening, with the stream's position: the log itself records what was sent again.
"""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from google.protobuf.message import DecodeError

from bettong.config.connection_settings import KafkaConnection
from bettong.delivery import DeliveryTable, Verdict
from bettong.edges.kafka_log import LogAdmin, Record
from bettong.edges.log_stretch import stretch
from bettong.errors import BettongError, FrameError
from bettong.frames.dead_letter_id import DeadLetterId
from bettong.frames.frame import Frame, FrameKind, decode
from bettong.identifiers import TopicPartition
from bettong.inspection.dead_letters import Found, ResendMark
from bettong.topics import dead_letter_topic
from bettong.v1.frame_pb2 import DeadLetter

# The partition in which a sender leaves marks.
_MARKS = 0


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The first offsets to read and the ends. `deleted_ns`: of partitions without their beginning, up to when at most
    records were deleted (Unix ns).
    """

    firsts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    deleted_ns: Mapping[int, int]

    def of(self, partition: int) -> _Bounds:
        """Those of one partition."""
        return replace(
            self, firsts={each: at for each, at in self.firsts.items() if each.partition == partition}
        )

    def below(self, ids: Iterable[DeadLetterId]) -> _Bounds:
        """From the beginnings up to the last of these ids in each of their partitions."""
        last: dict[int, int] = {}
        for id_ in ids:
            last[id_.partition] = max(last.get(id_.partition, 0), id_.offset)
        firsts = {each: at for each, at in self.firsts.items() if each.partition in last}
        return replace(
            self,
            firsts=firsts,
            ends={each: min(last[each.partition] + 1, self.ends[each]) for each in firsts},
        )

    def at(self, id_: DeadLetterId) -> _Bounds:
        """Only the record of this id, the last one within."""
        return replace(self, firsts={each: max(at, id_.offset) for each, at in self.firsts.items()})

    def known_ns(self, partition: int) -> int:
        """From this time on nothing was deleted that belongs to a message of this partition (Unix ns).

        A dead letter is younger than its message, and its mark is younger still. Of an older message the mark may have
        been deleted; or the dead letter, so that only a copy is left, which the mark does not name.
        """
        return max(self.deleted_ns.get(_MARKS, 0), self.deleted_ns.get(partition, 0))


class DeadLetterLog:
    """Reads the topic of dead letters; needs memory for a few fetches, and a little for each one sent again."""

    def __init__(self, kafka: str | KafkaConnection, application: str, *, frame_bytes_max: int) -> None:
        self._kafka = kafka
        self._topic = dead_letter_topic(application)
        self._frame_bytes_max = frame_bytes_max

    def dead_letters(self) -> Iterator[Found]:
        """Every dead letter that the log holds now, in order for each partition. Raises LogError."""
        yield from self._dead_letters(self._bounds(), None)

    def those(self, ids: Iterable[DeadLetterId]) -> Iterator[Found]:
        """The dead letters with those ids, in the order of the log. Reads their partitions from the beginning.

        Raises BettongError behind the others for an id that is none, as that of a copy. Raises LogError.
        """
        left = set(ids)
        for found in self._dead_letters(
            self._bounds().below(left), {(each.partition, each.offset) for each in left}
        ):
            if found.id in left:
                left.remove(found.id)
                yield found
        if left:
            raise BettongError(self._missing(min(left)))

    def retried(self) -> dict[DeadLetterId, ResendMark]:
        """The dead letters that were sent again."""
        found: dict[DeadLetterId, ResendMark] = {}
        for _, frame in self._frames(self._bounds().of(_MARKS)):
            id_ = DeadLetterId.of_stream(frame.origin.partition("/")[2])
            if id_ is not None and frame.kind is FrameKind.SENT_AGAIN:
                begun = found.get(id_, ResendMark(frame.ingest_ns, done=False))
                found[id_] = ResendMark(begun.time_ns, begun.done or frame.previous > 0)
        return found

    def at(self, id_: DeadLetterId) -> Found:
        """The dead letter with that id. Raises BettongError when there is none. See `those`."""
        (found,) = self.those([id_])
        return found

    def _dead_letters(self, bounds: _Bounds, offsets: set[tuple[int, int]] | None) -> Iterator[Found]:
        """Those in the log, or of these partitions and offsets in it, without those that were written again."""
        tables: dict[int, DeliveryTable] = defaultdict(DeliveryTable)
        for record, frame in self._frames(bounds):
            if not _taken(
                tables[record.partition], frame, has_beginning=record.partition not in bounds.deleted_ns
            ):
                continue
            if offsets is None or (record.partition, record.offset) in offsets:
                unsure = frame.ingest_ns < bounds.known_ns(record.partition)
                for each in dead_letters_of(record, frame):
                    yield replace(each, mark_may_be_deleted=unsure)

    def _missing(self, id_: DeadLetterId) -> str:
        """Why there is no dead letter with that id."""
        bounds = self._bounds().below([id_])
        for record, frame in self._frames(bounds.at(id_)):
            if frame.kind is FrameKind.DATA and id_ in (each.id for each in dead_letters_of(record, frame)):
                for earlier, other in self._frames(bounds):
                    if (other.kind, other.origin, other.sequence) == (
                        frame.kind,
                        frame.origin,
                        frame.sequence,
                    ):
                        original = id_._replace(offset=earlier.offset)
                        return f"{id_} is a copy of {original}: its frame was written again; use {original}"
        return f"there is no dead letter {id_} in {self._topic}; `bettong dead-letters list` lists them"

    def _bounds(self) -> _Bounds:
        """What the log holds now."""
        topics = [self._topic]
        with LogAdmin(self._kafka) as admin:
            firsts, ends = admin.beginnings(topics), admin.ends(topics)
            begun_ns = admin.begun_ns(topics) if any(firsts.values()) else {}
        now_ns = time.time_ns()
        deleted_ns = {each.partition: begun_ns.get(each, now_ns) for each, first in firsts.items() if first}
        return _Bounds(firsts, ends, deleted_ns)

    def _frames(self, bounds: _Bounds) -> Iterator[tuple[Record, Frame]]:
        """The frames within; records that are not frames are skipped."""
        for record in stretch(self._kafka, bounds.firsts, bounds.ends, frame_bytes_max=self._frame_bytes_max):
            for frame in readable(record):
                yield record, frame


def readable(record: Record) -> list[Frame]:
    """The frame of a record; none if it is not a frame."""
    try:
        return [decode(record.value)]
    except FrameError:
        return []


def _taken(table: DeliveryTable, frame: Frame, *, has_beginning: bool) -> bool:
    if frame.kind is not FrameKind.DATA:
        return False
    if not has_beginning and frame.origin not in table.highest:
        # The frames before it were deleted: none of them is still on its way.
        table.open(frame.origin, acknowledged=frame.previous, now_ns=frame.ingest_ns)
    verdict = table.take(
        frame.origin, sequence=frame.sequence, previous=frame.previous, now_ns=frame.ingest_ns
    )
    return verdict is Verdict.TAKE


def dead_letters_of(record: Record, frame: Frame) -> Iterator[Found]:
    """The dead letters of a frame, each by its row; rows that cannot be read are skipped."""
    for row, data in enumerate(frame.rows or ()):
        with contextlib.suppress(DecodeError):
            dead_letter = DeadLetter.FromString(data)
            yield Found(DeadLetterId(record.partition, record.offset, row), frame.ingest_ns, dead_letter)
