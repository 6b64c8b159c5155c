"""A batcher makes one batch per partition of records; and how each connector reads frames."""

from dataclasses import dataclass

import pytest

import bettong
from bettong.application.on_error import DEAD_LETTER, SKIP, STOP, OnError
from bettong.delivery import DeliveryTable, Verdict
from bettong.edges.kafka_log import Record
from bettong.errors import FrameError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, decode
from bettong.identifiers import Origin, SequenceNumber
from bettong.schema.schema import schema_of
from bettong.v1.frame_pb2 import DeadLetter
from bettong_receiver.connectors.kafka_topic import read_with_key, read_without_key
from bettong_receiver.connectors.postgres import read_rows
from bettong_receiver.delivery.batcher import SinkBatcher
from bettong_receiver.delivery.connector import SinkBatch
from bettong_receiver.delivery.refusals import Refusals
from bettong_receiver.delivery.route import SinkInput, SinkRecord
from bettong_receiver.errors import PositionError
from bettong_receiver.progress import SinkPartition
from tests.samples.result_frames import Note, columns, rows

SCHEMA = schema_of(Note)


def read(frame: Frame) -> list[bytes]:
    if frame.rows is None:
        raise FrameError("columns")
    return list(frame.rows)


def sink_input(on_error: OnError = DEAD_LETTER) -> SinkInput[bytes]:
    refusals = Refusals("app", "raw", on_error, read, as_received=True, frame_bytes_max=100_000)
    return SinkInput("raw", "app.sink.raw", read, refusals)


def batcher(
    stored: dict[int, bytes | None] | None = None, beginning: int = 0, on_error: OnError = DEAD_LETTER
) -> SinkBatcher[bytes]:
    return SinkBatcher(
        "app",
        [sink_input(on_error)],
        beginnings={SinkPartition("raw", 0): beginning, SinkPartition("raw", 1): beginning},
        stored={SinkPartition("raw", partition): each for partition, each in (stored or {}).items()},
    )


def of_value(offset: int, value: bytes, *, partition: int = 0) -> SinkRecord[bytes]:
    return SinkRecord(sink_input(), Record("app.sink.raw", partition, offset, value))


def record(offset: int, message: bytes, *, partition: int = 0, sequence: int = 0) -> SinkRecord[bytes]:
    number = sequence or offset + 1
    value = rows([message], origin=f"raw/x/{partition}", sequence=number, previous=number - 1)
    return of_value(offset, value, partition=partition)


def test_the_messages_of_a_partition_are_one_batch_with_the_position_after_it() -> None:
    one = batcher()
    batches = one.fold([record(0, b"a"), record(1, b"b"), record(0, b"x", partition=1)])
    assert [(batch.partition, batch.messages, batch.moving.progress.offset) for batch in batches] == [
        (0, [b"a", b"b"], 2),
        (1, [b"x"], 1),
    ]
    again = batcher({batch.partition: batch.position() for batch in batches})
    assert again.offsets([SinkPartition("raw", 0), SinkPartition("raw", 1)]) == {
        SinkPartition("raw", 0): 2,
        SinkPartition("raw", 1): 1,
    }
    assert again.progress == one.progress


def test_duplicates_gaps_and_garbage_are_in_no_batch_and_are_counted() -> None:
    one = batcher()
    records = [
        record(0, b"a"),
        record(1, b"a again", sequence=1),
        record(2, b"too early", sequence=9),
        of_value(3, b"garbage"),
        of_value(4, columns([Note("k", 1, 1.0)], origin="raw/x/0", sequence=2, previous=1)),
        record(5, b"b", sequence=3),
    ]
    batches = one.fold(records)
    assert [batch.messages for batch in batches] == [[b"a", b"b"]]
    assert [each.offset for each in records if each.fault] == [3, 4]
    counts = one.progress[SinkPartition("raw", 0)].counts
    assert (counts.messages, counts.duplicates, counts.gaps, counts.unreadable) == (2, 1, 1, 2)


def test_positions_that_moved_without_messages_are_passed_until_they_are_stored() -> None:
    one = batcher()
    assert one.moved_batches() == []
    one.fold([of_value(0, b"garbage", partition=1)])
    (batch,) = one.moved_batches()
    assert (batch.partition, batch.messages, batch.moving.progress.offset) == (1, [], 1)
    one.delivered([batch], {})
    assert one.moved_batches() == []


@pytest.mark.parametrize("stored", [b"", b"garbage", b"crc32c:00000000\n{}\n"])
def test_a_position_that_cannot_be_trusted_is_refused(stored: bytes) -> None:
    with pytest.raises(
        PositionError, match=r"the position stored for partition 1: .*remove data and position"
    ):
        batcher({0: None, 1: stored})


def test_a_position_of_another_sink_is_refused() -> None:
    (batch,) = batcher().fold([record(0, b"a")])
    with pytest.raises(PositionError, match="it belongs to partition 0"):
        batcher({1: batch.position()})


def note_frame(*notes: Note) -> Frame:
    return decode(columns(list(notes), origin="notes/notes-in/0", sequence=1, previous=0))


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
    frame = Frame(
        origin=Origin("a/b"),
        sequence=SequenceNumber(1),
        previous=SequenceNumber(0),
        schema=schema.fingerprint,
        columns=payload,
    )
    keys = {name: read_with_key(schema, name)(frame)[0][0] for name in ("text", "number", "data")}
    assert keys == {"text": "é".encode(), "number": b"9223372036854775808", "data": b"\x00\xff"}
    assert read_without_key(lambda _: [b"x"])(frame) == [(None, b"x")]


