"""Rows in a Postgres table, each exactly once: rows and position in one transaction. The only user of psycopg.

    bettong_positions   application, sink, partition -> writer, position          (created if missing)

Opening a connector writes a new name into `writer`, in a statement that waits for running transactions, and returns
the positions. A delivery first updates the positions of rows that still have its name, and rolls back when they
are fewer than expected: so a receiver that was replaced can store nothing any more.

A delivery with rows that Postgres refuses is repeated in halves, behind savepoints, until those rows are found; the
position stored with the others names them. The SQLSTATE tells whether the row is at fault:

| class                                  | meaning                                              |
| -------------------------------------- | ---------------------------------------------------- |
| 22, 23, 44, P0001, 54000; none (psycopg) | a value or a constraint refuses the row; a trigger raises |
| 08, 40, 53, 55, 57, 58, 25             | transient: no connection, deadlock, disk, restart, read-only |
| all others                             | an operator must fix the table or the rights; retried |

(https://www.postgresql.org/docs/current/errcodes-appendix.html)
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from bettong.application.external.postgres import Postgres
from bettong.errors import SettingsError
from bettong.frames.frame import Frame
from bettong.schema.fields import Field
from bettong.schema.schema import Schema
from bettong_receiver.connectors.table_columns import TableColumn, faults, types_of
from bettong_receiver.delivery.connector import (
    REASON_CHARACTERS_MAX,
    ConnectorUnavailableError,
    Refused,
    SinkBatch,
    SinkConnector,
)
from bettong_receiver.delivery.route import Route
from bettong_receiver.errors import SinkError
from bettong_receiver.formats import columns_of
from bettong_receiver.progress import SinkPartition
from bettong_receiver.sink_context import SinkContext

Row = tuple[Any, ...]

_CONNECT_WAIT_S_MAX = 5
# A statement may wait for locks or a busy disk; a suspended receiver (SIGSTOP) loses its locks after a minute.
_LIMITS: tuple[LiteralString, ...] = (
    "SET statement_timeout = '30s'",
    "SET idle_in_transaction_session_timeout = '60s'",
)
# A server owner machine vanished without closing the connection is given up after about 20 s.
_KEEPALIVES = {
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
_POSITIONS = "bettong_positions"
# The SQLSTATE class of a server that is read-only for now: psycopg raises no OperationalError for it.
_READ_ONLY = "25"
_ROW_CLASSES = ("22", "23", "44")
_ROW_STATES = ("P0001", "54000")

_COLUMNS = """
SELECT a.attname, t.typname, a.atttypmod,
       NOT a.attnotnull OR a.atthasdef OR a.attidentity <> '' AS optional
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
CREATE_POSITIONS = sql.SQL("""
CREATE TABLE IF NOT EXISTS {} (
  "application" text, "sink" text, "partition" integer, "writer" text NOT NULL, "position" bytea,
  PRIMARY KEY ("application", "sink", "partition"))
""")
_OPEN = sql.SQL("""
INSERT INTO {} AS old ("application", "sink", "partition", "writer")
SELECT %s, %s, each, %s FROM unnest(%s::integer[]) AS each
ON CONFLICT ("application", "sink", "partition") DO UPDATE SET "writer" = excluded."writer"
RETURNING old."partition", old."position"
""")
_MOVE = sql.SQL("""
UPDATE {} AS old SET "position" = new."position"
FROM unnest(%s::integer[], %s::bytea[]) AS new("partition", "position")
WHERE old."application" = %s AND old."sink" = %s AND old."partition" = new."partition" AND old."writer" = %s
""")

_Found = TypeVar("_Found")


def route(context: SinkContext, to: Postgres) -> Route[Row]:
    """See `bettong_receiver.connectors`."""
    url = context.options(to, needs="url")["url"]
    schema = context.schema

    def make() -> PostgresConnector:
        return PostgresConnector(
            url,
            to,
            schema,
            application=context.plan.application,
            sink=context.name,
            writer=f"{context.settings.instance}/{uuid.uuid4()}",
        )

    make()  # raises now if the address is invalid
    return context.route(read_rows(schema), make)


