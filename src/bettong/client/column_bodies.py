"""The bodies of column frames: written from users' tables, and joined.

Frames of one message are mostly overhead, which the ways without Arrow cut to a sixth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bettong.errors import SchemaError
from bettong.frames.arrow_message import message_of, value_layout
from bettong.schema.annotations import field_of_arrow
from bettong.schema.tables import Table, TableSchema


class ColumnBodies:
    """Writes bodies of one schema: Arrow record batch messages."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._tables = TableSchema(schema)
        dtypes = [field_of_arrow(field.name, field).dtype for field in schema]
        # Bytes of a value, by column; 0 where they vary.
        self._widths = tuple(0 if dtype is None else dtype.itemsize for dtype in dtypes)

    def of_table(self, table: Table) -> tuple[bytes, int]:
        """The body of a table, and its number of messages. Raises SchemaError for columns that do not fit."""
        if all(self._widths) and (values := self._tables.fixed_values(table)) is not None:
            rows = len(values[0]) // self._widths[0]
            return message_of(self._widths, rows, values), rows
        batch = self._tables.batch(table)
        return batch.serialize().to_pybytes(), batch.num_rows

    def of_dicts(self, messages: Sequence[Any]) -> tuple[bytes, int]:
        """The body of messages as dicts, of which each has the first one's fields, and their number. See `of_table`."""
        names = [name for name in self._schema.names if name in messages[0]]
        try:
            columns = {name: [message[name] for message in messages] for name in names}
        except (KeyError, TypeError):
            row, lacking = next(
                (row, name)
                for row, message in enumerate(messages)
                for name in names
                if not isinstance(message, Mapping) or name not in message
            )
            raise SchemaError(f"message {row} has no {lacking!r}, which the first one has") from None
        return self.of_table(columns)

    def joined(self, bodies: Sequence[bytes]) -> bytes:
        """One body of all messages, in their order."""
        if all(self._widths) and (alike := self._joined_alike(bodies)) is not None:
            return alike
        batches = [pa.ipc.read_record_batch(pa.py_buffer(body), self._schema) for body in bodies]
        written: bytes = pa.concat_batches(batches).serialize().to_pybytes()
        return written

    def _joined_alike(self, bodies: Sequence[bytes]) -> bytes | None:
        """As `joined`, of bodies with the same number of messages and the same layout; None for others."""
        size, layout = len(bodies[0]), value_layout(bodies[0], self._widths)
        if layout is None:
            return None
        head = bodies[0][: min(layout.starts)]
        if not all(len(body) == size and body.startswith(head) for body in bodies):
            return None
        lines = np.frombuffer(b"".join(bodies), np.uint8).reshape(-1, size)
        values = (
            lines[:, start : start + layout.rows * width].tobytes()
            for start, width in zip(layout.starts, self._widths, strict=True)
        )
        return message_of(self._widths, layout.rows * len(bodies), values)
