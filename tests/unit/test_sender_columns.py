"""Columns of untrusted clients: everything in them is checked."""

from dataclasses import dataclass
from typing import Annotated

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong import Application, Width, f64, u8
from bettong.errors import FrameError
from bettong.frames.columns import Columns
from bettong.ingest.refusal import Code, Refusal
from bettong.ingest.session import Session
from bettong.schema.schema import schema_of
from bettong.v1.ingest_pb2 import Hello, IngestFrame
from tests.samples.sender import PARTITIONS, route


@dataclass
class Tick:
    """One field of each layout."""

    kind: u8
    symbol: Annotated[str, Width(6)]
    note: str
    blob: bytes
    price: f64


TICKS = schema_of(Tick)
GOOD = Columns.of_messages(
    TICKS, [Tick(n, f"S{n}", f"note {n}", bytes(n), n / 2) for n in range(80)]
).payload()


def payload_of(**columns: pa.Array) -> bytes:
    return bytes(pa.RecordBatch.from_pydict(columns).serialize().to_pybytes())


def columns_of_another_schema() -> dict[str, bytes]:
    count = 80
    fitting = {
        "kind": pa.array([1] * count, pa.uint8()),
        "symbol": pa.array([b"abcdef"] * count, pa.binary(6)),
        "note": pa.array(["x"] * count),
        "blob": pa.array([b"x"] * count),
        "price": pa.array([1.0] * count),
    }
    assert Columns.of_external_payload(TICKS, payload_of(**fitting)).length == count
    nulls = pa.array([None] + [1.0] * (count - 1))
    return {
        "a column too few": payload_of(**{key: fitting[key] for key in list(fitting)[:-1]}),
        "a column too many": payload_of(**fitting, more=fitting["kind"]),
        "another order": payload_of(**{key: fitting[key] for key in reversed(fitting)}),
        "a wider number": payload_of(**{**fitting, "kind": pa.array([1] * count, pa.uint32())}),
        "a narrower number": payload_of(**{**fitting, "price": pa.array([1.0] * count, pa.float32())}),
        "wider text": payload_of(**{**fitting, "symbol": pa.array([b"abcdefgh"] * count, pa.binary(8))}),
        "bytes that are no text": payload_of(**{**fitting, "note": pa.array([b"\xff"] * count)}),
        "nulls": payload_of(**{**fitting, "price": nulls}),
        "compression": compressed(fitting),
        "a schema": TICKS.arrow.serialize().to_pybytes(),
        "nothing": b"",
        "garbage": b"not Arrow at all, but long enough to look at",
        "a truncated batch": GOOD[: len(GOOD) // 2],
    }


def compressed(columns: dict[str, pa.Array]) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.RecordBatch.from_pydict(columns)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    reader = pa.ipc.MessageReader.open_stream(sink.getvalue())
    reader.read_next_message()
    return bytes(reader.read_next_message().serialize().to_pybytes())


@pytest.mark.parametrize(("name", "payload"), columns_of_another_schema().items())
def test_columns_of_another_schema_are_refused(name: str, payload: bytes) -> None:
    app = Application("shop")
    app.source("ticks", schema=Tick, key="symbol")
    session = Session(route(app.sources[0]), Hello(source="ticks", stream="s"), [-1] * PARTITIONS)
    with pytest.raises(Refusal) as caught:
        session.take(IngestFrame(sequence=1, columns=payload), 0, 1)
    text = str(caught.value)
    assert caught.value.code is Code.INVALID_ARGUMENT, name
    assert text.startswith("frame 1 of source 'ticks': columns of Tick: ")
    assert "expected one Arrow record batch of (kind uint8, symbol fixed_size_binary[6]" in text


@settings(deadline=None, max_examples=500)
@given(
    st.lists(st.tuples(st.integers(0, len(GOOD) - 1) | st.integers(0, 500), st.integers(0, 255)), max_size=6),
    st.integers(0, len(GOOD)),
)
def test_damaged_columns_are_refused_or_can_be_read_to_the_end(
    changes: list[tuple[int, int]], cut: int
) -> None:
    damaged = bytearray(GOOD)
    for index, value in changes:
        damaged[index] = value
    if cut % 10 == 0:
        del damaged[cut:]
    try:
        columns = Columns.of_external_payload(TICKS, bytes(damaged))
    except FrameError:
        return
    assert len(columns.messages()) == columns.length
    assert Columns.of_payload(TICKS, columns.payload()).length == columns.length


def test_columns_that_say_another_schema_are_refused_whatever_they_hold() -> None:
    app = Application("shop")
    app.source("ticks", schema=Tick, key="symbol")
    session = Session(
        route(app.sources[0]),
        Hello(source="ticks", stream="s"),
        [-1] * PARTITIONS,
    )
    assert session.take(IngestFrame(sequence=1, columns=GOOD, schema=TICKS.fingerprint), 0, 1).messages == 80
    with pytest.raises(Refusal, match="its columns follow schema 0000000000000007, expected ") as caught:
        session.take(IngestFrame(sequence=2, columns=GOOD, schema=7), 0, 1)
    assert caught.value.code is Code.INVALID_ARGUMENT
