"""A table of Postgres that a sink appends to."""

from dataclasses import dataclass
from typing import ClassVar

from bettong.application.external.destination import Destination
from bettong.errors import ApplicationError
from bettong.schema.schema import Schema

# Postgres truncates longer names without an error.
_IDENTIFIER_BYTES_MAX = 63


@dataclass(frozen=True, slots=True)
class Postgres(Destination):
    """Appends a row a message to a table: `to=Postgres("totals")`, or `Postgres("reports.totals")` with its schema.

    Each field of the message is a column of the same name; other columns need a default or must be nullable.
    The receiver creates the table `bettong_positions` in the same schema if it does not exist.
    """

    kind: ClassVar[str] = "postgres"

    table: str
    connection: str | None = None

    def check_sink(self, sink: str, schema: Schema | None, *, encoded: bool) -> None:
        """See Destination."""
        table: object = self.table
        parts = table.split(".") if isinstance(table, str) else []
        if not 1 <= len(parts) <= 2 or not all(map(_is_identifier, parts)):
            raise ApplicationError(
                f"sink {sink!r}: {self.table!r} is no table: expected 'table' or 'schema.table',"
                f" names of at most {_IDENTIFIER_BYTES_MAX} bytes"
            )
        if encoded:
            raise ApplicationError(f"sink {sink!r}: Postgres takes fields, not bytes: leave the encoder out")
        if schema is None:
            raise ApplicationError(
                f"sink {sink!r}: its stream mixes schemas, a table has one; give each stream a sink of its own"
            )


def _is_identifier(part: str) -> bool:
    return part.isprintable() and 0 < len(part.encode()) <= _IDENTIFIER_BYTES_MAX
