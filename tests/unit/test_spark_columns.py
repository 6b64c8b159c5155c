"""The columns that `bettong.spark` gives to Spark, without Spark."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

import bettong
from bettong.application.plan import plan
from bettong.errors import ApplicationError, FrameError, SchemaError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, FrameKind, decode
from bettong.identifiers import PartitionId
from bettong.inspection.states import RestoredSnapshot
from bettong.schema.schema import schema_of
from bettong.spark.arrow_types import spark_array, spark_field
from bettong.spark.sink_columns import SinkColumns, gathered, sink_named
from bettong.spark.state_columns import StateColumns, computation_named
from bettong.testing import AppSession
from bettong.topics import sink_topic

ID = UUID("5b2f7a30-6b7b-4b51-9f0a-6a4cf0a8a001")
AT = datetime(2026, 11, 1, 12, 30, tzinfo=UTC)


class Side(StrEnum):
    BUY = "buy"


@dataclass
class Line:
    code: Annotated[str, bettong.Width(6)]
    count: bettong.u16
    is_new: bool


@dataclass
class Order:
    name: str
    code: Annotated[str, bettong.Width(6)]
    data: Annotated[bytes, bettong.Width(2)]
    is_new: bool
    small: bettong.u8
    large: bettong.u64
    price: Annotated[Decimal, bettong.Precision(18, 4)]
    long: Annotated[Decimal, bettong.Precision(50, 2)]
    id: UUID
    side: Side
    on: date
    at: datetime
    within: timedelta | None
    lines: list[Line]
    flags: dict[str, list[bool]]
    first: Line | None


def order(number: int) -> tuple[Order, dict[str, Any]]:
    """A message, and its row."""
    line = Line(f"l{number}", 65_535, is_new=True)
    row = {"code": f"l{number}", "count": 65_535, "is_new": True}
    message = Order(
        f"order {number}",
        "käse",
        b"\x01\x00",
        number % 2 == 0,
        255,
        2**64 - 1,
        Decimal("1.5000"),
        Decimal(10**40),
        ID,
        Side.BUY,
        AT.date(),
        AT,
        None if number % 2 else timedelta(seconds=number),
        [line] * (number % 3),
        {"a": [True, False], "b": []},
        line if number % 2 else None,
    )
    values = {
        **vars(message),
        "long": f"{10**40}.00",
        "large": Decimal(2**64 - 1),
        "id": str(ID),
        "side": "buy",
        "lines": [row] * (number % 3),
        "flags": [("a", [True, False]), ("b", [])],
        "first": row if number % 2 else None,
    }
    return message, values


@pytest.mark.parametrize("start", [0, 3])
def test_every_kind_of_field_has_a_column_that_spark_reads(start: int) -> None:
    """Also of a slice, whose lists begin in the middle of others."""
    orders, rows = zip(*map(order, range(8)), strict=True)
    schema = schema_of(Order)
    batch = Columns.of_messages(schema, orders).batch().slice(start)
    arrays = [spark_array(one, column) for one, column in zip(schema.arrow, batch.columns, strict=True)]
    found = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(list(map(spark_field, schema.arrow))))
    found.validate(full=True)
    assert found.to_pylist() == list(rows[start:])
    unknown = [
        kind for kind in map(str, found.schema.types) if "uint" in kind or "fixed" in kind or "256" in kind
    ]
    assert unknown == []


@dataclass
class Payment:
    account: Annotated[str, bettong.Width(8)]
    branch: bettong.u64
    amount: int


@dataclass
class Balance:
    amount: int = 0
    account: float = 0.0
    due: bettong.LogTimer = bettong.NEVER
    names: list[str] = field(default_factory=list)


@dataclass
class Sum:
    amount: int = 0
    name: Annotated[str, bettong.Width(8)] = "none"


@dataclass
class Shouted:
    text: str


def book(payment: Payment, balance: Balance) -> Payment:
    balance.amount += payment.amount
    balance.names.append(payment.account)
    if payment.amount == 7:
        balance.due = 9 * 10**18
    if payment.amount == 9:
        balance.amount = "nine"  # type: ignore[assignment]
    return payment


def on_due(fired: bettong.Fired[Any], balance: Balance) -> Payment:
    return Payment("due", 0, balance.amount)


@bettong.vectorized
def total(payment: Payment, held: Sum, key: bettong.RowIndexes) -> Payment:
    np.add.at(held.amount, key, payment.amount)  # type: ignore[arg-type]
    return payment


def branch_of(payment: Payment) -> str:
    return f"branch {payment.branch}"


def shout(payment: Payment) -> Shouted:
    return Shouted(payment.account.upper())


def text(payment: Payment) -> bytes:
    return payment.account.encode()


def application() -> bettong.Application:
    app = bettong.Application("columns")
    payments = app.source("payments", schema=Payment, key=("account", "branch"))
    booked = payments.stateful(book, state=Balance, timers={"due": on_due})
    booked.sink("booked")
    booked.sink("texts", encoder=text)
    payments.merge(booked.map(shout)).sink("both")
    payments.key_by(branch_of, name="by-branch").sink("same")
    payments.key_by("account", name="by-account").stateful(total, state=Sum).sink("totals")
    return app


def held(computation: str, *amounts: int, as_json: bool = False) -> tuple[pa.Schema, list[dict[str, Any]]]:
    """The rows of a computation's states, once these payments came."""
    app = application()
    session = AppSession(app)
    session.step(*(("payments", Payment(f"a{amount}", 2**63, amount)) for amount in amounts))
    stage, node = computation_named(plan(app), computation)
    worker = session._processor.partitions[PartitionId(stage.name, 0)].worker
    columns = StateColumns(stage, node, as_json=as_json)
    snapshot = RestoredSnapshot(stage.name, 0, worker.next_offset, 0, worker)
    return columns.arrow, [row for batch in columns.rows(snapshot) for row in batch.to_pylist()]


