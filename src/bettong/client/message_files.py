"""Files of messages, read as frames: framed binary, lines of text, JSON lines, CSV and Parquet.

| format    | a message is                                            | goes as | by ending           |
| --------- | ------------------------------------------------------- | ------- | ------------------- |
| `binary`  | u32 length (big-endian), then so many bytes             | bytes   | .bin .msg .dat      |
| `lines`   | a line of text without its end                          | bytes, or the one text field | .txt .log |
| `json`    | a line with an object that has the schema's fields      | columns | .json .jsonl .ndjson |
| `csv`     | a row; the first line names the schema's fields          | columns | .csv                |
| `parquet` | a row; columns are named as the schema's fields          | columns | .parquet .pq        |

Bytes are for the source's decoder. Columns need none: text and bytes of a fixed width are padded with NUL; true is 1
(in CSV, write 1). JSON is read as Bettong writes it: "base64:..." for bytes, "NaN" and "Infinity" for floats. In CSV
a datetime, Decimal, list and the like is its JSON without quotes; an empty cell is None where the field may have that.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from bettong.client.json_values import column_of, form_of, reader_of
from bettong.errors import BettongError, SchemaError
from bettong.schema.fields import may_be_left_out
from bettong.schema.form import Form, UnfitValueError, each
from bettong.schema.tables import Table, batch_of

_LENGTH = struct.Struct(">I")
_BLOCK_BYTES = 1024 * 1024


class Format(StrEnum):
    """How messages lie in a file."""

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
class Wanted:
    """What a source takes, and how much of it at a time."""

    schema: pa.Schema
    takes_rows: bool
    messages_max: int
    bytes_max: int


@dataclass(frozen=True, slots=True)
class Portion:
    """The messages of one frame: as bytes or as columns. `last` is the number of the last one in the file, from 1."""

    last: int
    body: list[bytes] | pa.RecordBatch
    done: float  # share of the file that is read so far, 0 to 1


def format_of(path: Path) -> Format:
    """The format that a file's ending stands for. Raises BettongError for one that it does not know."""
    for kind, endings in _ENDINGS.items():
        if path.suffix.lower() in endings:
            return kind
    raise BettongError(f"{path}: cannot tell the format by the ending; give --format {'|'.join(Format)}")


def portions(path: Path, kind: Format, wanted: Wanted) -> Iterator[Portion]:
    """The file, frame by frame, in order. Memory is bounded by a few frames.

    Batch boundaries depend on the file and `wanted` alone, so reading again gives the same. Raises SchemaError, naming
    where it is, for content that does not fit, BettongError for a file or a source of another kind.
    """
    _check_kind(path, kind, wanted)
    readers: dict[Format, Callable[[Path, Wanted], Iterator[tuple[Any, float]]]] = {
        Format.BINARY: _binary,
        Format.LINES: _lines,
        Format.JSON: _json,
        Format.CSV: _csv,
        Format.PARQUET: _parquet,
    }
    last = 0
    try:
        for body, done in readers[kind](path, wanted):
            for part in _small_enough(body, wanted, path, last):
                last += len(part)
                yield Portion(last, part, done)
    except OSError as error:
        raise BettongError(f"{path} cannot be read: {error}") from None


def _check_kind(path: Path, kind: Format, wanted: Wanted) -> None:
    if kind is Format.BINARY and not wanted.takes_rows:
        raise BettongError(
            f"{path}: the source has no decoder, so it takes no bytes; send JSON lines, CSV or Parquet"
        )
    if kind is Format.LINES and not wanted.takes_rows and not _one_text(wanted.schema):
        raise BettongError(
            f"{path}: lines are for a source with a decoder, or with one text field; send JSON lines, CSV or Parquet"
        )


def _one_text(schema: pa.Schema) -> bool:
    return len(schema) == 1 and bool(pa.types.is_string(schema.types[0]))


def _small_enough(
    body: list[bytes] | pa.RecordBatch, wanted: Wanted, path: Path, before: int
) -> Iterator[list[bytes] | pa.RecordBatch]:
    """Halves what is too large for a frame until it fits."""
    count = len(body)
    size = (
        sum(map(len, body)) + 8 * count
        if isinstance(body, list)
        else body.nbytes + 512 + 128 * body.num_columns
    )
    if size <= wanted.bytes_max:
        yield body
    elif count == 1:
        raise SchemaError(f"{path}, message {before + 1}: {size} bytes, the sender takes {wanted.bytes_max}")
    else:
        half = count // 2
        yield from _small_enough(body[:half], wanted, path, before)
        yield from _small_enough(body[half:], wanted, path, before + half)


def _binary(path: Path, wanted: Wanted) -> Iterator[tuple[list[bytes], float]]:
    size = path.stat().st_size
    messages: list[bytes] = []
    rest, read, number = b"", 0, 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            read += len(block)
            rest, position = rest + block, 0
            while len(rest) - position >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(rest, position)
                if length > wanted.bytes_max:
                    raise SchemaError(
                        f"{path}, message {number + 1}: its length says {length} bytes, the sender takes"
                        f" {wanted.bytes_max}; expected u32 length (big-endian), then the message"
                    )
                end = position + _LENGTH.size + length
                if end > len(rest):
                    break
                messages.append(rest[position + _LENGTH.size : end])
                position, number = end, number + 1
                if len(messages) == wanted.messages_max:
                    yield messages, (read - len(rest) + position) / size
                    messages = []
            rest = rest[position:]
    if rest:
        raise SchemaError(f"{path}: ends inside message {number + 1}")
    if messages:
        yield messages, 1.0


