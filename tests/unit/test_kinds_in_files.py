"""Kinds of fields with a form in files and tables of clients: JSON, CSV, Parquet, and columns."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import bettong
from bettong.client.message_files import Format, portions
from bettong.client.message_input import Wanted
from bettong.errors import SchemaError
from bettong.frames.columns import Columns
from bettong.frames.text import json_line
from bettong.schema.schema import Schema, schema_of
from bettong.schema.tables import batch_of
from tests.samples.kind_cases import KindCase
from tests.samples.kinds import KINDS

each_kind = pytest.mark.parametrize("case", KINDS.values(), ids=KINDS)


def sent(schema: Schema, path: Path, kind: Format) -> list[Any]:
    """The messages that a sender reads of a file that a client sends, by the schema as Welcome has it."""
    reported = pa.ipc.read_schema(pa.py_buffer(schema.arrow.serialize().to_pybytes()))
    wanted = Wanted(reported, takes_rows=False, messages_max=3, bytes_max=2**20)
    found: list[Any] = []
    for portion in portions(path, kind, wanted):
        assert isinstance(portion.body, pa.RecordBatch)
        found += Columns.of_external_payload(schema, portion.body.serialize().to_pybytes()).messages()
    return found


@each_kind
def test_result_files_are_sent_unchanged(case: KindCase, tmp_path: Path) -> None:
    messages = case.messages([value for value, _ in case.values])
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"".join(json_line(case.schema, each) + b"\n" for each in messages))
    assert sent(case.schema, file, Format.JSON) == messages


@each_kind
def test_cells_of_csv_hold_the_json_form(case: KindCase, tmp_path: Path) -> None:
    messages = case.messages([value for value, _ in case.values])
    file = tmp_path / "a.csv"
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["value", "key"])
        for (_, plain), message in zip(case.values, messages, strict=True):
            document = case.arrow == pa.string() and case.sql == "jsonb"
            empty = plain is None and case.nullable
            is_text = isinstance(plain, str) and not document
            writer.writerow(["" if empty else plain if is_text else json.dumps(plain), message.key])
    if any(value == "" for value, _ in case.values):  # text that is empty is None there
        messages = [type(each)(each.key, each.value or None) for each in messages]
    assert sent(case.schema, file, Format.CSV) == messages


def loose(column: pa.Array) -> pa.Array:
    """As other programs have it: with nothing that could not be null."""

    def nullable(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_map(kind):
            return pa.map_(pa.string(), nullable(kind.item_type))
        if pa.types.is_list(kind):
            return pa.list_(nullable(kind.value_type))
        if pa.types.is_struct(kind):
            return pa.struct([pa.field(each.name, nullable(each.type)) for each in kind])
        return kind

    return column.cast(nullable(column.type))


@each_kind
def test_parquet_comes_back(case: KindCase, tmp_path: Path) -> None:
    messages = case.messages([value for value, _ in case.values])
    file = tmp_path / "a.parquet"
    batch = Columns.of_messages(case.schema, messages).batch()
    pyarrow.parquet.write_table(
        pa.table({each.name: loose(batch.column(each.name)) for each in batch.schema}), file
    )
    assert sent(case.schema, file, Format.PARQUET) == messages


@dataclass
class Trade:
    """Some kinds."""

    id: UUID
    at: datetime
    price: Annotated[Decimal, bettong.Precision(18, 4)] | None
    day: date | None
    tags: list[str]


TRADE = schema_of(Trade)
ID = UUID(int=7)
AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": "7"}', r"line 1: field 'id': '7' is no UUID; expected one like"),
        (f'{{"id": "{ID}", "at": "2026-01-01"}}', r"line 1: field 'at': '2026-01-01' is no datetime"),
        (f'{{"id": "{ID}", "at": "2026-01-01T00:00:00Z"}}', "line 1: no field 'tags'"),
        (
            f'{{"id": "{ID}", "at": "2026-01-01T00:00:00Z", "tags": ["a", 1]}}',
            r"field 'tags': \[1\]: expected text",
        ),
    ],
)
def test_an_error_of_a_file_names_line_field_and_value(line: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(line)
    with pytest.raises(SchemaError, match=reason):
        sent(TRADE, file, Format.JSON)


def test_an_optional_field_may_be_left_out_of_json_and_a_number_is_a_decimal(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    rest = f'"id": "{ID}", "at": "2026-01-01T12:00:00+00:00", "tags": []'
    file.write_text(f'{{{rest}}}\n{{{rest}, "price": 12.34}}\n{{{rest}, "price": 5}}\n')
    assert sent(TRADE, file, Format.JSON) == [
        Trade(ID, AT, None, None, []),
        Trade(ID, AT, Decimal("12.34"), None, []),
        Trade(ID, AT, Decimal(5), None, []),
    ]


def test_an_error_of_a_cell_names_its_row(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(
        f"id,at,price,day,tags\n{ID},2026-01-01T00:00:00Z,,,[]\n{ID},2026-01-01T00:00:00Z,1,5,[]\n"
    )
    with pytest.raises(SchemaError, match=r", row 2: field 'day': '5' is no date"):
        sent(TRADE, file, Format.CSV)


def table(**changes: Any) -> dict[str, Any]:
    """Columns of one message."""
    return {"id": [ID], "at": [AT], "price": [None], "day": [None], "tags": [["a"]]} | changes


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {}),
        ({"id": pa.array([ID.bytes], pa.binary())}, {}),
        ({"id": pa.array([ID.bytes], pa.binary(16)).cast(pa.uuid())}, {}),
        ({"at": pa.array([AT], pa.timestamp("ms", "Europe/Berlin"))}, {}),
        ({"at": pa.chunked_array([pa.array([AT], pa.timestamp("ns", "UTC"))])}, {}),
        ({"price": pa.array([Decimal("1.5")], pa.decimal128(5, 1))}, {"price": Decimal("1.5")}),
        ({"price": pa.array([None])}, {}),
        ({"day": pa.array([date(2026, 1, 1)], pa.date64())}, {"day": date(2026, 1, 1)}),
        ({"tags": pa.array([["a"]], pa.large_list(pa.large_string()))}, {}),
        ({"tags": np.array([["a"], None], object)[:1]}, {}),
    ],
)
def test_tables_of_clients_are_brought_to_the_schema(
    changes: dict[str, Any], expected: dict[str, Any]
) -> None:
    payload = batch_of(TRADE.arrow, table(**changes)).serialize().to_pybytes()
    values: dict[str, Any] = {"id": ID, "at": AT, "price": None, "day": None, "tags": ["a"]} | expected
    assert Columns.of_external_payload(TRADE, payload).messages() == [Trade(**values)]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"at": [datetime(2026, 1, 1)]}, "field 'at': .* has no time zone"),  # noqa: DTZ001
        (
            {"at": np.array(["2026-01-01"], "M8[us]")},
            r"column 'at': timestamp\[us\] is no datetime .*assume_timezone",
        ),
        ({"at": pa.array([1])}, "column 'at': int64 is no datetime"),
        ({"at": pa.array([None], pa.timestamp("us", "UTC"))}, "column 'at': None is no datetime"),
        ({"at": pa.array([1], pa.timestamp("ns", "UTC"))}, "column 'at': .* does not fit"),
        ({"price": pa.array([Decimal("1.00001")])}, "column 'price': .* does not fit"),
        ({"price": pa.array([1.5])}, "column 'price': double is no optional"),
        ({"id": pa.array([b"abc"], pa.binary())}, "column 'id': binary does not fit"),
        ({"tags": pa.array([[1]])}, "column 'tags': list<.*> is no list"),
        ({"tags": pa.array([["a", None]])}, r"column 'tags\[1\]': None is no text"),
        ({"tags": [["a", 1]]}, r"field 'tags\[1\]'"),
    ],
)
def test_tables_that_do_not_fit_name_column_and_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        batch_of(TRADE.arrow, table(**changes))


def test_a_kind_that_this_version_does_not_know_is_refused() -> None:
    later = pa.schema([pa.field("a", pa.int64(), nullable=False, metadata={"bettong.kind": "currency"})])
    with pytest.raises(
        SchemaError, match="field 'a' is a currency, which this version of Bettong does not know"
    ):
        batch_of(later, {"a": [1]})