def test_a_state_has_the_fields_of_its_key_and_its_own_under_other_names_where_they_are_the_same() -> None:
    _, rows = held("book", 5, 7)
    at = {"branch": Decimal(2**63), "_partition": 0, "_offset": 3}
    assert rows == [
        {"account": "a5", "amount": 5, "state_account": 0.0, "due": None, "names": ["a5"], **at},
        {"account": "a7", "amount": 7, "state_account": 0.0, "due": 9 * 10**18, "names": ["a7"], **at},
    ]


def test_states_of_arrays_have_the_same_columns_as_objects() -> None:
    schema, rows = held("total", 5, 6)
    assert schema.types == [pa.string(), pa.int64(), pa.string(), pa.int32(), pa.int64()]
    assert [(row["account"], row["amount"], row["name"]) for row in rows] == [
        ("a5", 5, "none"),
        ("a6", 6, "none"),
    ]


def test_a_state_that_its_class_does_not_describe_is_refused_and_may_be_had_as_json() -> None:
    with pytest.raises(SchemaError, match=r"states of 'book': field 'amount': .*as_json=True"):
        held("book", 9)
    _, (row,) = held("book", 9, as_json=True)
    assert row["state"] == '{"amount": "nine", "account": 0.0, "due": null, "names": ["a9"]}'


def results(sink: str) -> tuple[SinkColumns, list[Frame]]:
    """The columns of a sink, and frames of it: two messages."""
    app = application()
    session = AppSession(app)
    session.step(("payments", [Payment("ann", 1, 5), Payment("bob", 1, 6)]))
    topic = sink_topic("columns", sink)
    frames = [
        decode(record.value)
        for partition in session._processor.partitions.values()
        for records in partition._outputs
        for record in records
        if record.topic == topic
    ]
    planned = plan(app)
    return SinkColumns(planned, sink_named(planned, sink)), frames


@pytest.mark.parametrize(
    ("sink", "own"),
    [
        (
            "same",
            [{"account": "ann", "branch": 1, "amount": 5}, {"account": "bob", "branch": 1, "amount": 6}],
        ),
        ("texts", [{"message": b"ann"}, {"message": b"bob"}]),
        (
            "both",
            [
                {"type": "Payment", "message": '{"account":"ann","branch":1,"amount":5}'},
                {"type": "Payment", "message": '{"account":"bob","branch":1,"amount":6}'},
                {"type": "Shouted", "message": '{"text":"ANN"}'},
                {"type": "Shouted", "message": '{"text":"BOB"}'},
            ],
        ),
    ],
)
def test_a_result_has_its_fields_and_what_identifies_it(sink: str, own: list[dict[str, Any]]) -> None:
    columns, frames = results(sink)
    (batch,) = gathered(columns.rows(3, frame) for frame in frames)
    rows = batch.to_pylist()
    assert [{name: row[name] for name in own[0]} for row in rows] == own
    assert len({(row["_origin"], row["_sequence"], row["_index"]) for row in rows}) == len(rows)
    assert {row["_partition"] for row in rows} == {3}
    assert {row["_taken_in"].year for row in rows} == {2026}


def test_rows_are_gathered_in_order_and_no_batch_holds_all() -> None:
    batches = [pa.RecordBatch.from_pydict({"a": range(at, at + 3000)}) for at in range(0, 30_000, 3000)]
    found = list(gathered([None, *batches, None]))
    assert [each.num_rows for each in found] == [9000, 9000, 9000, 3000]
    assert [value for each in found for value in each["a"].to_pylist()] == list(range(30_000))
    assert list(gathered([None])) == []


def test_what_holds_no_messages_has_no_rows_and_what_holds_others_is_refused() -> None:
    columns, (frame, *_) = results("same")
    assert columns.rows(0, replace(frame, kind=FrameKind.TICK)) is None
    for wrong in (replace(frame, schema=1), replace(frame, columns=None, rows=[b"ann"])):
        with pytest.raises(FrameError, match=r"sink 'same' of columns: .* give that version's file"):
            columns.rows(0, wrong)


@dataclass
class Numbered:
    _index: int


def test_messages_with_a_field_of_that_name_are_refused() -> None:
    app = bettong.Application("numbered")
    app.source("numbers", schema=Numbered).sink("out")
    planned = plan(app)
    with pytest.raises(ApplicationError, match="sink 'out': its messages have a field '_index'"):
        SinkColumns(planned, planned.sinks[0])


def test_without_pyspark_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None\nimport bettong.spark\nbettong.spark.batch('app.py', None)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert "SettingsError: bettong.spark needs the package pyspark" in ended.stderr
    assert "pip install 'bettong[spark]'" in ended.stderr
