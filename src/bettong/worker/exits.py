"""Rows leave a stage as frames, with the numbers that make them effectively once.

A frame that leaves carries `sequence = (input offset + 1) * PARTS_MAX + part`: it grows with the log, and a
replay gives the same frame the same number. Usually there is one part for each input frame and destination;
results that outgrow the frame limit are spread over several.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from bettong.application.on_error import ANY_ERROR
from bettong.application.plan import Exit
from bettong.application.streams import Keyed
from bettong.errors import FrameError, SchemaError
from bettong.frames.columns import Array, Columns
from bettong.frames.frame import ENVELOPE_BYTES_MAX, Frame, encode
from bettong.frames.refused import Refused
from bettong.frames.text import json_line
from bettong.routing import partition_of, partitions_of, split
from bettong.topics import DEAD_LETTERS, dead_letter_topic, sink_topic, stage_topic
from bettong.v1.frame_pb2 import DeadLetter
from bettong.worker.batch import Batch
from bettong.worker.letters import Letters

# Frames that one input frame may lead to at one destination. 2**20 leaves 2**44 offsets before a sequence
# outgrows 64 bits: at 10,000 frames a second in one partition, 55 years.
PARTS_MAX = 2**20
# What protobuf adds to a message among a frame's rows: a tag, and a length of at most 5 bytes.
_ROW_BYTES = 6


@dataclass(frozen=True, slots=True)
class OutputRecord:
    """A frame to be appended: `value`, which holds `count` messages, to `partition` of `topic`."""

    topic: str
    partition: int
    value: bytes
    count: int


class Piece(NamedTuple):
    """The rows from `start` up to but not including `stop`, as the body of a frame."""

    start: int
    stop: int
    payload: bytes


@dataclass(slots=True)
class SentTable:
    """The last sequence sent, by origin and destination partition. Part of the partition's state."""

    sequences: dict[tuple[str, int], int] = field(default_factory=dict)

    def number(self, origin: str, partition: int, offset: int) -> tuple[int, int]:
        """The `(sequence, previous)` of the next frame that input `offset` leads to there."""
        previous = self.sequences.get((origin, partition), 0)
        sequence = max((offset + 1) * PARTS_MAX, previous + 1)
        self.sequences[origin, partition] = sequence
        return sequence, previous