def _lines(path: Path, wanted: Wanted) -> Iterator[tuple[list[bytes] | pa.RecordBatch, float]]:
    for lines, done in _text_lines(path, wanted.messages_max):
        messages = [line.rstrip(b"\r\n") for _, line in lines]
        if wanted.takes_rows:
            yield messages, done
        else:
            column = pa.array(messages)
            where = f"{path}, lines {lines[0][0]} to {lines[-1][0]}"
            yield _fitted({wanted.schema.names[0]: column}, wanted.schema, where), done


def _json(path: Path, wanted: Wanted) -> Iterator[tuple[pa.RecordBatch, float]]:
    for lines, done in _text_lines(path, wanted.messages_max):
        records = [(number, _record(path, number, line)) for number, line in lines]
        columns = {field.name: _column(path, records, field) for field in wanted.schema}
        yield _fitted(columns, wanted.schema, f"{path}, lines {lines[0][0]} to {lines[-1][0]}"), done


def _record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise SchemaError(f"{path}, line {number}: {error}") from None
    except RecursionError:
        raise SchemaError(f"{path}, line {number}: nested too deeply; expected an object of fields") from None
    if not isinstance(record, dict):
        raise SchemaError(f"{path}, line {number}: {type(record).__name__}, expected an object")
    return record


def _column(path: Path, records: list[tuple[int, dict[str, Any]]], field: pa.Field) -> Any:
    """The values of a field. Raises SchemaError that names the line."""
    read, values = reader_of(field), []
    for number, record in records:
        if field.name not in record and not may_be_left_out(field):
            known = ", ".join(record)
            raise SchemaError(f"{path}, line {number}: no field {field.name!r}; it has {known}")
        try:
            values.append(read(record.get(field.name)))
        except SchemaError as error:
            raise SchemaError(f"{path}, line {number}: field {field.name!r}: {error}") from None
    return column_of(field, values)


def _csv(path: Path, wanted: Wanted) -> Iterator[tuple[pa.RecordBatch, float]]:
    size, before = path.stat().st_size, 0
    forms = {field.name: form for field in wanted.schema if (form := form_of(field)) is not None}
    types = {
        field.name: pa.string() if _padded(field.type) or field.name in forms else field.type
        for field in wanted.schema
    }
    options = pyarrow.csv.ConvertOptions(column_types=types, include_columns=wanted.schema.names)
    # Arrow's own file: its threads read ahead, and at the end of Python those of a Python file wait for ever, or abort.
    with pa.OSFile(str(path)) as file:
        try:
            for block in pyarrow.csv.open_csv(file, convert_options=options):
                for batch in _split(block, wanted.messages_max):
                    where = f"{path}, rows {before + 1} to {before + len(batch)}"
                    before += len(batch)
                    cells = {
                        field.name: _cells(forms[field.name], field, batch.column(field.name), where)
                        if field.name in forms
                        else batch.column(field.name)
                        for field in wanted.schema
                    }
                    table = cells if forms else batch
                    yield _fitted(table, wanted.schema, where), min(1.0, file.tell() / size)
        except pa.ArrowException as error:
            raise SchemaError(f"{path}: {error}") from None


def _cells(form: Form, field: pa.Field, column: pa.Array, where: str) -> Any:
    """Cells of text as a column. Raises SchemaError that names the row."""
    try:
        return column_of(field, each(form.from_cell, column.to_pylist()))
    except UnfitValueError as error:
        row = "" if error.row is None else f", row {error.row + 1} of these"
        raise SchemaError(f"{where}{row}: field {field.name!r}: {error}") from None


def _parquet(path: Path, wanted: Wanted) -> Iterator[tuple[pa.RecordBatch, float]]:
    before = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            total = file.metadata.num_rows
            missing = [name for name in wanted.schema.names if name not in file.schema_arrow.names]
            if missing:
                raise SchemaError(
                    f"{path}: no column {missing[0]!r}; it has {', '.join(file.schema_arrow.names)}"
                )
            for batch in file.iter_batches(wanted.messages_max, columns=wanted.schema.names):
                where = f"{path}, rows {before + 1} to {before + len(batch)}"
                before += len(batch)
                yield _fitted(batch, wanted.schema, where), before / total
    except pa.ArrowException as error:
        raise SchemaError(f"{path}: {error}") from None


def _text_lines(path: Path, count: int) -> Iterator[tuple[list[tuple[int, bytes]], float]]:
    """So many lines at a time that are not empty, each with its number, and the share of the file so far."""
    size = path.stat().st_size
    with path.open("rb") as file:
        content = ((number, line) for number, line in enumerate(iter(file.readline, b""), 1) if line.strip())
        while lines := list(islice(content, count)):
            yield lines, file.tell() / size


def _fitted(table: Table, schema: pa.Schema, where: str) -> pa.RecordBatch:
    try:
        return batch_of(schema, table)
    except SchemaError as error:
        raise SchemaError(f"{where}: {error}") from None


def _split(batch: pa.RecordBatch, count: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(batch), count):
        yield batch.slice(start, count)


def _padded(kind: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_binary(kind) or pa.types.is_binary(kind))
