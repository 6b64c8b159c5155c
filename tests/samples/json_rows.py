"""What rows of JSON are to a source that takes them."""

from __future__ import annotations

from bettong.frames.columns import Columns
from bettong.frames.fitting import fitting
from bettong.schema.decoded import Decoded
from bettong.schema.schema import Schema


def rows_of(schema: Schema, decoded: Decoded) -> list[str]:
    """What each row is: a message as text, for NaN equals nothing, or why it is none."""
    columns, unfit = fitting(schema, decoded.messages or [])
    if decoded.columns is not None:
        columns = Columns(schema, len(decoded.columns[0]), tuple(decoded.columns))
    messages = iter(columns.messages())
    read = columns.length + len(unfit)
    fitted = iter([unfit[index] if index in unfit else repr(next(messages)) for index in range(read)])
    refused = decoded.refused
    return [refused[row] if row in refused else next(fitted) for row in range(read + len(refused))]
