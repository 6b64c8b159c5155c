"""Every kind of field in a table that is made as the sink asks: what a real server gives back."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from enum import Enum
from typing import Any

import pytest

from bettong.application.external.postgres import Postgres
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame
from bettong.identifiers import Origin, SequenceNumber
from bettong.schema.schema import Schema
from bettong_receiver.connectors.postgres import PostgresConnector, read_rows
from bettong_receiver.errors import SinkError
from bettong_receiver.progress import SinkPartition
from tests.samples.kind_cases import KindCase
from tests.samples.kinds import KINDS
from tests.samples.sink_batches import sink_batch
from tests.servers.postgres import PostgresServer

BEGINNINGS = {SinkPartition("notes", 0): 0}


def connector(server: PostgresServer, table: str, schema: Schema) -> PostgresConnector:
    """Another one of the same sink."""
    return PostgresConnector(
        server.url, Postgres(table), schema, application=table, sink="notes", writer=table
    )


def frame(case: KindCase, values: list[Any]) -> Frame:
    """Of a sink."""
    columns = Columns.of_messages(case.schema, case.messages(values))
    return Frame(
        origin=Origin("notes/a/0"),
        sequence=SequenceNumber(1),
        previous=SequenceNumber(0),
        count=len(values),
        schema=case.schema.fingerprint,
        columns=columns.payload(),
    )


def as_stored(case: KindCase, value: Any, plain: Any) -> Any:
    """What psycopg reads of a value."""
    if case.sql == "jsonb" or isinstance(value, Enum):
        return plain
    return value


@pytest.mark.parametrize("name", KINDS)
def test_a_value_is_stored_in_the_column_that_the_sink_asks_for(
    name: str, postgres: PostgresServer, unique_name: Callable[..., str]
) -> None:
    case, table = KINDS[name], unique_name("kinds").replace("-", "_")
    # What psycopg reads has limits of its own.
    kept = [
        (value, plain)
        for value, plain in case.values
        if not (isinstance(value, timedelta) and abs(value) > timedelta(days=10**6))
        and not (isinstance(plain, int) and abs(plain) > 10**30)
    ]
    with closing(connector(postgres, table, case.schema)) as first, pytest.raises(SinkError) as refused:
        first.open(BEGINNINGS)
    (statement,) = re.findall(r"CREATE TABLE .*", str(refused.value))
    postgres.run(statement)
    rows = read_rows(case.schema)(frame(case, [value for value, _ in kept]))
    with closing(connector(postgres, table, case.schema)) as sink:
        sink.open(BEGINNINGS)
        assert sink.deliver([sink_batch(0, rows, 1)]) == {}
    found = [row[0] for row in postgres.run(f'SELECT value FROM "{table}"')]  # noqa: S608 - a name that we made
    assert found == [as_stored(case, value, plain) for value, plain in kept]
