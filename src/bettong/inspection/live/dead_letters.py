"""The dead letters of an application in the log, and which of them were sent again.

A dead letter's id is its position, `partition.offset.row`, which does not change as others are added. Frames that
were written again (a replay, a resend) are skipped, by the delivery rule.

A command that sends a dead letter again opens a session under a stream named after it. For such a stream the sender
leaves a mark in the topic at each opening, with the stream's position: the log itself records what was sent again.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator

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


class DeadLetterLog:
    """Reads the topic of dead letters; needs memory for a few fetches, and a little for each one sent again."""

    def __init__(self, kafka: str | KafkaConnection, application: str, *, frame_bytes_max: int) -> None:
        self._kafka = kafka
        self._topic = dead_letter_topic(application)
        self._frame_bytes_max = frame_bytes_max

    def dead_letters(self) -> Iterator[Found]:
        """Every dead letter that the log holds now, in order for each partition. Raises LogError."""
        tables: dict[int, DeliveryTable] = defaultdict(DeliveryTable)
        for record, frame in self._frames():
            if _taken(tables[record.partition], frame):
                yield from dead_letters_of(record, frame)

    def retried(self) -> dict[DeadLetterId, ResendMark]:
        """The dead letters that were sent again."""
        found: dict[DeadLetterId, ResendMark] = {}
        for _, frame in self._frames(_MARKS):
            id_ = DeadLetterId.of_stream(frame.origin.partition("/")[2])
            if id_ is not None and frame.kind is FrameKind.SENT_AGAIN:
                begun = found.get(id_, ResendMark(frame.ingest_ns, done=False))
                found[id_] = ResendMark(begun.time_ns, begun.done or frame.previous > 0)
        return found

    def at(self, id_: DeadLetterId) -> Found:
        """The dead letter with that id. Raises BettongError when there is none."""
        partition = TopicPartition(self._topic, id_.partition)
        with LogAdmin(self._kafka) as admin:
            first, end = (
                admin.beginnings([self._topic]).get(partition, 0),
                admin.ends([self._topic]).get(partition, 0),
            )
        if first <= id_.offset < end:
            until = {partition: id_.offset + 1}
            for record in stretch(
                self._kafka, {partition: id_.offset}, until, frame_bytes_max=self._frame_bytes_max
            ):
                for frame in readable(record):
                    for found in dead_letters_of(record, frame):
                        if found.id == id_:
                            return found
        raise BettongError(
            f"there is no dead letter {id_} in {self._topic}; `bettong dead-letters list` lists them"
        )

    def _frames(self, *partitions: int) -> Iterator[tuple[Record, Frame]]:
        """All frames of these partitions, of all when none is given; records that are not frames are skipped."""
        with LogAdmin(self._kafka) as admin:
            firsts, ends = admin.beginnings([self._topic]), admin.ends([self._topic])
        wanted = {
            partition: first
            for partition, first in firsts.items()
            if not partitions or partition.partition in partitions
        }
        for record in stretch(self._kafka, wanted, ends, frame_bytes_max=self._frame_bytes_max):
            for frame in readable(record):
                yield record, frame


def readable(record: Record) -> list[Frame]:
    """The frame of a record; none if it is not a frame."""
    try:
        return [decode(record.value)]
    except FrameError:
        return []


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
