"""A sink's frames as rows: the fields of its messages, then the columns that identify each message. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from bettong.application.nodes.sink import Sink
from bettong.application.plan import Plan, Stage
from bettong.errors import ApplicationError, FrameError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, FrameKind
from bettong.frames.text import json_line
from bettong.schema.schema import Schema
from bettong.spark.arrow_types import spark_array, spark_field
from bettong.spark.data_frames import ROWS_A_BATCH

# Origin, sequence and index identify a message. Within one origin, a partition's messages are ordered by sequence and
# index.
NUMBERING = pa.schema(
    [
        ("_partition", pa.int32()),
        ("_origin", pa.string()),
        ("_sequence", pa.int64()),
        ("_index", pa.int32()),
        ("_taken_in", pa.timestamp("us", "UTC")),
    ]
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SinkColumns:
    """The columns of one sink."""

    def __init__(self, plan: Plan, sink: Sink) -> None:
        """Raises ApplicationError where a field of the messages has the name of a column of NUMBERING."""
        self._sink = sink
        self._application = plan.application
        outputs = [each for stage in plan.stages for each in stage.outputs if each.target is sink]
        self._schemas = {each.schema.fingerprint: each.schema for each in outputs}
        self._mixes = len(self._schemas) > 1
        own = self._own_fields()
        if taken := sorted({field.name for field in own} & set(NUMBERING.names)):
            raise ApplicationError(
                f"sink {sink.name!r}: its messages have a field {taken[0]!r}, which is a column of bettong.spark:"
                " give the field another name"
            )
        self.arrow = pa.schema([*own, *NUMBERING])

    def rows(self, partition: int, frame: Frame) -> pa.RecordBatch | None:
        """The messages of a frame of the sink's topic; None for a frame without messages.

        Raises FrameError for a frame that no stage of this application has written.
        """
        if frame.kind is not FrameKind.DATA:
            return None
        own = self._own_columns(frame)
        length = len(own[0])
        taken_in = _EPOCH + timedelta(microseconds=frame.ingest_ns // 1000)
        numbers = [partition, frame.origin, frame.sequence, None, taken_in]
        numbering = [
            pa.array(range(length), kind) if value is None else pa.repeat(pa.scalar(value, kind), length)
            for value, kind in zip(numbers, NUMBERING.types, strict=True)
        ]
        return pa.RecordBatch.from_arrays([*own, *numbering], schema=self.arrow)

    def _own_fields(self) -> list[pa.Field]:
        if self._sink.encoder is not None:
            return [pa.field("message", pa.binary())]
        if self._mixes:
            return [pa.field("type", pa.string()), pa.field("message", pa.string())]
        (schema,) = self._schemas.values()
        return [spark_field(field) for field in schema.arrow]

    def _own_columns(self, frame: Frame) -> list[pa.Array]:
        if self._sink.encoder is not None and frame.rows is not None:
            return [pa.array(list(frame.rows), pa.binary())]
        schema = self._schemas.get(frame.schema)
        if self._sink.encoder is not None or frame.columns is None or schema is None:
            raise FrameError(
                f"sink {self._sink.name!r} of {self._application}: frame {frame.sequence} of {frame.origin} holds other"
                " messages than the application's: another version of it has written them; give that version's file"
            )
        columns = Columns.of_payload(schema, frame.columns)
        if self._mixes:
            return [pa.repeat(pa.scalar(schema.name), columns.length), pa.array(_json_of(schema, columns))]
        return [
            spark_array(field, column)
            for field, column in zip(schema.arrow, columns.batch().columns, strict=True)
        ]


def sink_named(plan: Plan, name: str) -> Sink:
    """The sink of that name. Raises ApplicationError, which lists the sinks that exist."""
    for sink in plan.sinks:
        if sink.name == name:
            return sink
    known = ", ".join(repr(sink.name) for sink in plan.sinks)
    raise ApplicationError(f"application {plan.application!r} has no sink {name!r}; give one of {known}")


def stages_before(plan: Plan, sink: Sink) -> list[Stage]:
    """The stages that write a sink's results."""
    return [stage for stage in plan.stages if any(each.target is sink for each in stage.outputs)]


def gathered(batches: Iterable[pa.RecordBatch | None]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches: a frame may hold only one message, and each batch has a fixed cost in Spark."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if batch is not None:
            held.append(batch)
            rows += batch.num_rows
        if rows >= ROWS_A_BATCH:
            yield from _united(held)
            held, rows = [], 0
    if held:
        yield from _united(held)


def _united(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    united: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return united


def _json_of(schema: Schema, columns: Columns) -> list[str]:
    return [json_line(schema, message).decode() for message in columns]