def test_frames_of_another_schema_are_refused() -> None:
    schema = schema_of(Keys)
    for reader in (read_rows(schema), read_with_key(schema, "text")):
        with pytest.raises(FrameError, match="does not follow Keys"):
            reader(note_frame(Note("a", 1, 0.5)))


def refused(batch: SinkBatch[bytes], reasons: dict[int, str]) -> bytes:
    assert batch.refusing is not None
    return batch.refusing(reasons)


def dead_letters(
    one: SinkBatcher[bytes],
) -> list[tuple[Origin, SequenceNumber, SequenceNumber, list[DeadLetter]]]:
    """Origin, sequence, previous and content of each frame of dead letters to append."""
    found = []
    for each in one.dead_letters():
        assert (each.topic, each.partition) == ("app.dead-letters", 0)
        frame = decode(each.value)
        found.append(
            (
                frame.origin,
                frame.sequence,
                frame.previous,
                [DeadLetter.FromString(row) for row in frame.rows or ()],
            )
        )
    return found


def test_what_was_refused_becomes_dead_letters_that_name_frame_and_index() -> None:
    one = batcher()
    one.fold([record(0, b"a"), record(1, b"b")])
    batch, *_ = one.fold([record(2, b"c"), record(3, b"d"), record(4, b"e")])
    one.delivered([batch], {SinkPartition("raw", 0): {0: "no", 2: "never"}})
    found = dead_letters(one)
    assert [(origin, previous) for origin, _, previous, _ in found] == [
        ("dead-letters/raw.destination/0", 0),
        ("dead-letters/raw.destination/0", found[0][1]),
    ]
    assert [
        (
            each.computation,
            each.reason,
            each.origin,
            each.sequence,
            each.index,
            each.message,
            each.as_received,
        )
        for *_, each_frame in found
        for each in each_frame
    ] == [
        ("raw", "no", "raw/x/0", 3, 0, b"c", True),
        ("raw", "never", "raw/x/0", 5, 0, b"e", True),
    ]
    one.appended()
    assert one.dead_letters() == []


def test_after_a_crash_the_same_dead_letters_are_written_again_and_no_others() -> None:
    """After a crash at any point after the delivery, consumers accept each dead letter once, in order."""
    log = [record(number, b"%d" % number) for number in range(8)]
    one = batcher()
    table = DeliveryTable()
    taken: list[bytes] = []

    def consumed(of: SinkBatcher[bytes]) -> None:
        for origin, sequence, previous, content in dead_letters(of):
            if (
                table.take(
                    Origin(origin),
                    sequence=SequenceNumber(sequence),
                    previous=SequenceNumber(previous),
                    now_ns=1,
                )
                is Verdict.TAKE
            ):
                taken.extend(each.message for each in content)

    stored: bytes | None = None
    for first in (0, 4):
        (batch,) = one.fold(log[first : first + 4])
        reasons = {1: "no", 3: "never"}
        stored = refused(batch, reasons)
        one.delivered([batch], {SinkPartition("raw", 0): reasons})
        if first == 0:
            consumed(one)
            one.appended()
    before = dead_letters(one)

    again = one
    for written in (
        False,
        True,
    ):  # the crash came before the dead letters, or between them and the next position
        again = batcher({0: stored})
        assert again.progress[SinkPartition("raw", 0)].offset == 8
        assert again.starts()[SinkPartition("raw", 0)] == 5
        again.resume_dead_letters(log[5:6])
        assert dead_letters(again) == before[:1]
        consumed(again)
        again.appended()
        assert again.fold(log[5:6]) == []
        again.resume_dead_letters(log[6:])
        assert dead_letters(again) == before[1:]
        consumed(again)
        again.appended()
        assert taken == [b"1", b"3", b"5", b"7"], written
    (moved,) = again.moved_batches()
    later = batcher({0: moved.position()})
    assert later.starts()[SinkPartition("raw", 0)] == 8, "and then it is pending no more"


def test_dead_letters_that_were_not_appended_stay_pending() -> None:
    one = batcher()
    (batch,) = one.fold([record(0, b"a"), record(1, b"b")])
    one.delivered([batch], {SinkPartition("raw", 0): {0: "no"}})
    (next_batch,) = one.fold([record(2, b"c")])
    assert batcher({0: next_batch.position()}).starts()[SinkPartition("raw", 0)] == 0


def test_skipped_messages_are_counted_with_the_position_and_make_no_dead_letters() -> None:
    one = batcher(on_error=SKIP)
    (batch,) = one.fold([record(0, b"a"), record(1, b"b")])
    stored = refused(batch, {0: "no", 1: "no"})
    one.delivered([batch], {SinkPartition("raw", 0): {0: "no", 1: "no"}})
    assert one.dead_letters() == []
    assert one.progress[SinkPartition("raw", 0)].counts.skipped == 2
    again = batcher({0: stored}, on_error=SKIP)
    assert again.progress[SinkPartition("raw", 0)].counts.skipped == 2
    assert again.starts()[SinkPartition("raw", 0)] == 2


def test_a_sink_that_stops_on_a_refusal_leaves_nothing_out() -> None:
    (batch,) = batcher(on_error=STOP).fold([record(0, b"a")])
    assert batch.refusing is None
