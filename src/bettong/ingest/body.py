"""Reads the body of a client's frame: its messages as columns, and those that are refused."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from bettong.application.nodes.source import Source
from bettong.errors import FrameError
from bettong.frames.columns import Array, Columns
from bettong.frames.fitting import fitting
from bettong.frames.refused import Refused
from bettong.frames.text import json_line
from bettong.ingest.care import Care
from bettong.ingest.refusal import invalid
from bettong.routing import partitions_of, partitions_of_keys, split
from bettong.schema.decoded import Decoded, Decoder
from bettong.schema.key_types import KeyValue
from bettong.schema.schema import Schema
from bettong.user_errors import ANY_ERROR, reason_of
from bettong.v1.ingest_pb2 import IngestFrame


@dataclass(frozen=True, slots=True)
class Body:
    """The readable messages. Row r was message `indexes[r]` of the client's frame; None: message r."""

    columns: Columns
    indexes: Array | None = None
    refused: tuple[Refused, ...] = ()

    def index(self, row: int) -> int:
        """Which message of the client's frame that row was."""
        return row if self.indexes is None else int(self.indexes[row])

    def only(self, rows: Array, refused: Iterable[Refused] = ()) -> "Body":
        """The body of these rows, in their order; `refused` are some of the other rows."""
        indexes = rows if self.indexes is None else self.indexes[rows]
        every = sorted((*self.refused, *refused), key=lambda each: each.index)
        return Body(self.columns.take(rows), indexes, tuple(every))


def read_body(source: Source, frame: IngestFrame, touch: Callable[[int], None] | None = None) -> Body:
    """Reads columns, or decodes rows. Raises Refusal (INVALID_ARGUMENT) for a body that does not fit the source.

    Rows that the decoder cannot read are refused one by one, not with their frame. With `touch`, rows are decoded one
    at a time, and it is called with the index of each before that.
    """
    schema = source.schema
    if frame.WhichOneof("body") == "columns":
        if frame.schema not in (0, schema.fingerprint):
            raise invalid(
                f"frame {frame.sequence} of source {source.name!r}: its columns follow schema {frame.schema:016x},"
                f" expected {schema.fingerprint:016x}; connect again and read Welcome.source"
            )
        try:
            columns = Columns.of_external_payload(schema, frame.columns)
        except FrameError as error:
            fields = ", ".join(f"{field.name} {field.arrow}" for field in schema.fields)
            raise invalid(
                f"frame {frame.sequence} of source {source.name!r}: {error}; expected one Arrow record batch"
                f" of ({fields}), with nulls only where Welcome.source.arrow_schema says nullable"
            ) from None
        body = Body(columns)
    else:
        rows = list(frame.rows.messages)
        if rows and source.decoder is None:
            raise invalid(
                f"frame {frame.sequence}: source {source.name!r} takes no rows, for it has no decoder;"
                " send columns, or give the source a decoder"
            )
        body = Body(Columns.of_messages(schema, []))
        if rows and source.decoder is not None:
            body = _decoded(schema, source.decoder, rows, touch)
    if not body.columns.length and not body.refused:
        raise invalid(
            f"frame {frame.sequence} of source {source.name!r} holds no messages; send at least one"
        )
    return body


def read_rows_without(
    source: Source,
    frame: IngestFrame,
    oversized: Mapping[int, str],
    touch: Callable[[int], None] | None = None,
) -> Body:
    """Reads a frame of rows without those in `oversized` (index and reason), which are refused unread."""
    rows = frame.rows.messages
    kept = [index for index in range(len(rows)) if index not in oversized]
    smaller = IngestFrame(sequence=frame.sequence)
    smaller.rows.messages.extend(rows[index] for index in kept)
    touch_kept = (lambda index: touch(kept[index])) if touch is not None else None
    body = read_body(source, smaller, touch_kept) if kept else Body(Columns.of_messages(source.schema, []))
    indexes = np.array(kept, np.int64)
    refused = [
        *(Refused(index, reason, rows[index], as_received=True) for index, reason in oversized.items()),
        *(replace(each, index=kept[each.index]) for each in body.refused),
    ]
    return Body(
        body.columns,
        indexes if body.indexes is None else indexes[body.indexes],
        tuple(sorted(refused, key=lambda each: each.index)),
    )


