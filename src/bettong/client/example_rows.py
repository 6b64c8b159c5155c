"""Reads the first rows of a file as JSON values, from which the classes of messages are inferred."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from bettong.client.csv_rows import csv_texts
from bettong.client.message_files import Format
from bettong.client.message_input import MessageFile, check_lengths, lines_of, opened
from bettong.errors import BettongError, SchemaError
from bettong.schema.json_objects import record_of
from bettong.schema.observed import Observed

# Limit of a row: a longer line is hardly one message.
_ROW_BYTES_MAX = 16 * 1024 * 1024
# Numbers that both JSON and Arrow parse; digits with leading zeros are a code, not a number.
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,18})", re.ASCII)
_FLOAT = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,3})?", re.ASCII)
_BOOLS = {"true": True, "false": False}


class Examples(NamedTuple):
    """The rows that were read. `is_all`: the file has no more rows. `repeated`: names that several columns have."""

    rows: Observed
    is_all: bool
    repeated: tuple[str, ...] = ()


def examples(file: MessageFile, kind: Format, rows_max: int) -> Examples:
    """Reads the first rows of a file of JSON lines or CSV.

    Raises SchemaError that names a row that cannot be parsed, or for a file without rows; BettongError for another
    format, or a file that cannot be read.
    """
    if kind not in (Format.JSON, Format.CSV):
        raise BettongError(f"{file}: fields are inferred from JSON lines and CSV; {kind} is neither")
    try:
        found = _of_lines(file, rows_max) if kind is Format.JSON else _of_cells(file, rows_max)
    except OSError as error:
        raise BettongError(f"{file} cannot be read: {error.strerror}") from None
    if not found.rows.seen:
        raise SchemaError(f"{file}: it has no row to infer from")
    return found


def _of_lines(file: MessageFile, rows_max: int) -> Examples:
    seen = Observed()
    with opened(file) as stream:
        for group in lines_of(stream, _ROW_BYTES_MAX):
            for line, number in zip(*group, strict=True):
                if seen.seen == rows_max:
                    return Examples(seen, is_all=False)
                try:
                    check_lengths([line], _ROW_BYTES_MAX, "is it JSON lines, an object a line?")
                    seen.add(record_of(line))
                except SchemaError as error:
                    raise SchemaError(f"{file}, line {number}: {error}") from None
    return Examples(seen, is_all=True)


def _of_cells(file: MessageFile, rows_max: int) -> Examples:
    # One more, to know whether the file has more.
    names, batches = csv_texts(file, rows_max + 1, _ROW_BYTES_MAX)
    count = sum(map(len, batches))
    seen = Observed(seen=min(count, rows_max), objects=min(count, rows_max))
    for name in batches[0].schema.names if batches else ():
        cells = [cell for batch in batches for cell in batch.column(name).to_pylist()][:rows_max]
        column = seen.members.setdefault(name, Observed())
        for value in _values(cells):
            column.add(value)
    repeated = {name: None for name in names if names.count(name) > 1}
    return Examples(seen, is_all=count <= rows_max, repeated=tuple(repeated))


def _values(cells: list[str]) -> Iterable[Any]:
    """The cells of a column as JSON values: all of one type, or text. An empty cell is null."""
    full = [cell for cell in cells if cell]
    readers: tuple[Callable[[str], Any], ...] = (_whole, _float, _BOOLS.__getitem__, _document)
    for read in readers:
        try:
            for cell in full:
                read(cell)
        except (KeyError, ValueError, RecursionError):
            continue
        return [read(cell) if cell else None for cell in cells]
    return [cell or None for cell in cells]


def _whole(cell: str) -> int:
    if not _WHOLE.fullmatch(cell):
        raise ValueError
    return int(cell)


def _float(cell: str) -> float | int:
    """A number, or NaN. More digits than a number of 64 bits has are a code."""
    if cell == "NaN":
        return math.nan
    if not _FLOAT.fullmatch(cell) or not math.isfinite(float(cell)):
        raise ValueError
    if cell.lstrip("-").isdecimal():
        return _whole(cell)
    return float(cell)


def _document(cell: str) -> Any:
    """An array or an object."""
    if cell[0] not in "[{":
        raise ValueError
    return json.loads(cell)