def read_rows(schema: Schema) -> Callable[[Frame], list[Row]]:
    """Returns a function that reads a frame as rows, fields in the schema's order."""

    def read(frame: Frame) -> list[Row]:
        columns = columns_of(frame, schema)
        values = (_as_psycopg(field, columns.values(index)) for index, field in enumerate(schema.fields))
        return list(zip(*values, strict=True))

    return read


def _as_psycopg(field: Field, values: list[Any]) -> list[Any]:
    """Converts the values of a column to types that psycopg accepts."""
    return values if field.form is None else list(map(field.form.to_sql, values))


class PostgresConnector(SinkConnector[Row]):
    """See SinkConnector. Inserts the rows of a partition in log order."""

    def __init__(
        self,
        url: str,
        destination: Postgres,
        schema: Schema,
        *,
        application: str,
        sink: str,
        writer: str,
    ) -> None:
        """`url`: a libpq URL or `key=value` text. `writer`: a name never used before. Raises SettingsError."""
        try:
            known = conninfo_to_dict(url)
        except psycopg.Error:
            # The error quotes the text that it cannot parse, which may be a password.
            raise SettingsError(
                f"sink {sink!r}: 'url' of its connection is no address of Postgres: expected"
                " postgresql://user:password@host:port/database, special characters as %XX"
            ) from None
        where = f"{known.get('host', 'the local socket')}:{known.get('port', 5432)}/{known.get('dbname', '')}"
        self._name = f"sink {sink}, table {destination.table} of Postgres at {where}"
        self._url = url
        self._schema = schema
        self._application, self._sink, self._writer = application, sink, writer
        parts = destination.table.split(".")
        self._table = sql.Identifier(*parts)
        self._positions = sql.Identifier(*parts[:-1], _POSITIONS)
        names = sql.SQL(", ").join(sql.Identifier(field.name) for field in schema.fields)
        self._copy = sql.SQL("COPY {} ({}) FROM STDIN").format(self._table, names)
        self._connection: psycopg.Connection[Row] | None = None

    def open(self, beginnings: Mapping[SinkPartition, int]) -> dict[SinkPartition, bytes | None]:
        """See SinkConnector. Raises a SinkError that lists everything wrong with the table."""
        defaults: dict[str, Any] = {
            "connect_timeout": _CONNECT_WAIT_S_MAX,
            "application_name": "bettong",
            **_KEEPALIVES,
        }
        given = {key: value for key, value in conninfo_to_dict(self._url).items() if key in defaults}
        self._connection = self._mapping_errors(
            "connecting", lambda: psycopg.connect(self._url, autocommit=True, **(defaults | given))
        )
        connection = self._connection
        for limit in _LIMITS:
            self._mapping_errors("setting time limits", partial(connection.execute, limit))
        self._check(connection)
        if not self._columns(connection, self._positions):
            self._mapping_errors(
                "creating its positions", lambda: connection.execute(CREATE_POSITIONS.format(self._positions))
            )
        owner = (self._application, self._sink, self._writer, [partition for _, partition in beginnings])
        rows = self._mapping_errors(
            "reading positions",
            lambda: connection.execute(_OPEN.format(self._positions), owner).fetchall(),
        )
        found: dict[Any, bytes | None] = dict(rows)
        return {key: found.get(key.partition) for key in beginnings}

    def deliver(self, batches: Sequence[SinkBatch[Row]]) -> Refused:
        """See SinkConnector."""
        return self._mapping_errors("delivering", lambda: self._deliver(batches))

    def close(self) -> None:
        """See SinkConnector."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()

    def _deliver(self, batches: Sequence[SinkBatch[Row]]) -> Refused:
        try:
            with self._open_connection.transaction():
                self._update_positions({batch.partition: batch.position() for batch in batches})
                self._insert([row for batch in batches for row in batch.messages])
        except psycopg.Error as error:
            if not refuses_a_row(error) or any(batch.refusing is None for batch in batches):
                raise
        else:
            return {}
        found: dict[SinkPartition, Mapping[int, str]] = {}
        with self._open_connection.transaction():
            # Locks the positions first, so that no other receiver opens the sink meanwhile.
            self._update_positions({batch.partition: batch.position() for batch in batches})
            # A constraint checked at commit would refuse the whole transaction.
            self._open_connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
            for batch in batches:
                if refused := self._insert_halves(batch.messages, 0):
                    found[batch.key] = refused
            positions = {
                batch.partition: batch.refusing(found[batch.key])
                for batch in batches
                if batch.refusing is not None and batch.key in found
            }
            if positions:
                self._update_positions(positions)
        return found

    @property
    def _open_connection(self) -> psycopg.Connection[Row]:
        if self._connection is None:
            raise AssertionError("a connector is opened first")
        return self._connection

    def _update_positions(self, positions: Mapping[int, bytes]) -> None:
        owner = (self._application, self._sink, self._writer)
        moved_to = (list(positions), list(positions.values()))
        moved = self._open_connection.execute(_MOVE.format(self._positions), (*moved_to, *owner)).rowcount
        if moved != len(positions):
            raise ConnectorUnavailableError(
                f"{self._name}: another receiver has taken over; only one may deliver a sink, stop the other"
            )

    def _insert(self, rows: Sequence[Row]) -> None:
        if rows:
            with self._open_connection.cursor().copy(self._copy) as copy:
                for row in rows:
                    copy.write_row(row)

    def _insert_halves(self, rows: Sequence[Row], first: int) -> dict[int, str]:
        """Inserts all rows that Postgres accepts; returns the reasons for the others, by index counted from `first`."""
        try:
            with self._open_connection.transaction():  # a savepoint
                self._insert(rows)
        except psycopg.Error as error:
            if not refuses_a_row(error):
                raise
            if len(rows) == 1:
                return {first: _reason(error)}
        else:
            return {}
        middle = len(rows) // 2
        return self._insert_halves(rows[:middle], first) | self._insert_halves(rows[middle:], first + middle)

    def _check(self, connection: psycopg.Connection[Row]) -> None:
        columns = self._columns(connection, self._table)
        if not columns:
            wanted = ", ".join(
                f'"{field.name}" {types_of(field)[0]}{"" if field.nullable else " NOT NULL"}'
                for field in self._schema.fields
            )
            raise SinkError(
                f"{self._name}: there is no such table; create it:"
                f" CREATE TABLE {self._table.as_string(connection)} ({wanted})"
            )
        if found := faults(self._schema, columns):
            raise SinkError(f"{self._name} does not fit {self._schema.name}: {'; '.join(found)}")

    def _columns(self, connection: psycopg.Connection[Row], table: sql.Identifier) -> list[TableColumn]:
        """The columns of a table; empty when it does not exist."""
        quoted = table.as_string(connection)
        rows = self._mapping_errors(
            "reading the table definition", lambda: connection.execute(_COLUMNS, (quoted,)).fetchall()
        )
        return [TableColumn(*row) for row in rows]

    def _mapping_errors(self, doing: str, call: Callable[[], _Found]) -> _Found:
        """Maps psycopg's errors to the receiver's."""
        try:
            return call()
        except psycopg.Error as error:
            reason = " ".join(str(error).split())
            passes = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
            if passes or (error.sqlstate or "").startswith(_READ_ONLY):
                raise ConnectorUnavailableError(f"{self._name}: {doing}: {reason}") from None
            raise SinkError(
                f"{self._name}: {doing}: refused: {reason}; nothing is delivered until that is fixed"
            ) from None


def refuses_a_row(error: psycopg.Error) -> bool:
    """Whether the row is at fault, not the table, the server or the connection."""
    state = error.sqlstate
    if state is None:
        return isinstance(
            error, psycopg.DataError
        )  # a value that psycopg cannot write, such as a NUL in a text
    return state.startswith(_ROW_CLASSES) or state in _ROW_STATES


def _reason(error: psycopg.Error) -> str:
    """The error in one line, without the row, which the dead letter holds."""
    parts = [error.diag.message_primary or str(error)]
    if error.diag.message_detail and not error.diag.message_detail.startswith("Failing row"):
        parts.append(error.diag.message_detail)
    state = f" (SQLSTATE {error.sqlstate})" if error.sqlstate else ""
    return f"Postgres refused it: {' '.join('; '.join(parts).split())[:REASON_CHARACTERS_MAX]}{state}"
