"""Files of messages, read as frames: framed binary, lines of text, JSON lines, CSV and Parquet.

| format    | a message is                                       | sent as                      | file name ends with  |
| --------- | -------------------------------------------------- | ---------------------------- | -------------------- |
| `binary`  | u32 length (big-endian), then so many bytes        | bytes                        | .bin .msg .dat       |
| `lines`   | a line of text without its line feed               | bytes, or the one text field | .txt .log            |
| `json`    | a line with an object that has the schema's fields | columns                      | .json .jsonl .ndjson |
| `csv`     | a row; the first line names the schema's fields    | columns                      | .csv                 |
| `parquet` | a row; columns are named as the schema's fields    | columns                      | .parquet .pq         |

The source's decoder reads bytes. Columns need none: text and bytes of a fixed width are padded with NUL; true is 1.
JSON is read as Bettong writes it: "base64:..." for bytes, "NaN" and "Infinity" for floats. In CSV a datetime, Decimal,
list and the like is its JSON without quotes; an empty cell is None where the field may be None, and NaN is a number.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from bettong.client.csv_rows import csv_groups
from bettong.client.json_values import column_of
from bettong.client.message_input import (
    Body,
    Group,
    MessageFile,
    Piped,
    Wanted,
    check_lengths,
    groups_of,
    lines_of,
    opened,
    share,
    size_of,
)
from bettong.client.refused_rows import Refuse, end_reading, frame_bodies
from bettong.errors import BettongError, SchemaError
from bettong.schema.defaults import has_default
from bettong.schema.json_objects import reader_by_arrow, record_of
from bettong.schema.tables import batch_of

_LENGTH = struct.Struct(">I")
_BLOCK_BYTES = 1024 * 1024


class Format(StrEnum):
    """How a file stores messages."""

    BINARY = "binary"
    LINES = "lines"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


_ENDINGS = {
    Format.BINARY: (".bin", ".msg", ".dat"),
    Format.LINES: (".txt", ".log"),
    Format.JSON: (".json", ".jsonl", ".ndjson"),
    Format.CSV: (".csv",),
    Format.PARQUET: (".parquet", ".pq"),
}


@dataclass(frozen=True, slots=True)
class Portion:
    """The messages of one frame: as bytes or as columns. `last`: the number of the last one in the file, from 1.

    Messages that were refused are counted, too.
    """

    last: int
    body: Body
    done: float | None  # share of the file that is read so far, 0 to 1; None for a pipe


def format_of(path: Path, *, offered: Iterable[Format] = Format) -> Format:
    """The format that the end of a file's name stands for. Raises BettongError, with those on offer, for another."""
    for kind, endings in _ENDINGS.items():
        if path.suffix.lower() in endings:
            return kind
    raise BettongError(f"{path}: cannot tell the format by the ending; give --format {'|'.join(offered)}")


def portions(
    file: MessageFile, kind: Format, wanted: Wanted, *, refuse: Refuse = end_reading
) -> Iterator[Portion]:
    """Reads a file as frames, in order. Memory is bounded by a few frames.

    Frame boundaries depend on the file and `wanted` alone, so reading again gives the same; a refused row is only
    missing from its frame. Content that does not fit is reported to `refuse`, with its position; by default that raises
    SchemaError. Where the next message cannot be found, SchemaError is raised in any case. Raises BettongError for a
    file that cannot be read, or for a format that the source does not take.
    """
    _check_kind(file, kind, wanted)
    readers: dict[Format, Callable[[MessageFile, Wanted], Iterator[Group]]] = {
        Format.BINARY: _binary,
        Format.LINES: _lines,
        Format.JSON: _json,
        Format.CSV: csv_groups,
        Format.PARQUET: _parquet,
    }
    before = 0
    try:
        for group in readers[kind](file, wanted):
            for count, body in frame_bodies(group, wanted.bytes_max, refuse):
                yield Portion(before + count, body, group.done)
            before += group.length
    except OSError as error:
        raise BettongError(f"{file} cannot be read: {error}") from None


def _check_kind(file: MessageFile, kind: Format, wanted: Wanted) -> None:
    if kind is Format.PARQUET and isinstance(file, Piped):
        raise BettongError(f"{file}: Parquet is read from its end, which a pipe does not have; give a file")
    if kind is Format.BINARY and not wanted.takes_rows:
        raise BettongError(
            f"{file}: the source has no decoder, so it takes no bytes; send JSON lines, CSV or Parquet"
        )
    if kind is Format.LINES and not wanted.takes_rows and not _one_text(wanted.schema):
        raise BettongError(
            f"{file}: lines are for a source with a decoder, or with one text field; send JSON lines, CSV or Parquet"
        )


