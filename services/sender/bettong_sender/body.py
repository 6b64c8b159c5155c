"""The body of a client's frame, read: its messages as columns, and those that had to be refused."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from bettong.application.decoders import Decoded, Decoder
from bettong.application.on_error import ANY_ERROR, reason_of
from bettong.application.schema import Schema
from bettong.application.streams import Source
from bettong.errors import FrameError
from bettong.frames.columns import Array, Columns, fitting
from bettong.frames.refused import Refused
from bettong.frames.text import json_line
from bettong.routing import partitions_of, partitions_of_keys, split
from bettong.v1.ingest_pb2 import IngestFrame
from bettong_sender.deaths import Care
from bettong_sender.refusal import invalid


@dataclass(frozen=True, slots=True)
class Body:
    """The readable messages. Row r was message `places[r]` of the client's frame; None: message r."""

    columns: Columns
    places: Array | None = None
    refused: tuple[Refused, ...] = ()


def read_body(source: Source, frame: IngestFrame, touch: Callable[[int], None] | None = None) -> Body:
    """Reads columns, or decodes rows. Raises Refusal (INVALID_ARGUMENT) for what is not of the source.

    Rows that the decoder cannot read are refused one by one, not with their frame. With `touch` they are also decoded
    one by one, and it is told the place of each before.
    """
    schema = source.schema
    if frame.WhichOneof("body") == "columns":
        if frame.schema not in (0, schema.fingerprint):
            raise invalid(
                f"frame {frame.sequence} of source {source.name!r}: its columns follow schema {frame.schema:016x},"
                f" expected {schema.fingerprint:016x}; connect again and read Welcome.source"
            )
        try:
            columns = Columns.of_foreign_payload(schema, frame.columns)
        except FrameError as error:
            fields = ", ".join(f"{field.name} {field.arrow}" for field in schema.fields)
            raise invalid(
                f"frame {frame.sequence} of source {source.name!r}: {error}; expected one Arrow record batch"
                f" of ({fields}), without nulls, as Welcome.source.arrow_schema says"
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
    source: Source, frame: IngestFrame, giants: Mapping[int, str], touch: Callable[[int], None] | None = None
) -> Body:
    """Reads a frame of rows of which some are refused unread: their places, with the reason of each."""
    rows = frame.rows.messages
    kept = [place for place in range(len(rows)) if place not in giants]
    smaller = IngestFrame(sequence=frame.sequence)
    smaller.rows.messages.extend(rows[place] for place in kept)
    touch_kept = (lambda place: touch(kept[place])) if touch is not None else None
    body = read_body(source, smaller, touch_kept) if kept else Body(Columns.of_messages(source.schema, []))
    places = np.array(kept, np.int64)
    refused = [
        *(Refused(place, reason, rows[place], as_received=True) for place, reason in giants.items()),
        *(replace(each, place=kept[each.place]) for each in body.refused),
    ]
    return Body(
        body.columns,
        places if body.places is None else places[body.places],
        tuple(sorted(refused, key=lambda each: each.place)),
    )


def assign(source: Source, body: Body, partitions: int, care: Care | None = None) -> tuple[Body, Array]:
    """The partition of each message by the source's key. Messages whose key cannot be told are refused."""
    key = source.key
    if key is None:
        raise AssertionError("a source without a key is dealt by frames")
    if isinstance(key, str):
        return body, partitions_of(body.columns, key, partitions)
    if care is not None:
        return _assign_each(body, key, partitions, care)
    try:
        return body, partitions_of(body.columns, key, partitions)
    except ANY_ERROR:  # the user's key function may raise anything: find the messages it fails on
        return _assign_each(body, key, partitions, None)


def warm(source: Source, partitions: int) -> None:
    """Compiles what splitting frames of the source needs, so that the first client does not wait for it."""
    if not isinstance(source.key, str):
        return
    schema = source.schema
    columns = tuple(
        pa.array([""], field.arrow) if field.dtype is None else np.zeros(1, field.dtype)
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
        readable = [place for place in range(len(rows)) if place not in decoded.refused]
        refused |= {readable[place]: reason for place, reason in unfit.items()}
    if not refused:
        return Body(columns)
    return Body(
        columns,
        np.array([place for place in range(len(rows)) if place not in refused], np.int64),
        tuple(Refused(place, refused[place], rows[place], as_received=True) for place in sorted(refused)),
    )


def _decoded_each(
    schema: Schema, decoder: Decoder, rows: Sequence[bytes], touch: Callable[[int], None]
) -> Body:
    parts: list[Columns] = []
    places: list[int] = []
    refused: list[Refused] = []
    for place, row in enumerate(rows):
        touch(place)
        body = _decoded(schema, decoder, [row], None)
        parts.append(body.columns)
        places += [place] * body.columns.length
        refused += [replace(each, place=place) for each in body.refused]
    return Body(Columns.concatenated(schema, parts), np.array(places, np.int64), tuple(refused))


def _decode(
    schema: Schema, decoder: Decoder, rows: Sequence[bytes]
) -> tuple[Decoded, Columns, dict[int, str]]:
    """What the decoder gave, as columns, and why some of its messages do not fit the schema."""
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
    except ANY_ERROR as error:  # its frame is refused, the stream goes on
        reason = f"the decoder raised {reason_of(error)}"
    return Decoded(refused=dict.fromkeys(range(len(rows)), reason)), Columns.of_messages(schema, []), {}


def _assign_each(
    body: Body, key: Callable[..., str | int | bytes], partitions: int, care: Care | None
) -> tuple[Body, Array]:
    columns = body.columns
    places = np.arange(columns.length) if body.places is None else body.places
    assignment: list[int] = []
    kept: list[int] = []
    refused = list(body.refused)
    for row, message in enumerate(columns.messages()):
        place = int(places[row])
        if care is not None:
            if (reason := care.reason(place)) is not None:
                refused.append(Refused(place, reason, json_line(columns.schema, message), as_received=False))
                continue
            care.touch(place)
        try:
            partition = partitions_of_keys([key(message)], partitions)[0]
        except ANY_ERROR as error:
            reason = f"the key function raised {reason_of(error)}"
            text = json_line(columns.schema, message)
            refused.append(Refused(place, reason, text, as_received=False))
        else:
            kept.append(row)
            assignment.append(partition)
    rows = np.array(kept, np.int64)
    refused.sort(key=lambda each: each.place)
    return Body(columns.take(rows), places[rows], tuple(refused)), np.array(assignment, np.uint16)
