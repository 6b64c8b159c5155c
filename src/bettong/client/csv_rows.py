"""Splits CSV into rows, which Arrow then parses: so every row is known by its number, also one that is malformed."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from io import BufferedReader
from itertools import chain, repeat
from operator import contains
from typing import Any

import pyarrow as pa
import pyarrow.csv

from bettong.client.json_values import column_of, form_of
from bettong.client.message_input import (
    Group,
    MessageFile,
    Rows,
    Wanted,
    check_lengths,
    groups_of,
    line_blocks,
    opened,
    share,
    size_of,
)
from bettong.errors import SchemaError
from bettong.schema.defaults import has_default, json_default
from bettong.schema.fields import Kind, kind_of
from bettong.schema.form import UnfitValueError, each
from bettong.schema.tables import batch_of, default_of

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# A cell is quoted when it begins with a quote; inside, two quotes are one.
_OPENS = re.compile(rb',"')
_CLOSES = re.compile(rb'[^"]*+(?:""[^"]*+)*+"')
_CONVERSION = re.compile(r".*CSV conversion error to ([^:]+): (.*)", re.DOTALL)
_CELLS = re.compile(r".*Expected (\d+) columns, got (\d+)", re.DOTALL)
_EMPTY = (b"", b"\r")


def csv_groups(file: MessageFile, wanted: Wanted) -> Iterator[Group]:
    """The rows of a file, in groups. Raises SchemaError for a header that lacks a field."""
    size = size_of(file)
    with opened(file) as stream:
        blocks = _rows(stream, wanted.text_bytes_max)
        first = next(blocks, None)
        if first is None:
            raise SchemaError(f"{file}: it is empty; expected a header that names the schema's fields")
        names = _names(file, first[0], wanted.text_bytes_max)
        _check_names(file, names, wanted)
        reader = _CsvReader(names, wanted)
        for group in groups_of(_numbered(chain([first[1:]], blocks)), wanted):
            yield Group(
                len(group.texts),
                lambda start, stop, rows=group: reader.read(rows.texts[start:stop]),  # type: ignore[misc]
                lambda index, rows=group: f"{file}, row {rows.numbers[index]}",  # type: ignore[misc]
                None if size is None else share(stream.tell(), size),
            )


def csv_texts(file: MessageFile, rows_max: int, bytes_max: int) -> tuple[list[str], list[pa.RecordBatch]]:
    """The header's names, and the first rows as columns of text; a name that appears twice has no column.

    `bytes_max`: limit of a row. Raises SchemaError that names the row that cannot be parsed.
    """
    with opened(file) as stream:
        blocks = _rows(stream, bytes_max)
        first = next(blocks, None)
        if first is None:
            raise SchemaError(f"{file}: it is empty; expected a header that names fields")
        names = _names(file, first[0], bytes_max)
        texts = pa.schema(
            [pa.field(name, pa.string(), nullable=False) for name in names if names.count(name) == 1]
        )
        reader = _CsvReader(
            names, Wanted(texts, takes_rows=False, messages_max=rows_max, bytes_max=bytes_max)
        )
        batches, left = list[pa.RecordBatch](), rows_max
        for rows in _numbered(chain([first[1:]], blocks)):
            if (taken := rows.texts[:left]) and texts.names:
                batches.append(_read_rows(file, reader, Rows(taken, rows.numbers)))
                left -= len(taken)
            if not left:
                break
    return names, batches


def _read_rows(file: MessageFile, reader: _CsvReader, rows: Rows) -> pa.RecordBatch:
    """Parses rows together; one by one where that fails, to name the row that does not fit."""
    try:
        return reader.read(rows.texts)
    except SchemaError:
        for text, number in zip(rows.texts, rows.numbers, strict=False):
            try:
                reader.read([text])
            except SchemaError as error:
                raise SchemaError(f"{file}, row {number}: {error}") from None
        raise


def _numbered(blocks: Iterator[list[bytes]]) -> Iterator[Rows]:
    before = 0
    for rows in blocks:
        yield Rows(rows, range(before + 1, before + 1 + len(rows)))
        before += len(rows)


def _rows(stream: BufferedReader, bytes_max: int) -> Iterator[list[bytes]]:
    """Splits a stream into rows, in lists as they arrive; empty rows and empty lists are left out.

    A row that is too long ends with the line that exceeds the limit.
    """
    begun: list[bytes] = []  # lines of an unfinished row
    size = 0  # of these lines
    for lines in line_blocks(stream, bytes_max):
        if begun or any(map(contains, lines, repeat(b'"'))):
            rows = []
            for line in lines:
                begun.append(line)
                size += len(line) + 1
                if _is_inside(line, inside=len(begun) > 1) and size <= bytes_max:
                    continue
                rows.append(b"\n".join(begun)[: bytes_max + 1])
                begun, size = [], 0
        else:
            rows = lines
        if found := [row for row in rows if row not in _EMPTY]:
            yield found
    if begun:
        yield [b"\n".join(begun)]


def _is_inside(text: bytes, *, inside: bool) -> bool:
    """Whether a line ends within quotes."""
    if b'"' not in text:
        return inside
    position = 0
    if not inside and text.startswith(b'"'):
        inside, position = True, 1
    while True:
        found = (_CLOSES.match if inside else _OPENS.search)(text, position)
        if found is None:
            return inside
        inside, position = not inside, found.end()


def _names(file: MessageFile, header: bytes, bytes_max: int) -> list[str]:
    """The names of the columns."""
    try:
        check_lengths([header], bytes_max, "is it CSV?")
        return next(csv.reader([header.removeprefix(_BYTE_ORDER_MARK).decode()]))
    except (SchemaError, UnicodeDecodeError, csv.Error) as error:
        raise SchemaError(f"{file}: no header that names the schema's fields: {error}") from None


def _check_names(file: MessageFile, names: list[str], wanted: Wanted) -> None:
    """Raises SchemaError for a header that lacks a field, or has it twice."""
    for field in wanted.schema:
        count = names.count(field.name)
        if count > 1 or (not count and not has_default(field)):
            there = "no column" if not count else f"{count} columns are called"
            raise SchemaError(f"{file}: {there} {field.name!r}; it has {', '.join(names)}")


class _CsvReader:
    """Reads rows of one file for one schema."""

    def __init__(self, names: list[str], wanted: Wanted) -> None:
        self._names = names
        self._there = frozenset(names)
        self._wanted = wanted
        self._forms = {field.name: form for field in wanted.schema if (form := form_of(field)) is not None}
        self._types = {
            field.name: pa.string()
            if _padded(field.type) or field.name in self._forms
            else pa.bool_()  # parses true and 1; a byte would parse numbers only
            if kind_of(field) is Kind.BOOL
            else field.type
            for field in wanted.schema
        }

    def read(self, rows: list[bytes]) -> pa.RecordBatch:
        """Parses rows. Raises SchemaError that names the field."""
        check_lengths(rows, self._wanted.text_bytes_max, "is a quote not closed?")
        if _is_inside(rows[-1], inside=False):
            raise SchemaError("it ends within quotes; is a quote not closed?")
        fields = [field for field in self._wanted.schema if field.name in self._there]
        try:
            found = self._parsed(rows, [field.name for field in fields])
        except pa.ArrowException as error:
            raise SchemaError(self._reason(rows, error)) from None
        if len(found) != len(rows):
            raise SchemaError("a carriage return within a row; end rows with a line feed, or quote the cell")
        columns = {
            field.name: self._cells(field, found.column(field.name))
            if field.name in self._forms
            else self._filled(field, found.column(field.name))
            for field in fields
        }
        return batch_of(self._wanted.schema, columns)

    def _parsed(self, rows: list[bytes], names: list[str]) -> pa.RecordBatch:
        data = b"\n".join([*rows, b""])
        table = pyarrow.csv.read_csv(
            pa.BufferReader(data),
            # One block and one thread: the rows fit into it, and other threads read other files.
            read_options=pyarrow.csv.ReadOptions(
                column_names=self._names, use_threads=False, block_size=len(data) + 1
            ),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=self._types,
                include_columns=names,
                null_values=[""],  # NaN is a number
            ),
        )
        batches = table.combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)

    def _cells(self, field: pa.Field, column: pa.Array) -> pa.Array:
        """Cells of text as a column of a kind with a form."""
        form = self._forms[field.name]

        def read(text: str) -> Any:
            try:
                return form.from_cell(text)
            except UnfitValueError:
                if text or not has_default(field):
                    raise
                return form.from_json(json_default(field))

        try:
            return column_of(field, each(read, column.to_pylist()))
        except UnfitValueError as error:
            raise SchemaError(f"field {field.name!r}: {error}") from None

    def _filled(self, field: pa.Field, column: pa.Array) -> pa.Array:
        """A column of a plain kind, with the field's default for empty cells where it has one."""
        if not column.null_count or not has_default(field):
            return column
        return column.fill_null(default_of(field).cast(column.type))

    def _reason(self, rows: list[bytes], error: Exception) -> str:
        """Why a row cannot be parsed. Arrow reports the value, but of the column at most its number."""
        if counts := _CELLS.match(str(error)):
            return f"{counts[2]} cells, expected {counts[1]}: {', '.join(self._names)}"
        for name in filter(self._there.__contains__, self._wanted.schema.names):
            try:
                self._parsed(rows, [name])
            except pa.ArrowException as own:
                found = _CONVERSION.match(str(own))
                return f"field {name!r}: {f'{found[2]}, expected {found[1]}' if found else own}"
        return str(error)


def _padded(kind: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_binary(kind) or pa.types.is_binary(kind))