def _one_text(schema: pa.Schema) -> bool:
    return len(schema) == 1 and bool(pa.types.is_string(schema.types[0]))


def _binary(file: MessageFile, wanted: Wanted) -> Iterator[Group]:
    size, done = size_of(file), 0
    messages: list[bytes] = []
    group_bytes = 0
    for message, position in _framed(file, wanted):
        messages.append(message)
        group_bytes += len(message)
        if len(messages) == wanted.messages_max or group_bytes >= wanted.text_bytes_max:
            yield _of_messages(file, done, messages, share(position, size))
            done, messages, group_bytes = done + len(messages), [], 0
    if messages:
        yield _of_messages(file, done, messages, share(size or 0, size))


def _of_messages(file: MessageFile, before: int, messages: list[bytes], done: float | None) -> Group:
    return Group(
        len(messages),
        lambda start, stop: messages[start:stop],
        lambda index: f"{file}, message {before + index + 1}",
        done,
    )


def _framed(file: MessageFile, wanted: Wanted) -> Iterator[tuple[bytes, int]]:
    """Each message, and the offset of its end. After a wrong length, the start of the next message is unknown."""
    rest, read, number = b"", 0, 0
    with opened(file) as stream:
        while block := stream.read1(_BLOCK_BYTES):  # a pipe may pause in the middle of a block
            read += len(block)
            rest, position = rest + block, 0
            while len(rest) - position >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(rest, position)
                if length > wanted.bytes_max:
                    raise SchemaError(
                        f"{file}, message {number + 1}: its length says {length} bytes, the sender takes"
                        f" {wanted.bytes_max}; expected u32 length (big-endian), then the message"
                    )
                end = position + _LENGTH.size + length
                if end > len(rest):
                    break
                yield rest[position + _LENGTH.size : end], read - len(rest) + end
                position, number = end, number + 1
            rest = rest[position:]
    if rest:
        raise SchemaError(f"{file}: ends inside message {number + 1}")


def _lines(file: MessageFile, wanted: Wanted) -> Iterator[Group]:
    def read(lines: list[bytes]) -> Body:
        check_lengths(lines, wanted.text_bytes_max, f"the sender takes {wanted.bytes_max:,}")
        messages = [line.rstrip(b"\r") for line in lines]
        if wanted.takes_rows:
            return messages
        return batch_of(wanted.schema, {wanted.schema.names[0]: pa.array(messages)})

    return _of_lines(file, wanted, read)


def _json(file: MessageFile, wanted: Wanted) -> Iterator[Group]:
    def read(lines: list[bytes]) -> Body:
        check_lengths(lines, wanted.text_bytes_max, "is it JSON lines, an object a line?")
        records = [record_of(line) for line in lines]
        columns = {
            field.name: column_of(field, reader_by_arrow(field).values(records)) for field in wanted.schema
        }
        return batch_of(wanted.schema, columns)

    return _of_lines(file, wanted, read)


def _of_lines(file: MessageFile, wanted: Wanted, read: Callable[[list[bytes]], Body]) -> Iterator[Group]:
    size = size_of(file)
    with opened(file) as stream:
        for group in groups_of(lines_of(stream, wanted.text_bytes_max), wanted):
            yield Group(
                len(group.texts),
                lambda start, stop, rows=group: read(rows.texts[start:stop]),  # type: ignore[misc]
                lambda index, rows=group: f"{file}, line {rows.numbers[index]}",  # type: ignore[misc]
                None if size is None else share(stream.tell(), size),
            )


def _parquet(file: MessageFile, wanted: Wanted) -> Iterator[Group]:
    before = 0
    try:
        with pyarrow.parquet.ParquetFile(file) as table:
            total = table.metadata.num_rows
            there = set(table.schema_arrow.names)
            for field in wanted.schema:
                if field.name not in there and not has_default(field):
                    raise SchemaError(
                        f"{file}: no column {field.name!r}; it has {', '.join(table.schema_arrow.names)}"
                    )
            found = [name for name in wanted.schema.names if name in there]
            for batch in table.iter_batches(wanted.messages_max, columns=found):
                yield Group(
                    len(batch),
                    lambda start, stop, rows=batch: batch_of(wanted.schema, rows.slice(start, stop - start)),  # type: ignore[misc]
                    lambda index, before=before: f"{file}, row {before + index + 1}",  # type: ignore[misc]
                    (before + len(batch)) / total,
                )
                before += len(batch)
    except pa.ArrowException as error:
        where = f", after row {before}" if before else ""
        raise SchemaError(f"{file}{where}: {error}") from None
