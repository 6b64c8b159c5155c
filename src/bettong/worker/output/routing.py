"""Routes the rows of a batch that leave a stage: to a sink, or by their new keys to the partitions of a stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import length_hint
from typing import Any, NamedTuple

import numpy as np

from bettong.application.key import key_reader
from bettong.application.nodes.keyed import Keyed
from bettong.application.plan import StageOutput
from bettong.errors import SchemaError
from bettong.frames.columns import Array
from bettong.frames.times import TIME_BYTES, encode_times
from bettong.identifiers import PartitionId
from bettong.routing import partition_of, partitions_of, split
from bettong.topics import sink_topic, stage_topic
from bettong.user_errors import ANY_ERROR, reason_of
from bettong.worker.batch import Batch
from bettong.worker.output.dead_letters import DeadLetters
from bettong.worker.output.framing import FrameDestination, FrameEmitter, OutputRecord, Piece, origin_of


class RowTimes(NamedTuple):
    """Event times of rows, for a stage that needs time; the watermarks before them, for one that judges lateness."""

    times: Array | None = None
    watermarks: Array | None = None
    needs_each_watermark: bool = False

    @classmethod
    def of(cls, output: StageOutput, batch: Batch, rows: Array) -> RowTimes:
        """The times of those rows of a batch, in that order."""
        return cls(
            batch.event_times().take(rows) if output.needs_time else None,
            batch.message_watermarks().take(rows) if output.judges_lateness else None,
            output.needs_each_watermark,
        )

    @property
    def row_bytes(self) -> int:
        """The most bytes that these take a row."""
        return sum(TIME_BYTES for each in (self.times, self.watermarks) if each is not None)

    def encoded(self, start: int, stop: int) -> tuple[bytes, bytes]:
        """Both, encoded for the frame of the rows from `start` up to but not including `stop`."""
        if self.times is None:
            return b"", b""
        times = self.times[start:stop]
        if self.watermarks is None or not (
            self.needs_each_watermark or (times < self.watermarks[start:stop]).any()
        ):
            return encode_times(times), b""
        return encode_times(times), encode_times(self.watermarks[start:stop])


_NO_TIMES = RowTimes()


@dataclass(frozen=True, slots=True)
class Router:
    """Routes the results of input frames of partition `id`. `partitions`: how many every stage has."""

    application: str
    id: PartitionId
    partitions: int

    def route(
        self, emitter: FrameEmitter, output: StageOutput, batch: Batch, dead_letters: DeadLetters
    ) -> Iterator[OutputRecord]:
        """The records of a batch for an output; rows that cannot be sent become dead letters.

        `emitter` makes the output frames of the input frame that the batch comes from.
        """
        columns = batch.columns
        if isinstance(output.target, Keyed):
            yield from self._by_key(emitter, output, output.target, batch, dead_letters)
        elif output.target.encoder is None:
            pieces = emitter.pieces(columns, 0, columns.length, columns.payload())
            yield from self._columns(emitter, output, self.id.partition, pieces, batch.source, dead_letters)
        else:
            encoded = self._encoded(emitter, output.target.name, output.target.encoder, batch, dead_letters)
            yield from emitter.rows(self._destination(output, self.id.partition), encoded)

    def timed_destinations(self, outputs: Sequence[StageOutput]) -> list[FrameDestination]:
        """The partitions of stages that need time, where these outputs lead."""
        timed = {output.target.name: output for output in outputs if output.needs_time}
        return [
            self._destination(output, partition)
            for output in timed.values()
            for partition in range(self.partitions)
        ]

    def _destination(self, output: StageOutput, partition: int) -> FrameDestination:
        if output.stage is not None:
            topic = stage_topic(self.application, output.stage)
        else:
            topic = sink_topic(self.application, output.target.name)
        return FrameDestination(topic, partition, origin_of(output.target.name, self.id))

    def _by_key(
        self,
        emitter: FrameEmitter,
        output: StageOutput,
        target: Keyed,
        batch: Batch,
        dead_letters: DeadLetters,
    ) -> Iterator[OutputRecord]:
        columns = batch.columns
        try:
            division = split(partitions_of(columns, target.key, self.partitions), self.partitions)
            order = division.order
        except ANY_ERROR:  # the user's key function raised: find the messages for which it does
            kept, partitions = _keyable(target, batch, dead_letters, self.partitions)
            division = split(partitions, self.partitions)
            order = kept.take(division.order)
        ordered = columns.take(order)
        times = RowTimes.of(output, batch, order)
        stops = [stop for start, stop in pairwise(division.bounds) if start < stop]
        touched = [
            partition for partition, (start, stop) in enumerate(pairwise(division.bounds)) if start < stop
        ]
        for partition, (start, stop), payload in zip(
            touched, pairwise([0, *stops]), ordered.payloads([0, *stops]), strict=True
        ):
            pieces = emitter.pieces(ordered, start, stop, payload, beside=times.row_bytes)
            source = lambda row: batch.source(int(order[row]))  # noqa: E731 - as short as it can be
            yield from self._columns(emitter, output, partition, pieces, source, dead_letters, times)

    def _columns(
        self,
        emitter: FrameEmitter,
        output: StageOutput,
        partition: int,
        pieces: Iterator[Piece],
        source: Callable[[int], int],
        dead_letters: DeadLetters,
        times: RowTimes = _NO_TIMES,
    ) -> Iterator[OutputRecord]:
        """A record for each piece. A row that no frame can hold becomes a dead letter. `times`: of the rows."""
        to, schema = self._destination(output, partition), output.schema.fingerprint
        for piece in pieces:
            beside = times.row_bytes * (piece.stop - piece.start)
            if len(piece.payload) + beside > emitter.body_bytes_max:
                reason = emitter.oversized(len(piece.payload))
                dead_letters.add(output.target.name, str(reason), source(piece.start))
                continue
            yield emitter.columns(to, piece, schema, *times.encoded(piece.start, piece.stop))

    def _encoded(
        self,
        emitter: FrameEmitter,
        sink: str,
        encoder: Callable[[Any], bytes],
        batch: Batch,
        dead_letters: DeadLetters,
    ) -> list[bytes]:
        encoded: list[bytes] = []

        def encode(_row: int, message: Any) -> None:
            data = encoder(message)
            if not isinstance(data, bytes):
                raise SchemaError(f"the encoder returned {type(data).__name__}, not bytes")
            if len(data) > emitter.row_bytes_max:
                raise emitter.oversized(len(data))
            encoded.append(data)

        _for_each_row(batch, sink, encode, dead_letters)
        return encoded


def _keyable(target: Keyed, batch: Batch, dead_letters: DeadLetters, partitions: int) -> tuple[Array, Array]:
    """The rows whose key can be computed, and their partitions; the others become dead letters."""
    kept: list[int] = []
    found: list[int] = []
    read = key_reader(target.key, batch.schema)

    def keep(row: int, message: Any) -> None:
        found.append(partition_of(read(message), partitions))
        kept.append(row)

    _for_each_row(batch, target.name, keep, dead_letters)
    return np.array(kept, np.int64), np.array(found, np.uint16)


def _for_each_row(
    batch: Batch, target: str, take: Callable[[int, Any], None], dead_letters: DeadLetters
) -> None:
    """Calls `take(row, message)` for each row. An error of it, or of making the message, is that row's failure."""
    rows = iter(range(batch.length))
    messages = iter(batch.columns)
    while True:
        try:
            for row, message in zip(rows, messages, strict=True):
                take(row, message)
        except ANY_ERROR as error:
            row = batch.length - 1 - length_hint(rows)
            dead_letters.add(target, reason_of(error), batch.source(row))
        else:
            return