def assign(source: Source, body: Body, partitions: int, care: Care | None = None) -> tuple[Body, Array]:
    """The partition of each message by the source's key. Messages whose key cannot be computed are refused."""
    key = source.key
    if key is None:
        raise AssertionError("a source without a key is partitioned by frames")
    if not callable(key):
        return body, partitions_of(body.columns, key, partitions)
    if care is not None:
        return _assign_each(body, key, partitions, care)
    try:
        return body, partitions_of(body.columns, key, partitions)
    except ANY_ERROR:  # the user's key function may raise anything: find the messages it fails on
        return _assign_each(body, key, partitions, None)


def warm(source: Source, partitions: int) -> None:
    """Compiles what splitting frames of the source needs, so that the first client does not wait for it."""
    if source.key is None or callable(source.key):
        return
    schema = source.schema
    columns = tuple(
        pa.nulls(1, field.arrow)
        if field.form is not None
        else pa.array([""], field.arrow)
        if field.dtype is None
        else np.zeros(1, field.dtype)
        for field in schema.fields
    )
    split(partitions_of(Columns(schema, 1, columns), source.key, partitions), partitions)


def _decoded(
    schema: Schema, decoder: Decoder, rows: Sequence[bytes], touch: Callable[[int], None] | None
) -> Body:
    if touch is not None:
        return _decoded_each(schema, decoder, rows, touch)
    decoded, columns, unfit = _decode(schema, decoder, rows)
    refused = dict(decoded.refused)
    if unfit:
        readable = [index for index in range(len(rows)) if index not in decoded.refused]
        refused |= {readable[index]: reason for index, reason in unfit.items()}
    if not refused:
        return Body(columns)
    return Body(
        columns,
        np.array([index for index in range(len(rows)) if index not in refused], np.int64),
        tuple(Refused(index, refused[index], rows[index], as_received=True) for index in sorted(refused)),
    )


def _decoded_each(
    schema: Schema, decoder: Decoder, rows: Sequence[bytes], touch: Callable[[int], None]
) -> Body:
    parts: list[Columns] = []
    indexes: list[int] = []
    refused: list[Refused] = []
    for index, row in enumerate(rows):
        touch(index)
        body = _decoded(schema, decoder, [row], None)
        parts.append(body.columns)
        indexes += [index] * body.columns.length
        refused += [replace(each, index=index) for each in body.refused]
    return Body(Columns.concatenated(schema, parts), np.array(indexes, np.int64), tuple(refused))


def _decode(
    schema: Schema, decoder: Decoder, rows: Sequence[bytes]
) -> tuple[Decoded, Columns, dict[int, str]]:
    """What the decoder returned, as columns, and why some of its messages do not fit the schema."""
    try:
        decoded = decoder.decode(schema, rows)
        if decoded.columns is not None:
            columns = Columns(schema, len(decoded.columns[0]), tuple(decoded.columns))
            unfit: dict[int, str] = {}
        else:
            columns, unfit = fitting(schema, decoded.messages or [])
        found = columns.length + len(unfit) + len(decoded.refused)
        if found == len(rows):
            return decoded, columns, unfit
        reason = f"the decoder answered for {found} of {len(rows)} messages"
    except ANY_ERROR as error:  # all rows of the frame are refused, the stream goes on
        reason = reason_of(error, "the decoder raised ")
    return Decoded(refused=dict.fromkeys(range(len(rows)), reason)), Columns.of_messages(schema, []), {}


def _assign_each(
    body: Body, key: Callable[[Any], KeyValue], partitions: int, care: Care | None
) -> tuple[Body, Array]:
    columns = body.columns
    assignment: list[int] = []
    kept: list[int] = []
    refused: list[Refused] = []
    for row, message in enumerate(columns.messages()):
        index = body.index(row)
        if care is not None:
            if (reason := care.reason(index)) is not None:
                refused.append(Refused(index, reason, json_line(columns.schema, message), as_received=False))
                continue
            care.mark(index)
        try:
            partition = partitions_of_keys([key(message)], partitions)[0]
        except ANY_ERROR as error:
            reason = reason_of(error, "the key function raised ")
            text = json_line(columns.schema, message)
            refused.append(Refused(index, reason, text, as_received=False))
        else:
            kept.append(row)
            assignment.append(partition)
    return body.only(np.array(kept, np.int64), refused), np.array(assignment, np.uint16)
