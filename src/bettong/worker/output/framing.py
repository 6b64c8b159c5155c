"""Encodes the results of one input frame as output frames: within the size limit, numbered, in order."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from bettong.errors import FrameError
from bettong.frames.columns import Columns
from bettong.frames.frame import ENVELOPE_BYTES_MAX, Frame, encode
from bettong.identifiers import Origin, PartitionId, partition_origin, stage_producer
from bettong.immutable import immutable
from bettong.worker.output.numbering import SentTable

# What protobuf adds to each of a frame's rows: a tag, and a length of at most 5 bytes.
_ROW_BYTES = 6


@immutable()
class OutputRecord:
    """A frame to be appended: `value`, which holds `count` messages, to `partition` of `topic`."""

    topic: str
    partition: int
    value: bytes
    count: int


class FrameDestination(NamedTuple):
    """Where frames go, and the origin that numbers them there."""

    topic: str
    partition: int
    origin: Origin


def origin_of(target: str, partition: PartitionId) -> Origin:
    """The origin of the frames that a partition of a stage writes to a target: a sink, a `key_by`, dead letters.

    It does not depend on which streams of the stage lead there, or on their messages, so that a replay by a changed
    application repeats sequence numbers. Frames of several schemas are parts of one input frame: see `numbering`.
    """
    return partition_origin(stage_producer(target, partition.stage), partition.partition)


class Piece(NamedTuple):
    """The rows from `start` up to but not including `stop`, as the body of a frame."""

    start: int
    stop: int
    payload: bytes


@immutable()
class FrameEmitter:
    """Makes the output frames of one input frame, at `offset`; they inherit its times.

    In a stage that needs event time they carry `watermark_ns`, and `note_sent` is called with the destination of each
    frame for another such stage.
    """

    frame: Frame
    offset: int
    frame_bytes_max: int
    sent: SentTable
    watermark_ns: int | None = None
    note_sent: Callable[[FrameDestination], None] | None = None

    @property
    def body_bytes_max(self) -> int:
        """The bytes in a frame that messages may take."""
        return self.frame_bytes_max - ENVELOPE_BYTES_MAX

    @property
    def row_bytes_max(self) -> int:
        """Bytes of the largest message that a frame of rows can hold."""
        return self.body_bytes_max - _ROW_BYTES

    def pieces(
        self, columns: Columns, start: int, stop: int, payload: bytes, *, beside: int = 0
    ) -> Iterator[Piece]:
        """Splits rows, whose payload is given, in halves until each payload fits a frame or has a single row.

        `beside`: bytes that the frame holds beside the payload, for each row.
        """
        if len(payload) + beside * (stop - start) <= self.body_bytes_max or stop - start == 1:
            yield Piece(start, stop, payload)
            return
        middle = (start + stop) // 2
        for first, last in ((start, middle), (middle, stop)):
            yield from self.pieces(columns, first, last, columns.slice(first, last).payload(), beside=beside)

    def oversized(self, size: int) -> FrameError:
        """The error for a result of so many bytes, which no frame can hold."""
        return FrameError(
            f"a result of {size} bytes; a frame holds at most {self.body_bytes_max} (BETTONG_FRAME_BYTES_MAX)"
        )

    def columns(
        self,
        to: FrameDestination,
        piece: Piece,
        schema: int,
        event_times: bytes = b"",
        message_watermarks: bytes = b"",
    ) -> OutputRecord:
        """A frame of columns; `schema` is their fingerprint. `event_times`: for a stage that needs time."""
        if event_times and self.note_sent is not None:
            self.note_sent(to)
        return self._record(
            to,
            piece.stop - piece.start,
            columns=piece.payload,
            schema=schema,
            event_times=event_times,
            message_watermarks=message_watermarks,
        )

    def rows(self, to: FrameDestination, messages: Sequence[bytes]) -> Iterator[OutputRecord]:
        """Frames of encoded messages, as few as hold them. None may be larger than `row_bytes_max`."""
        start, size = 0, 0
        for index, message in enumerate(messages):
            cost = len(message) + _ROW_BYTES
            if size + cost > self.body_bytes_max and index > start:
                yield self._record(to, index - start, rows=messages[start:index])
                start, size = index, 0
            size += cost
        if start < len(messages):
            rest = messages[start:]
            yield self._record(to, len(rest), rows=rest)

    def _record(
        self,
        to: FrameDestination,
        count: int,
        *,
        columns: bytes | None = None,
        rows: Sequence[bytes] | None = None,
        schema: int = 0,
        event_times: bytes = b"",
        message_watermarks: bytes = b"",
    ) -> OutputRecord:
        sequence, previous = self.sent.number(to.origin, to.partition, self.offset)
        frame = Frame(
            origin=to.origin,
            sequence=sequence,
            previous=previous,
            count=count,
            schema=schema,
            ingest_ns=self.frame.ingest_ns,
            sent_ns=self.frame.sent_ns,
            watermark_ns=self.frame.watermark_ns if self.watermark_ns is None else self.watermark_ns,
            rows=rows,
            columns=columns,
            event_times=event_times,
            message_watermarks=message_watermarks,
        )
        return OutputRecord(to.topic, to.partition, encode(frame), count)
