"""Records in, a lot a partition out; and frames as each outlet reads them."""

from dataclasses import dataclass

import pytest

import bettong
from bettong.application.schema import schema_of
from bettong.edges.kafka_log import Record
from bettong.errors import FrameError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, decode
from bettong_receiver.errors import PositionError
from bettong_receiver.outlets.batch import Batch
from bettong_receiver.outlets.kafka_topic import read_with_key, read_without_key
from bettong_receiver.outlets.postgres import read_rows
from tests.result_frames import Note, columns, rows

SCHEMA = schema_of(Note)


def read(frame: Frame) -> list[bytes]:
    if frame.rows is None:
        raise FrameError("columns")
    return list(frame.rows)


def batch(stored: dict[int, bytes | None] | None = None, beginning: int = 0) -> Batch[bytes]:
    return Batch("app", "raw", read, beginnings={0: beginning, 1: beginning}, stored=stored or {})


def record(offset: int, message: bytes, *, partition: int = 0, sequence: int = 0) -> Record:
    number = sequence or offset + 1
    value = rows([message], origin=f"raw/x/{partition}", sequence=number, previous=number - 1)
    return Record("app.sink.raw", partition, offset, value)


def test_what_a_partition_takes_is_one_lot_with_the_position_behind_it() -> None:
    one = batch()
    lots, faults = one.fold([record(0, b"a"), record(1, b"b"), record(0, b"x", partition=1)])
    assert [(lot.partition, lot.messages, lot.offset) for lot in lots] == [
        (0, [b"a", b"b"], 2),
        (1, [b"x"], 1),
    ]
    assert faults == []
    again = batch({lot.partition: lot.position for lot in lots})
    assert again.offsets() == {0: 2, 1: 1}
    assert again.progress == one.progress


def test_duplicates_gaps_and_garbage_are_in_no_lot_and_are_counted() -> None:
    one = batch()
    lots, faults = one.fold(
        [
            record(0, b"a"),
            record(1, b"a again", sequence=1),
            record(2, b"too early", sequence=9),
            Record("app.sink.raw", 0, 3, b"garbage"),
            Record(
                "app.sink.raw", 0, 4, columns([Note("k", 1, 1.0)], origin="raw/x/0", sequence=2, previous=1)
            ),
            record(5, b"b", sequence=3),
        ]
    )
    assert [lot.messages for lot in lots] == [[b"a", b"b"]]
    assert [each.offset for each, _ in faults] == [3, 4]
    counts = one.progress[0].counts
    assert (counts.messages, counts.duplicates, counts.gaps, counts.unreadable) == (2, 1, 1, 2)


def test_positions_that_moved_without_messages_are_told_until_they_are_delivered() -> None:
    one = batch()
    assert one.moved() == []
    one.fold([Record("app.sink.raw", 1, 0, b"garbage")])
    (lot,) = one.moved()
    assert (lot.partition, lot.messages, lot.offset) == (1, [], 1)
    one.delivered([lot])
    assert one.moved() == []


@pytest.mark.parametrize("stored", [b"", b"garbage", b"crc32c:00000000\n{}\n"])
def test_a_position_that_cannot_be_trusted_is_refused(stored: bytes) -> None:
    with pytest.raises(
        PositionError, match=r"the position stored for partition 1: .*remove data and position"
    ):
        batch({0: None, 1: stored})


def test_a_position_of_another_sink_is_refused() -> None:
    (lot,), _ = batch().fold([record(0, b"a")])
    with pytest.raises(PositionError, match="it belongs to partition 0"):
        Batch("app", "other", read, beginnings={0: 0}, stored={0: lot.position})


def note_frame(*notes: Note) -> Frame:
    return decode(columns(list(notes), origin="notes/same/0", sequence=1, previous=0))


def test_rows_are_values_in_the_order_of_the_fields() -> None:
    frame = note_frame(Note("a", 1, 0.5), Note("b", -2, float("inf")))
    assert read_rows(SCHEMA)(frame) == [("a", 1, 0.5), ("b", -2, float("inf"))]


@dataclass
class Keys:
    text: str
    number: bettong.u64
    data: bytes


def test_keys_are_text_digits_or_bytes() -> None:
    schema = schema_of(Keys)
    payload = Columns.of_messages(schema, [Keys("é", 2**63, b"\x00\xff")]).payload()
    frame = Frame(origin="a/b", sequence=1, previous=0, schema=schema.fingerprint, columns=payload)
    keys = {name: read_with_key(schema, name)(frame)[0][0] for name in ("text", "number", "data")}
    assert keys == {"text": "é".encode(), "number": b"9223372036854775808", "data": b"\x00\xff"}
    assert read_without_key(lambda _: [b"x"])(frame) == [(None, b"x")]


def test_frames_of_another_schema_are_refused() -> None:
    schema = schema_of(Keys)
    for reader in (read_rows(schema), read_with_key(schema, "text")):
        with pytest.raises(FrameError, match="does not follow Keys"):
            reader(note_frame(Note("a", 1, 0.5)))
