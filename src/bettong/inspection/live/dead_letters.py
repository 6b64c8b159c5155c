"""The dead letters of an application in the log, and which of them were sent again.

A dead letter's id is its position, `partition.offset.row`, which does not change as others are added. Frames that
were written again (a replay) are skipped, by the delivery rule: a copy of a dead letter has no id, or its message could
be sent again under each.

A command that sends a dead letter again opens a session under a stream named after it. For such a stream the sender
leaves a mark in the topic at each opening, with the stream's position: the log itself records what was sent again.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from google.protobuf.message import DecodeError

from bettong.config.connection_settings import KafkaConnection
from bettong.delivery import DeliveryTable, Verdict
from bettong.edges.kafka_log import LogAdmin, Record
from bettong.edges.log_stretch import stretch
from bettong.errors import BettongError, FrameError
from bettong.frames.dead_letter_id import DeadLetterId
from bettong.frames.frame import Frame, FrameKind, decode
from bettong.inspection.dead_letters import Found, ResendMark
from bettong.topics import dead_letter_topic
from bettong.v1.frame_pb2 import DeadLetter

# The partition in which a sender leaves marks.
_MARKS = 0
# An offset above all others.
_ALL = 2**63


class DeadLetterLog:
    """Reads the topic of dead letters; needs memory for a few fetches, and a little for each one sent again."""

    def __init__(self, kafka: str | KafkaConnection, application: str, *, frame_bytes_max: int) -> None:
        self._kafka = kafka
        self._topic = dead_letter_topic(application)
        self._frame_bytes_max = frame_bytes_max

    def dead_letters(self) -> Iterator[Found]:
        """Every dead letter that the log holds now, in order for each partition. Raises LogError."""
        for record, frame in self._first_written():
            yield from dead_letters_of(record, frame)

    def those(self, ids: Iterable[DeadLetterId]) -> Iterator[Found]:
        """The dead letters with those ids, in the order of the log. Reads their partitions from the beginning.

        Raises BettongError behind the others for an id that is none, as that of a copy. Raises LogError.
        """
        left = set(ids)
        offsets = {(each.partition, each.offset) for each in left}
        for record, frame in self._first_written(_untils(left)):
            if (record.partition, record.offset) in offsets:
                for found in dead_letters_of(record, frame):
                    if found.id in left:
                        left.remove(found.id)
                        yield found
        if left:
            raise BettongError(self._missing(min(left)))

    def retried(self) -> dict[DeadLetterId, ResendMark]:
        """The dead letters that were sent again."""
        found: dict[DeadLetterId, ResendMark] = {}
        for _, frame in self._frames({_MARKS: _ALL}):
            id_ = DeadLetterId.of_stream(frame.origin.partition("/")[2])
            if id_ is not None and frame.kind is FrameKind.SENT_AGAIN:
                begun = found.get(id_, ResendMark(frame.ingest_ns, done=False))
                found[id_] = ResendMark(begun.time_ns, begun.done or frame.previous > 0)
        return found

    def at(self, id_: DeadLetterId) -> Found:
        """The dead letter with that id. Raises BettongError when there is none. See `those`."""
        (found,) = self.those([id_])
        return found

    def _first_written(self, untils: Mapping[int, int] | None = None) -> Iterator[tuple[Record, Frame]]:
        """The frames of dead letters, without those that were written again. `untils`: see `_frames`."""
        tables: dict[int, DeliveryTable] = defaultdict(DeliveryTable)
        for record, frame in self._frames(untils):
            if _taken(tables[record.partition], frame):
                yield record, frame

    def _missing(self, id_: DeadLetterId) -> str:
        """Why there is no dead letter with that id."""
        for record, frame in self._frames({id_.partition: id_.offset + 1}, first=id_.offset):
            if frame.kind is FrameKind.DATA and id_ in (each.id for each in dead_letters_of(record, frame)):
                for earlier, other in self._frames({id_.partition: id_.offset}):
                    if (other.kind, other.origin, other.sequence) == (
                        frame.kind,
                        frame.origin,
                        frame.sequence,
                    ):
                        original = id_._replace(offset=earlier.offset)
                        return f"{id_} is a copy of {original}: its frame was written again; use {original}"
        return f"there is no dead letter {id_} in {self._topic}; `bettong dead-letters list` lists them"

    def _frames(
        self, untils: Mapping[int, int] | None = None, *, first: int = 0
    ) -> Iterator[tuple[Record, Frame]]:
        """The frames of all partitions, or of those in `untils` below these offsets, from `first` on.

        Records that are not frames are skipped.
        """
        with LogAdmin(self._kafka) as admin:
            firsts, ends = admin.beginnings([self._topic]), admin.ends([self._topic])
        if untils is not None:
            firsts = {each: max(first, offset) for each, offset in firsts.items() if each.partition in untils}
            ends = {each: min(untils[each.partition], ends[each]) for each in firsts}
        for record in stretch(self._kafka, firsts, ends, frame_bytes_max=self._frame_bytes_max):
            for frame in readable(record):
                yield record, frame


def readable(record: Record) -> list[Frame]:
    """The frame of a record; none if it is not a frame."""
    try:
        return [decode(record.value)]
    except FrameError:
        return []


def _untils(ids: Iterable[DeadLetterId]) -> dict[int, int]:
    """For each partition the offset behind the last of these."""
    found: dict[int, int] = {}
    for each in ids:
        found[each.partition] = max(found.get(each.partition, 0), each.offset + 1)
    return found


def _taken(table: DeliveryTable, frame: Frame) -> bool:
    if frame.kind is not FrameKind.DATA:
        return False
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
