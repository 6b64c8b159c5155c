"""Defaults of fields that the input lacks, in JSON, CSV, Parquet and tables of clients."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet
import pydantic
import pytest

import bettong
from bettong.client.message_files import Format
from bettong.errors import SchemaError
from bettong.frames.columns import Columns
from bettong.schema.fields import DEFAULT
from bettong.schema.schema import schema_of
from bettong.schema.tables import batch_of
from tests.unit.test_kinds_in_files import sent


class Side(StrEnum):
    BUY = "buy"
    SELL = "sell"


@dataclass(frozen=True)
class Place:
    city: str
    floor: bettong.i16 = -1


@dataclass
class Order:
    number: int
    n: bettong.u8 = 0
    ratio: bettong.f32 = float("inf")
    flag: bool = True
    note: str = "none, yet"
    code: Annotated[str, bettong.Width(4)] = "ab"
    raw: bytes = b"\xff"
    side: Side = Side.SELL
    price: Annotated[Decimal, bettong.Precision(9, 2)] = Decimal("1.50")
    due: timedelta = timedelta(seconds=90)
    since: datetime = datetime(2026, 1, 2, tzinfo=UTC)
    limit: float | None = 2.5
    other: float | None = None
    tags: list[str] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    place: Place = Place("Köln")
    extra: bettong.Json = None


def test_a_line_of_json_without_a_field_has_its_default(tmp_path: Path) -> None:
    (file := tmp_path / "a.jsonl").write_text('{"number": 1}\n{"number": 2, "n": 7, "limit": null}\n')
    assert sent(schema_of(Order), file, Format.JSON) == [Order(1), Order(2, 7, limit=None)]


def test_an_object_within_a_message_has_the_defaults_of_its_class(tmp_path: Path) -> None:
    lines = [
        '{"number": 1, "place": {"city": "Bonn"}}',
        '{"number": 1, "place": {"city": "Bonn", "floor": 2}}',
    ]
    (file := tmp_path / "a.jsonl").write_text("\n".join(lines))
    places = [each.place for each in sent(schema_of(Order), file, Format.JSON)]
    assert places == [Place("Bonn", -1), Place("Bonn", 2)]


def test_a_column_that_csv_lacks_and_a_cell_that_is_empty_have_the_default(tmp_path: Path) -> None:
    (file := tmp_path / "a.csv").write_text("number,n,flag,side,limit,note\n1,,,,,\n2,9,0,buy,1.5,x\n")
    first, second = sent(schema_of(Order), file, Format.CSV)
    # Empty text is text, and an empty cell is None where the field may be that.
    assert first == Order(1, note="", limit=None)
    assert second == Order(2, 9, flag=False, side=Side.BUY, limit=1.5, note="x")


def test_a_column_that_parquet_lacks_has_the_default(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"number": [1, 2], "n": [3, 4]}), tmp_path / "a.parquet")
    assert sent(schema_of(Order), tmp_path / "a.parquet", Format.PARQUET) == [Order(1, 3), Order(2, 4)]


def test_a_column_that_a_table_lacks_has_the_default() -> None:
    schema = schema_of(Order)
    batch = batch_of(schema.arrow, {"number": [1, 2]})
    assert Columns.of_batch(schema, batch).messages() == [Order(1), Order(2)]


@pytest.mark.parametrize("table", [{"n": [1]}, {}])
def test_a_column_without_a_default_is_missed_as_before(table: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match=r"column\(s\) number missing; expected number, n"):
        batch_of(schema_of(Order).arrow, table)


@pytest.mark.parametrize(
    ("kind", "content", "reason"),
    [
        (Format.JSON, '{"n": 1}', "line 1: no field 'number'; it has n"),
        (Format.JSON, '{"number": 1, "n": null}', "line 1: field 'n': expected a whole number, got None"),
        (Format.JSON, '{"number": 1, "place": {}}', "line 1: field 'place': no field 'city'"),
        (Format.CSV, "n\n1\n", "no column 'number'; it has n"),
        (Format.CSV, "number,since\n1,no\n", "row 1: field 'since': "),
        (Format.CSV, "number\nno\n", "row 1: field 'number': .*no.*, expected int64"),
    ],
)
def test_what_has_no_default_and_what_is_no_value_is_refused_as_before(
    kind: Format, content: str, reason: str, tmp_path: Path
) -> None:
    (file := tmp_path / "a").write_text(content)
    with pytest.raises(SchemaError, match=reason):
        sent(schema_of(Order), file, kind)


def test_a_field_that_may_be_none_without_a_default_is_still_a_column(tmp_path: Path) -> None:
    @dataclass
    class Reading:
        at: int
        value: float | None

    (lines := tmp_path / "a.jsonl").write_text('{"at": 1}')
    (rows := tmp_path / "a.csv").write_text("at\n1\n")
    assert sent(schema_of(Reading), lines, Format.JSON) == [Reading(1, None)]
    with pytest.raises(SchemaError, match="no column 'value'; it has at"):
        sent(schema_of(Reading), rows, Format.CSV)


def test_defaults_are_no_part_of_the_fingerprint_and_go_with_the_arrow_schema() -> None:
    @dataclass
    class Bare:
        at: int
        n: bettong.u8

    @dataclass
    class Defaulted:
        at: int
        n: bettong.u8 = 5

    assert schema_of(Bare).fingerprint == schema_of(Defaulted).fingerprint
    assert schema_of(Bare).arrow.equals(schema_of(Defaulted).arrow)
    assert schema_of(Defaulted).arrow.field("n").metadata[DEFAULT] == b"5"


def test_a_default_that_its_field_cannot_hold_or_that_differs_each_time_is_none() -> None:
    @dataclass
    class Odd:
        at: int
        wide: bettong.u8 = 300
        text: str = None  # type: ignore[assignment]
        made: uuid.UUID = field(default_factory=uuid.uuid4)

    fields = schema_of(Odd).arrow
    assert [DEFAULT in each.metadata for each in fields] == [False] * 4


def test_defaults_of_a_pydantic_model_hold() -> None:
    class Payment(pydantic.BaseModel):
        account: str
        cents: int = 7
        tags: list[str] = pydantic.Field(default_factory=list)
        made: uuid.UUID = pydantic.Field(default_factory=uuid.uuid4)

    found = {each.name: each.metadata.get(DEFAULT) for each in schema_of(Payment).arrow}
    assert found == {"account": None, "cents": b"7", "tags": b"[]", "made": None}


def test_each_default_of_a_message_is_what_its_json_has(tmp_path: Path) -> None:
    stated = {each.name: each.default for each in schema_of(Order).fields}
    assert stated.pop("number") is None
    assert json.loads(stated["raw"] or b"") == "base64:/w=="
    assert json.loads(stated["place"] or b"") == {"city": "Köln", "floor": -1}
    assert None not in stated.values()
    (file := tmp_path / "a.jsonl").write_text(
        json.dumps({"number": 1} | {name: json.loads(text or b"") for name, text in stated.items()})
    )
    assert sent(schema_of(Order), file, Format.JSON) == [Order(1)]
