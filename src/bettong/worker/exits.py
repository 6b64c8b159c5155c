"""Rows leave a stage as frames, with the numbers that make them effectively once.

A frame that leaves carries `sequence = (input offset + 1) * PARTS_MAX + part`: it grows with the log, and a
replay gives the same frame the same number. Usually there is one part for each input frame and destination;
results that outgrow the frame limit are spread over several.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from bettong.application.plan import Exit
from bettong.application.streams import Keyed
from bettong.errors import SchemaError
from bettong.frames.columns import Columns
from bettong.frames.frame import ENVELOPE_BYTES_MAX, Frame, encode
from bettong.frames.text import json_line
from bettong.routing import partitions_of, split
from bettong.topics import dead_letter_topic, sink_topic, stage_topic
from bettong.v1.frame_pb2 import DeadLetter
from bettong.worker.letters import Letters
from bettong.worker.rows import Rows

# Frames that one input frame may lead to at one destination. 2**20 leaves 2**44 offsets before a sequence
# outgrows 64 bits: at 10,000 frames a second in one partition, 55 years.
PARTS_MAX = 2**20


@dataclass(frozen=True, slots=True)
class OutputRecord:
    """A frame to be appended: `value` to `partition` of `topic`."""

    topic: str
    partition: int
    value: bytes


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

    def rows(self, exit_: Exit, rows: Rows, letters: Letters) -> Iterator[OutputRecord]:
        """The records that rows lead to at an exit; rows that do not fit become dead letters."""
        columns = rows.columns(exit_.stream, letters)
        if columns.length == 0:
            return
        if isinstance(exit_.target, Keyed):
            yield from self._rekeyed(exit_, exit_.target, columns, rows, letters)
            return
        origin, topic = exit_.origin(self.partition), sink_topic(self.application, exit_.target.name)
        if exit_.target.encoder is None:
            yield from self._columns(topic, self.partition, origin, columns)
        else:
            encoded = _encoded(exit_.target.name, exit_.target.encoder, columns, rows, letters)
            yield from self._messages(topic, origin, encoded)

    def dead_letters(self, letters: Letters, messages: Callable[[int], bytes]) -> Iterator[OutputRecord]:
        """The records of dead letters; `messages(place)` gives the message at a place of the frame."""
        found = [
            DeadLetter(
                computation=letter.computation,
                reason=letter.reason,
                origin=self.frame.origin,
                sequence=self.frame.sequence,
                index=letter.place,
                message=messages(letter.place)[: self._body_bytes_max // 2],
            ).SerializeToString()
            for letter in letters.found
        ]
        origin = f"dead-letters/{self.stage}/{self.partition}"
        yield from self._messages(dead_letter_topic(self.application), origin, found)

    @property
    def _body_bytes_max(self) -> int:
        return self.frame_bytes_max - ENVELOPE_BYTES_MAX

    def _rekeyed(
        self, exit_: Exit, target: Keyed, columns: Columns, rows: Rows, letters: Letters
    ) -> Iterator[OutputRecord]:
        topic = stage_topic(self.application, exit_.stage or "")
        origin = exit_.origin(self.partition)
        try:
            assignment = partitions_of(columns, target.key, self.partitions)
        except Exception:  # noqa: BLE001 - the user's key function: find the messages that it cannot take
            columns = _keyable(target, columns, rows, letters)
            assignment = partitions_of(columns, target.key, self.partitions)
        division = split(assignment, self.partitions)
        ordered = columns.take(division.order)
        for partition in range(self.partitions):
            start, stop = division.bounds[partition], division.bounds[partition + 1]
            if start < stop:
                yield from self._columns(topic, partition, origin, ordered.slice(start, stop))

    def _columns(self, topic: str, partition: int, origin: str, columns: Columns) -> Iterator[OutputRecord]:
        payload = columns.payload()
        if len(payload) > self._body_bytes_max and columns.length > 1:
            middle = columns.length // 2
            yield from self._columns(topic, partition, origin, columns.slice(0, middle))
            yield from self._columns(topic, partition, origin, columns.slice(middle, columns.length))
            return
        yield self._record(
            topic, partition, origin, columns.length, columns=payload, schema=columns.schema.fingerprint
        )

    def _messages(self, topic: str, origin: str, messages: Sequence[bytes]) -> Iterator[OutputRecord]:
        # Each message costs its length and at most 6 bytes of protobuf's tag and length.
        start, size = 0, 0
        for place, message in enumerate(messages):
            cost = len(message) + 6
            if size + cost > self._body_bytes_max and place > start:
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
        return OutputRecord(topic, partition, encode(frame))


def message_text(columns: Columns) -> Callable[[int], bytes]:
    """Gives the message at a place of a frame as JSON, for dead letters."""

    def text(place: int) -> bytes:
        return json_line(columns.schema, next(iter(columns.slice(place, place + 1))))

    return text


def _encoded(
    name: str, encoder: Callable[[Any], bytes], columns: Columns, rows: Rows, letters: Letters
) -> list[bytes]:
    encoded: list[bytes] = []
    for row, message in enumerate(columns):
        try:
            data = encoder(message)
            if not isinstance(data, bytes):
                raise SchemaError(f"the encoder returned {type(data).__name__}, not bytes")  # noqa: TRY301 - one way out
        except Exception as error:  # noqa: BLE001 - whatever the user's code raises is a dead letter
            letters.add(name, error, rows.parent(row))
        else:
            encoded.append(data)
    return encoded


def _keyable(target: Keyed, columns: Columns, rows: Rows, letters: Letters) -> Columns:
    """The rows whose key can be told; the others become dead letters."""
    kept: list[Any] = []
    for row, message in enumerate(columns):
        try:
            partitions_of(Columns.of_messages(columns.schema, [message]), target.key, 1)
        except Exception as error:  # noqa: BLE001 - whatever the user's code raises is a dead letter
            letters.add(target.name, error, rows.parent(row))
        else:
            kept.append(message)
    return Columns.of_messages(columns.schema, kept)