@dataclass(frozen=True, slots=True)
class Sending:
    """One input frame on its way out: where it came from, and what its output frames inherit."""

    application: str
    stage: str
    partition: int
    partitions: int
    frame_bytes_max: int
    offset: int
    frame: Frame
    sent: SentTable

    def batch(self, exit_: Exit, batch: Batch, letters: Letters) -> Iterator[OutputRecord]:
        """The records that the rows of a batch lead to at an exit; rows that cannot leave become dead letters."""
        columns = batch.columns
        if columns.length == 0:
            return
        if isinstance(exit_.target, Keyed):
            yield from self._rekeyed(exit_, exit_.target, batch, letters)
            return
        if exit_.target.encoder is None:
            pieces = self._pieces(columns, 0, columns.length, columns.payload())
            yield from self._columns(exit_, self.partition, pieces, batch.source, letters)
        else:
            encoded = self._encoded(exit_.target.name, exit_.target.encoder, batch, letters)
            topic = sink_topic(self.application, exit_.target.name)
            yield from self._messages(topic, exit_.origin(self.partition), encoded)

    def dead_letters(
        self,
        letters: Letters,
        messages: Callable[[int], bytes],
        *,
        as_received: bool = False,
        whole_record: bool = False,
    ) -> Iterator[OutputRecord]:
        """The records of dead letters; `messages(place)` gives the message at a place of the frame, as JSON
        unless it is `as_received`.
        """
        found: list[bytes] = []
        size_max = self._body_bytes_max // 2
        for letter in letters.in_order():
            message = messages(letter.place)
            dead = DeadLetter(
                computation=letter.computation,
                reason=letter.reason,
                origin=self.frame.origin,
                sequence=self.frame.sequence,
                index=letter.place,
                message=message[:size_max],
                as_received=as_received,
                cut=len(message) > size_max,
                whole_record=whole_record,
            )
            found.append(dead.SerializeToString())
        yield from self._letters(found)

    def refused(self, messages: Sequence[Refused]) -> Iterator[OutputRecord]:
        """The records of dead letters of messages that the sender refused: their computation is the source."""
        size_max = self._body_bytes_max // 2
        dead = (
            DeadLetter(
                computation=self.frame.stream,
                reason=each.reason,
                origin=self.frame.origin,
                sequence=self.frame.sequence,
                index=each.place,
                message=each.message[:size_max],
                as_received=each.as_received,
                cut=each.cut or len(each.message) > size_max,
            )
            for each in messages
        )
        yield from self._letters([each.SerializeToString() for each in dead])

    def _letters(self, letters: Sequence[bytes]) -> Iterator[OutputRecord]:
        origin = f"{DEAD_LETTERS}/{self.stage}/{self.partition}"
        yield from self._messages(dead_letter_topic(self.application), origin, letters)

    @property
    def _body_bytes_max(self) -> int:
        return self.frame_bytes_max - ENVELOPE_BYTES_MAX

    def _rekeyed(self, exit_: Exit, target: Keyed, batch: Batch, letters: Letters) -> Iterator[OutputRecord]:
        columns = batch.columns
        try:
            division = split(partitions_of(columns, target.key, self.partitions), self.partitions)
            order = division.order
        except ANY_ERROR:  # the user's key function: find the messages that it cannot take
            kept, assignment = _keyable(target, batch, letters, self.partitions)
            division = split(assignment, self.partitions)
            order = kept.take(division.order)
        ordered = columns.take(order)
        stops = [stop for start, stop in pairwise(division.bounds) if start < stop]
        touched = [place for place, (start, stop) in enumerate(pairwise(division.bounds)) if start < stop]
        for partition, (start, stop), payload in zip(
            touched, pairwise([0, *stops]), ordered.payloads([0, *stops]), strict=True
        ):
            pieces = self._pieces(ordered, start, stop, payload)
            yield from self._columns(
                exit_, partition, pieces, lambda row: batch.source(int(order[row])), letters
            )

    def _encoded(
        self, sink: str, encoder: Callable[[Any], bytes], batch: Batch, letters: Letters
    ) -> list[bytes]:
        encoded: list[bytes] = []
        size_max = self._body_bytes_max - _ROW_BYTES
        for row, message in enumerate(batch.columns):
            try:
                data = encoder(message)
                if not isinstance(data, bytes):
                    raise SchemaError(f"the encoder returned {type(data).__name__}, not bytes")
                if len(data) > size_max:
                    raise self._too_large(len(data))
            except ANY_ERROR as error:
                letters.add(sink, error, batch.source(row))
            else:
                encoded.append(data)
        return encoded

    def _pieces(self, columns: Columns, start: int, stop: int, payload: bytes) -> Iterator[Piece]:
        """The rows as payloads, halved until each fits a frame or is a single row."""
        if len(payload) <= self._body_bytes_max or stop - start == 1:
            yield Piece(start, stop, payload)
            return
        middle = (start + stop) // 2
        yield from self._pieces(columns, start, middle, columns.slice(start, middle).payload())
        yield from self._pieces(columns, middle, stop, columns.slice(middle, stop).payload())

    def _too_large(self, size: int) -> FrameError:
        return FrameError(
            f"a result of {size} bytes; a frame holds at most {self._body_bytes_max} (BETTONG_FRAME_BYTES_MAX)"
        )

    def _columns(
        self,
        exit_: Exit,
        partition: int,
        pieces: Iterator[Piece],
        parent: Callable[[int], int],
        letters: Letters,
    ) -> Iterator[OutputRecord]:
        """A record for each piece. A row that no frame can hold becomes a dead letter."""
        if exit_.stage is not None:
            topic = stage_topic(self.application, exit_.stage)
        else:
            topic = sink_topic(self.application, exit_.target.name)
        for start, stop, payload in pieces:
            if len(payload) > self._body_bytes_max:
                letters.add(exit_.target.name, self._too_large(len(payload)), parent(start))
                continue
            origin, schema = exit_.origin(self.partition), exit_.schema.fingerprint
            yield self._record(topic, partition, origin, stop - start, columns=payload, schema=schema)

    def _messages(self, topic: str, origin: str, messages: Sequence[bytes]) -> Iterator[OutputRecord]:
        body_bytes_max = self._body_bytes_max
        start, size = 0, 0
        for place, message in enumerate(messages):
            cost = len(message) + _ROW_BYTES
            if size + cost > body_bytes_max and place > start:
                yield self._record(topic, self.partition, origin, place - start, rows=messages[start:place])
                start, size = place, 0
            size += cost
        if start < len(messages):
            rest = messages[start:]
            yield self._record(topic, self.partition, origin, len(rest), rows=rest)

    def _record(
        self,
        topic: str,
        partition: int,
        origin: str,
        count: int,
        *,
        columns: bytes | None = None,
        rows: Sequence[bytes] | None = None,
        schema: int = 0,
    ) -> OutputRecord:
        sequence, previous = self.sent.number(origin, partition, self.offset)
        frame = Frame(
            origin=origin,
            sequence=sequence,
            previous=previous,
            count=count,
            schema=schema,
            ingest_ns=self.frame.ingest_ns,
            sent_ns=self.frame.sent_ns,
            watermark_ns=self.frame.watermark_ns,
            rows=rows,
            columns=columns,
        )
        return OutputRecord(topic, partition, encode(frame), count)


def message_text(columns: Columns) -> Callable[[int], bytes]:
    """Gives the message at a place of a frame as JSON, for dead letters. Runs none of the user's code."""

    def text(place: int) -> bytes:
        row = columns.slice(place, place + 1)
        values = {field.name: row.values(at)[0] for at, field in enumerate(columns.schema.fields)}
        return json_line(columns.schema, SimpleNamespace(**values))

    return text


def _keyable(target: Keyed, batch: Batch, letters: Letters, partitions: int) -> tuple[Array, Array]:
    """The rows whose key can be told, and their partitions; the others become dead letters."""
    kept: list[int] = []
    found: list[int] = []
    for row, message in enumerate(batch.columns):
        try:
            key = getattr(message, target.key) if isinstance(target.key, str) else target.key(message)
            found.append(partition_of(key, partitions))
        except ANY_ERROR as error:
            letters.add(target.name, error, batch.source(row))
        else:
            kept.append(row)
    return np.array(kept, np.int64), np.array(found, np.uint16)
