"""Small frames that are joined while they wait: which, how, and that what was sent once never changes."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong import Application, Precision, Width
from bettong.client.column_bodies import ColumnBodies
from bettong.client.joining import FRAME_GAP_S, IN_FLIGHT_MAX, Joining, joined
from bettong.client.outbox import Outbox
from bettong.ingest.session import Session, SourceRoute
from bettong.v1.frame_pb2 import Rows
from bettong.v1.ingest_pb2 import Hello, IngestFrame, IngestRequest, Receipt, Source, Welcome
from bettong_sender.servicer import describe
from tests.samples.sender import Order

SCHEMA = pa.schema([pa.field("number", pa.int64(), nullable=False)])
BODIES = ColumnBodies(SCHEMA)
WELCOME = Welcome(
    frame_bytes_max=1024 * 1024,
    frame_messages_max=65_536,
    source=Source(arrow_schema=SCHEMA.serialize().to_pybytes()),
)


def rows(sequence: int, *messages: bytes) -> IngestRequest:
    return IngestRequest(
        frame=IngestFrame(sequence=sequence, sent_ns=1000 - sequence, rows=Rows(messages=messages))
    )


def columns(sequence: int, *numbers: int) -> IngestRequest:
    batch = pa.record_batch([pa.array(numbers, pa.int64())], schema=SCHEMA)
    payload = batch.serialize().to_pybytes()
    return IngestRequest(frame=IngestFrame(sequence=sequence, sent_ns=1, columns=payload, schema=7))


def outbox(welcome: Welcome = WELCOME, credits_: int = 32) -> Outbox:
    box = Outbox(0)
    box.joining = Joining.of(welcome)
    box.opened(credits_)
    return box


def sent(box: Outbox, now_s: float = math.inf) -> list[IngestFrame]:
    """The frames that are sent now; by default after any wait."""
    found = []
    while (each := box.next(now_s)) is not None:
        found.append(each.frame)
    return found


def filled(box: Outbox) -> int:
    """Sends as many frames as make a small one wait; returns the next number."""
    for number in range(1, IN_FLIGHT_MAX + 1):
        box.put(rows(number, b"x"), 1)
        assert [frame.sequence for frame in sent(box)] == [number]
    return IN_FLIGHT_MAX + 1


@pytest.mark.parametrize(
    "request_of", [lambda number: rows(number, b"%d" % number), lambda number: columns(number, number)]
)
def test_a_small_frame_is_sent_at_once_while_few_are_in_flight_and_then_later_ones_are_joined_to_it(
    request_of: Callable[[int], IngestRequest],
) -> None:
    box = outbox()
    first = []
    for number in range(1, IN_FLIGHT_MAX + 1):
        assert box.put(request_of(number), 1)
        first += sent(box)
    assert [frame.sequence for frame in first] == list(range(1, IN_FLIGHT_MAX + 1))
    for number in range(IN_FLIGHT_MAX + 1, IN_FLIGHT_MAX + 4):
        assert box.put(request_of(number), 1)
        assert sent(box) == []
    box.received(Receipt(acknowledged=1, credits=1))
    assert [frame.sequence for frame in sent(box)] == [IN_FLIGHT_MAX + 3]


def test_a_small_frame_waits_after_another_and_those_that_come_meanwhile_are_joined_to_it() -> None:
    box = outbox()
    assert box.wait_s(7.0) is None
    box.put(rows(1, b"a"), 1)
    assert box.wait_s(7.0) == 0.0, "none went before it"
    assert [frame.sequence for frame in sent(box, 7.0)] == [1]
    for number in (2, 3):
        box.put(rows(number, b"b"), 1)
    assert box.wait_s(7.0) == pytest.approx(FRAME_GAP_S)
    assert sent(box, 7.0 + FRAME_GAP_S / 2) == []
    (joined_frame,) = sent(box, 7.0 + 2 * FRAME_GAP_S)
    assert (joined_frame.sequence, list(joined_frame.rows.messages)) == (3, [b"b", b"b"])
    box.put(columns(4, *range(500)), 500)
    assert box.wait_s(7.0 + 2 * FRAME_GAP_S) == 0.0, "a large one does not wait"


def test_frames_are_sent_again_without_a_wait() -> None:
    box = outbox()
    for number in (1, 2, 3):
        box.put(rows(number, b"a"), 1)
        sent(box)
    box.lost()
    assert box.wait_s(0.0) is None
    box.opened(32)
    assert [frame.sequence for frame in sent(box, 0.0)] == [1, 2, 3]


def test_joined_rows_and_columns_are_all_in_their_order_with_the_last_number_and_the_oldest_time() -> None:
    of_rows = joined([rows(3, b"a", b"b").frame, rows(4, b"c").frame], BODIES).frame
    assert (of_rows.sequence, of_rows.sent_ns, list(of_rows.rows.messages)) == (4, 996, [b"a", b"b", b"c"])
    of_columns = joined([columns(8, 1, 2).frame, columns(9, 3).frame], BODIES).frame
    batch = pa.ipc.read_record_batch(pa.py_buffer(of_columns.columns), SCHEMA)
    assert (of_columns.sequence, of_columns.schema, batch.column(0).to_pylist()) == (9, 7, [1, 2, 3])
    assert of_columns.columns == columns(9, 1, 2, 3).frame.columns, "as if it had been sent at once"


def test_a_frame_without_a_time_is_as_old_as_its_arrival_and_does_not_make_the_others_younger() -> None:
    parts = [rows(3, b"a").frame, rows(4, b"b").frame, rows(5, b"c").frame]
    parts[2].sent_ns = 0
    assert joined(parts, BODIES).frame.sent_ns == 996
    assert joined(parts[2:], BODIES).frame.sent_ns == 0


@dataclass
class Wide:
    """Its row is short, but takes many bytes as columns."""

    text: Annotated[str, Width(4096)]
    amount: Annotated[Decimal, Precision(18, 4)]
    tags: list[str]
    inner: Order


@pytest.mark.parametrize("frame_bytes_max", [16 * 1024, 256 * 1024, 4 * 1024 * 1024])
def test_rows_that_a_sender_takes_one_by_one_it_takes_joined(frame_bytes_max: int) -> None:
    app = Application("shop")
    app.source("wide", schema=Wide, format="json").sink("all")
    route = SourceRoute(app.sources[0], "stage", "dead", partitions=1, frame_bytes_max=frame_bytes_max)
    welcome = Welcome(frame_bytes_max=frame_bytes_max, frame_messages_max=65_536, source=describe(route))
    box = outbox(welcome)
    order = '{"side": 1, "number": 2, "symbol": "IBM", "price": 1}'
    row = b'{"text": "x", "amount": "1", "tags": ["", ""], "inner": %b}' % order.encode()
    first = filled(box)
    for number in range(first, first + 900):
        box.put(rows(number, row), 1)
    session = Session(route, Hello(source="wide", stream="feed-1"), [0])
    found = sent(box)
    for frame in found:
        session.take(frame, 0.0, 1)
    assert sum(len(frame.rows.messages) for frame in found) > len(found) or frame_bytes_max == 16 * 1024


def test_rows_are_joined_neither_to_columns_nor_beyond_what_a_sender_takes_in_one_frame() -> None:
    box = outbox()
    number = filled(box)
    box.put(rows(number, b"x"), 1)
    box.put(columns(number + 1, 1), 1)
    assert [frame.sequence for frame in sent(box)] == [number], (
        "another is behind it: it waits for nothing more"
    )
    for limits in ({"frame_messages_max": 2}, {"frame_bytes_max": 7 * 16}):
        welcome = Welcome()
        welcome.CopyFrom(WELCOME)
        for name, value in limits.items():
            setattr(welcome, name, value)
        small = outbox(welcome)
        first = filled(small)
        for number in range(first, first + 3):
            small.put(rows(number, b"x"), 1)
        assert [len(frame.rows.messages) for frame in sent(small)] == [2], limits
        small.received(Receipt(acknowledged=IN_FLIGHT_MAX, credits=IN_FLIGHT_MAX))
        assert [len(frame.rows.messages) for frame in sent(small)] == [1], limits


def test_a_large_frame_waits_for_no_receipt() -> None:
    box = outbox()
    numbers = range(500)
    for number in range(1, 20):
        box.put(columns(number, *numbers), 500)
    assert [frame.sequence for frame in sent(box)] == list(range(1, 20))


def test_without_a_credit_only_a_frame_that_can_be_joined_has_room() -> None:
    box = outbox(credits_=1)
    assert box.put(rows(1, b"a"), 1)
    assert [frame.sequence for frame in sent(box)] == [1]
    assert not box.put(rows(2, b"b"), 1), "nothing is joined to a frame in flight"
    box.received(Receipt(acknowledged=1, credits=1))
    assert box.put(rows(2, b"b"), 1)
    assert box.put(rows(3, b"c"), 1), "joined to the one that has the credit"
    assert not box.put(columns(4, 1), 1)
    assert [frame.sequence for frame in sent(box)] == [3]


STEPS = ["put"] * 6 + [
    "put many",
    "columns",
    "next",
    "next",
    "next all",
    "receipt",
    "receipt",
    "lost",
    "open",
]


@settings(max_examples=500)
@given(st.lists(st.sampled_from(STEPS), min_size=30, max_size=120), st.integers(1, 9))
def test_every_message_lies_under_one_number_for_ever_and_all_are_sent_in_order(
    steps: list[str], window: int
) -> None:
    """Whichever sessions are lost: a number stands for the same messages in all of them."""
    box = outbox(credits_=window)
    contents: dict[int, IngestFrame] = {}
    put: list[bytes] = []
    in_flight: list[int] = []
    number, is_open, now_s = 0, True, 0.0
    for step in [*steps, "lost", *["open", "next all", "receipt"] * 200]:
        if step in ("put", "put many", "columns"):
            many = 501 if step == "put many" else 1
            made = (
                columns(number + 1, number)
                if step == "columns"
                else rows(number + 1, *[b"%d" % number] * many)
            )
            if box.put(made, many):
                number += 1
                put += [b"%d" % (number - 1)] * many
        elif step.startswith("next"):
            while (request := box.next(now_s)) is not None:
                now_s += FRAME_GAP_S
                frame = request.frame
                assert contents.setdefault(frame.sequence, frame) == frame
                assert not in_flight or in_flight[-1] < frame.sequence
                in_flight.append(frame.sequence)
                assert len(in_flight) <= window
                if step == "next":
                    break
        elif step == "receipt" and is_open and in_flight:
            box.received(Receipt(acknowledged=in_flight[-1], credits=len(in_flight)))
            in_flight = []
        elif step == "lost":
            box.lost()
            is_open, in_flight = False, []
        elif step == "open" and not is_open:
            box.opened(window)
            is_open = True
    assert box.is_empty
    messages: list[bytes] = []
    for sequence in sorted(contents):
        frame = contents[sequence]
        if frame.columns:
            batch = pa.ipc.read_record_batch(pa.py_buffer(frame.columns), SCHEMA)
            messages += [b"%d" % each for each in batch.column(0).to_pylist()]
        else:
            messages += frame.rows.messages
    assert messages == put
