"""Frames without a receipt, and the tables that clients make frames of."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong import Width, f64, i16, u8
from bettong.client.outbox import Outbox
from bettong.errors import SchemaError
from bettong.schema.schema import schema_of
from bettong.schema.tables import batch_of
from bettong.v1.ingest_pb2 import IngestFrame, IngestRequest, Receipt


def request(sequence: int) -> IngestRequest:
    return IngestRequest(frame=IngestFrame(sequence=sequence))


def in_flight(outbox: Outbox) -> list[int]:
    found = []
    while (each := outbox.next()) is not None:
        found.append(each.frame.sequence)
    return found


def test_there_is_room_for_as_many_frames_as_there_are_credits() -> None:
    outbox = Outbox(0)
    rooms = [outbox.has_room]
    outbox.opened(2)
    for sequence in (1, 2):
        rooms.append(outbox.has_room)
        outbox.put(request(sequence))
    rooms.append(outbox.has_room)
    assert in_flight(outbox) == [1, 2]
    outbox.received(Receipt(acknowledged=1, credits=1))
    rooms.append(outbox.has_room)
    outbox.put(request(3))
    rooms.append(outbox.has_room)
    assert in_flight(outbox) == [3]
    assert rooms == [False, True, True, False, True, False]


def test_a_lost_session_makes_frames_unsent_and_they_are_sent_as_credits_allow() -> None:
    outbox = Outbox(4)
    outbox.opened(3)
    for sequence in (5, 6, 7):
        outbox.put(request(sequence))
    assert in_flight(outbox) == [5, 6, 7]
    outbox.received(Receipt(acknowledged=5))
    outbox.lost()
    assert (outbox.has_room, in_flight(outbox)) == (False, [])
    outbox.opened(1)
    assert in_flight(outbox) == [6]
    assert not outbox.has_room
    outbox.received(Receipt(acknowledged=6, credits=1, dead_letters=2))
    assert in_flight(outbox) == [7]
    outbox.received(Receipt(acknowledged=7, credits=1, dead_letters=1))
    assert (outbox.is_empty, outbox.acknowledged, outbox.dead_letters) == (True, 7, 3)


@given(st.lists(st.sampled_from(["put", "next", "receipt", "lost", "opened"])))
def test_every_frame_is_in_flight_once_a_session_and_never_beyond_the_credits(steps: list[str]) -> None:
    outbox, last, sent, credits_ = Outbox(0), 0, list[int](), 0
    for step in steps:
        if step == "put" and outbox.has_room:
            last += 1
            outbox.put(request(last))
        elif step == "next" and (each := outbox.next()) is not None:
            assert credits_ > 0
            credits_ -= 1
            sent.append(each.frame.sequence)
            assert sent == list(range(sent[0], sent[0] + len(sent)))
        elif step == "receipt" and len(sent) and sent[-1] > outbox.acknowledged:
            outbox.received(Receipt(acknowledged=outbox.acknowledged + 1, credits=1))
            credits_ += 1
        elif step == "lost":
            outbox.lost()
            sent, credits_ = [], 0
        elif step == "opened" and not credits_ and not sent:
            outbox.opened(3)
            credits_ = 3
    assert outbox.is_empty == (outbox.acknowledged == last)


@dataclass
class Trade:
    """One field of each kind that is converted."""

    side: u8
    flag: bool
    size: i16
    symbol: Annotated[str, Width(4)]
    price: f64
    note: str


SCHEMA = schema_of(Trade).arrow
TABLE: dict[str, Any] = {
    "side": [1, 2],
    "flag": [True, False],
    "size": np.array([-1, 300]),
    "symbol": ["IBM", "größ"[:3]],
    "price": np.array([1.5, 2.5]),
    "note": ["a", ""],
}


def test_columns_are_found_by_name_and_converted() -> None:
    batch = batch_of(SCHEMA, {"more": [1, 2], **dict(reversed(TABLE.items()))})
    assert batch.schema.equals(SCHEMA)
    assert batch.column("flag").to_pylist() == [1, 0]
    assert batch.column("size").to_pylist() == [-1, 300]
    assert batch.column("symbol").to_pylist() == [b"IBM\0", "grö".encode()]


def test_a_batch_of_the_schema_is_taken_as_it_is() -> None:
    batch = batch_of(SCHEMA, TABLE)
    assert batch_of(SCHEMA, batch) is batch


def test_bytes_of_numpy_may_be_narrower_or_wider_if_they_fit() -> None:
    for width in (3, 4, 9):
        batch = batch_of(SCHEMA, {**TABLE, "symbol": np.array([b"IBM", b"X"], f"S{width}")})
        assert batch.column("symbol").to_pylist() == [b"IBM\0", b"X\0\0\0"]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"side": [1, 256]}, "'side' does not fit uint8"),
        ({"side": [1, None]}, "'side' has nulls"),
        ({"side": [1.5, 2]}, "'side' does not fit uint8"),
        ({"side": ["a", "b"]}, "'side' does not fit uint8"),
        ({"side": [1]}, "columns of different lengths: 1, 2"),
        ({"symbol": ["TOOLONG", "B"]}, "'symbol' has a value of 7 bytes, at most 4 fit"),
        ({"symbol": np.array([b"TOOLONG", b"B"])}, "'symbol' has values of more than 4 bytes"),
        ({"symbol": [None, "B"]}, "'symbol' has nulls"),
        ({"note": [b"\xff", b""]}, "'note' does not fit string"),
        ({"price": [object(), object()]}, "'price' does not fit double"),
    ],
)
def test_columns_that_do_not_fit_are_named(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        batch_of(SCHEMA, {**TABLE, **changed})


def test_missing_columns_are_named() -> None:
    with pytest.raises(SchemaError, match=r"price, note missing; expected side, flag, .* found side, flag"):
        batch_of(SCHEMA, {name: TABLE[name] for name in ("side", "flag", "size", "symbol")})


def test_nulls_in_a_batch_of_the_schema_are_found() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"a": pa.array([1, None])}, schema=pa.schema([pa.field("a", pa.int64(), nullable=False)])
    )
    with pytest.raises(SchemaError, match="'a' has nulls"):
        batch_of(batch.schema, batch)
