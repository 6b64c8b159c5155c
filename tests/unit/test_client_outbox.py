"""Frames without a receipt, and the tables that clients make frames of."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong import Width, f64, i16, u8
from bettong.client.outbox import Outbox
from bettong.errors import SchemaError
from bettong.schema.schema import schema_of
from bettong.schema.tables import TableSchema, batch_of
from bettong.v1.ingest_pb2 import IngestFrame, IngestRequest, Receipt
from bettong.worker.calling.vectors import one_each_of


def request(sequence: int) -> IngestRequest:
    return IngestRequest(frame=IngestFrame(sequence=sequence))


def in_flight(outbox: Outbox) -> list[int]:
    found = []
    while (each := outbox.next(0.0)) is not None:
        found.append(each.frame.sequence)
    return found


def test_there_is_room_for_as_many_frames_as_there_are_credits() -> None:
    outbox = Outbox(0)
    rooms = [outbox.has_room]
    outbox.opened(2)
    for sequence in (1, 2):
        rooms.append(outbox.has_room)
        outbox.put(request(sequence), 1)
    rooms.append(outbox.has_room)
    assert in_flight(outbox) == [1, 2]
    outbox.received(Receipt(acknowledged=1, credits=1))
    rooms.append(outbox.has_room)
    outbox.put(request(3), 1)
    rooms.append(outbox.has_room)
    assert in_flight(outbox) == [3]
    assert rooms == [False, True, True, False, True, False]


def test_a_lost_session_makes_frames_unsent_and_they_are_sent_as_credits_allow() -> None:
    outbox = Outbox(4)
    outbox.opened(3)
    for sequence in (5, 6, 7):
        outbox.put(request(sequence), 1)
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


def test_a_receipt_for_frames_that_the_session_has_not_sent_yet_leaves_the_others_in_their_order() -> None:
    """An earlier session sent them, and the sender knew them to be durable before the client heard of it."""
    outbox = Outbox(37)
    outbox.opened(10)
    for sequence in (38, 39, 40, 41, 42):
        outbox.put(request(sequence), 1)
    assert in_flight(outbox) == [38, 39, 40, 41, 42]
    outbox.lost()
    outbox.opened(10)
    assert (outbox.next(0.0) or request(0)).frame.sequence == 38
    outbox.received(Receipt(acknowledged=40, credits=1))
    assert in_flight(outbox) == [41, 42]


def test_what_another_program_has_sent_of_the_stream_is_not_sent_by_this_one() -> None:
    """The other program was further when this one took the stream over: see `Sender`."""
    outbox = Outbox(37)
    outbox.opened(10)
    for sequence in (38, 39):
        outbox.put(request(sequence), 1)
    assert in_flight(outbox) == [38, 39]
    outbox.received(Receipt(acknowledged=45, credits=1))
    outbox.put(request(40), 1)
    assert (in_flight(outbox), outbox.is_empty) == ([], True)
    outbox.put(request(46), 1)
    assert in_flight(outbox) == [46]


class Stream:
    """A stream at the sender: `durable` in all of its sessions; `newest`, `credits` of the one that is open."""

    def __init__(self) -> None:
        self.sent = self.durable = self.newest = self.credits = self.spent = 0
        self.is_open = False

    def open(self, acknowledged: int, credits_: int) -> None:
        """Starts a session, as a hello does."""
        self.is_open, self.newest = True, acknowledged
        self.credits, self.spent = credits_, WINDOW - credits_

    def take(self, sequence: int, acknowledged: int) -> None:
        """A frame of the session, as `Session` checks it: no earlier frame without a receipt may be missing."""
        assert self.credits > 0
        assert self.newest < sequence <= max(self.newest, acknowledged) + 1
        self.newest, self.sent = sequence, max(self.sent, sequence)
        self.credits, self.spent = self.credits - 1, self.spent + 1

    def receipt(self) -> Receipt:
        """For all that is durable, whichever session it came in, with the credits that were spent."""
        self.credits, given, self.spent = self.credits + self.spent, self.spent, 0
        return Receipt(acknowledged=self.durable, credits=given)


WINDOW = 4
# Some more often than others, so that there is most often something to lose. Another program of the stream's name may
# have been further.
STEPS = [
    *["put", "next"] * 4,
    *["durable"] * 2,
    "receipt",
    "lost",
    "open",
    "open without credit",
    "durable by others",
]


@settings(max_examples=500)
@given(st.lists(st.sampled_from(STEPS), min_size=30, max_size=60))
def test_a_session_sends_each_frame_without_a_receipt_once_in_order_and_none_beyond_the_credits(
    steps: list[str],
) -> None:
    outbox, stream, last = Outbox(0), Stream(), 0
    for step in steps:
        if step == "put" and outbox.has_room:
            last += 1
            outbox.put(request(last), 1)
        elif step == "next" and (each := outbox.next(0.0)) is not None:
            stream.take(each.frame.sequence, outbox.acknowledged)
        elif step == "durable" and stream.durable < stream.sent:
            stream.durable += 1
        elif step == "durable by others" and not stream.is_open:
            stream.durable += 3
        elif step == "receipt" and stream.is_open:
            outbox.received(stream.receipt())
            assert outbox.acknowledged == stream.durable
        elif step == "lost" and stream.is_open:
            outbox.lost()
            stream.is_open = False
        elif step.startswith("open") and not stream.is_open:
            # The sender's buffer may be full: the credits come with a receipt then.
            credits_ = 0 if step.endswith("without credit") else WINDOW
            outbox.opened(credits_)
            stream.open(outbox.acknowledged, credits_)
    assert not outbox.is_empty or outbox.acknowledged >= last


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


@dataclass
class Blob:
    """Of any length; `maybe` and `other` may lack a value."""

    data: bytes
    text: str
    maybe: bytes | None
    other: str | None


BYTES = np.array([b"a\0b", b"\0\0c", b""])
TEXTS = np.array(["a\0b", "\0c", ""])


@pytest.mark.parametrize("make", [np.asarray, np.ma.asarray], ids=["plain", "masked"])
def test_bytes_and_text_of_numpy_go_on_behind_a_zero(make: Any) -> None:
    """Arrow would end them there."""
    columns = {"data": make(BYTES), "text": make(TEXTS), "maybe": make(BYTES), "other": make(TEXTS)}
    batch = batch_of(schema_of(Blob).arrow, columns)
    assert batch.to_pydict() == {name: each.tolist() for name, each in columns.items()}
    assert batch_of(batch.schema, {name: each[:0] for name, each in columns.items()}).num_rows == 0


def test_so_they_do_as_columns_that_a_vectorized_function_returns() -> None:
    returned: Any = [BYTES, TEXTS, BYTES, TEXTS]
    found = one_each_of(schema_of(Blob), Blob(*returned), len(BYTES)).columns
    assert found is not None
    assert found.messages() == [
        Blob(*values) for values in zip(*map(np.ndarray.tolist, returned), strict=True)
    ]


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["IBM", "X\0"], r"'X\\x00' ends in a zero byte, .*: strip it, or give the field no Width"),
        (pa.array(["IBM", "X\0"]).dictionary_encode(), "ends in a zero byte"),
        (
            [b"IBM", b"\xff"],
            "is text, and its value 1 is no UTF-8: encode it as UTF-8, or make the field bytes",
        ),
        (np.array([b"IBM", b"\xff"]), "its value 1 is no UTF-8"),
        (np.array([b"IBM", b"\xff"], "S4"), "its value 1 is no UTF-8"),
        (np.array([b"IBM", b"123456\xff"]), "has values of more than 4 bytes"),
        (pa.array([b"IBM\0", b"\xff\0\0\0"], pa.binary(4)), "its value 1 is no UTF-8"),
    ],
)
def test_text_of_a_fixed_width_is_refused_where_it_is_no_utf8_or_would_lose_its_end(
    texts: Any, reason: str
) -> None:
    with pytest.raises(SchemaError, match=f"^column 'symbol'.*{reason}"):
        batch_of(SCHEMA, {**TABLE, "symbol": texts})
    unnamed = pa.schema([field.remove_metadata() for field in SCHEMA])  # of an older sender: it may be bytes
    if "UTF-8" in reason:
        assert batch_of(unnamed, {**TABLE, "symbol": texts}).num_rows == 2


def test_neither_is_a_table_taken_that_has_its_types_already() -> None:
    symbols = np.array(["grö".encode(), b"\xff"], "S4")

    @dataclass
    class Symbol:
        symbol: Annotated[str, Width(4)]

    schema = TableSchema(schema_of(Symbol).arrow)
    assert schema.fixed_values({"symbol": symbols[:1]}) == ["grö".encode()]
    assert schema.fixed_values({"symbol": symbols}) is None
    wrong = pa.RecordBatch.from_arrays(
        [pa.array(["grö".encode(), b"\xff\0\0\0"], pa.binary(4))], schema=schema.arrow
    )
    with pytest.raises(SchemaError, match="its value 1 is no UTF-8"):
        schema.batch(wrong)


def test_bytes_for_text_may_be_padded_already() -> None:
    for padded in (
        [b"IBM", b"X\0"],
        np.array([b"IBM", b"X\0"]),
        pa.array([b"IBM\0", b"X\0\0\0"], pa.binary(4)),
    ):
        assert batch_of(SCHEMA, {**TABLE, "symbol": padded}).column("symbol").to_pylist() == [
            b"IBM\0",
            b"X\0\0\0",
        ]


class Derived(np.ndarray[Any, np.dtype[Any]]):
    """A class of somebody's own, as numpy's own memmap."""


@pytest.mark.parametrize("kind", [np.memmap, Derived])
def test_columns_of_classes_derived_from_numpys_array_are_as_those_of_the_array(
    kind: type[np.ndarray[Any, np.dtype[Any]]],
) -> None:
    """Arrow would end bytes at their first zero."""
    plain = {**TABLE, "symbol": np.array(["é\0d".encode(), b"X"]), "side": np.array([1, 2], np.uint8)}
    derived = {
        name: each.view(kind) if isinstance(each, np.ndarray) else each for name, each in plain.items()
    }
    assert batch_of(SCHEMA, derived).equals(batch_of(SCHEMA, plain))
    assert batch_of(SCHEMA, plain).column("symbol").to_pylist() == ["é\0d".encode(), b"X\0\0\0"]


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
        ({"price": np.ma.array([1.0, 2.0], mask=[False, True])}, "'price' has nulls"),
        ({"symbol": np.ma.array([b"A", b"B"], mask=[False, True])}, "'symbol' has nulls"),
        ({"note": [b"\xff", b""]}, "'note' does not fit string"),
        ({"price": [object(), object()]}, "'price' does not fit double"),
        ({"price": np.ones((2, 2))}, "'price' does not fit double: only handle 1-dimensional arrays"),
        ({"symbol": np.full((2, 2), b"A")}, "'symbol' does not fit .*: only handle 1-dimensional arrays"),
        ({"note": np.ones(2)}, "'note' is text or bytes, and got double"),
    ],
)
def test_columns_that_do_not_fit_are_named(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        batch_of(SCHEMA, {**TABLE, **changed})


def test_numpy_columns_of_the_fields_own_type_are_what_arrow_makes_of_them() -> None:
    """These are viewed, and not converted; also every second value, and none."""
    for count in (0, 1, 5):
        prices = np.linspace(-1.0, np.nan if count == 1 else 7.0, 2 * count)[::2]
        sides = np.arange(2 * count, dtype=np.uint8)[::2]
        numbers = {"side": sides, "price": prices, "flag": sides % 2, "size": np.arange(count, dtype="<i2")}
        names = {"symbol": np.full(count, b"A"), "note": pa.array(["x"] * count, pa.string())}
        batch = batch_of(SCHEMA, numbers | names)
        for name, values in numbers.items():
            np.testing.assert_array_equal(batch.column(name).to_numpy(), values)
            assert batch.column(name).null_count == 0, name
    with pytest.raises(SchemaError, match="'flag' is true or false, 1 or 0, and got 2"):
        batch_of(SCHEMA, {**TABLE, "flag": np.array([1, 2], np.uint8)})


def test_missing_columns_are_named() -> None:
    with pytest.raises(SchemaError, match=r"price, note missing; expected side, flag, .* found side, flag"):
        batch_of(SCHEMA, {name: TABLE[name] for name in ("side", "flag", "size", "symbol")})


def test_nulls_in_a_batch_of_the_schema_are_found() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"a": pa.array([1, None])}, schema=pa.schema([pa.field("a", pa.int64(), nullable=False)])
    )
    with pytest.raises(SchemaError, match="'a' has nulls"):
        batch_of(batch.schema, batch)
