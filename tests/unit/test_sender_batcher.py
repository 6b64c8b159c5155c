"""Where an external topic is divided into frames: decided once, and the same by whoever reads it again."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong import Width
from bettong.edges.external_reader import ExternalRecords
from bettong.errors import FrameError
from bettong.frames.columns import Columns
from bettong.identifiers import SequenceNumber
from bettong.schema.schema import schema_of
from bettong.v1.ingest_pb2 import IngestFrame
from bettong_sender.batcher import (
    BATCH_RECORDS_MAX,
    BatchBoundaries,
    Batcher,
    bytes_that_fit,
    records_that_fit,
)

Record = tuple[int, int, bytes | None]


def record(offset: int, size: int = 1) -> Record:
    return offset, 1000 + offset, b"%d" % offset + bytes(size)


def columns(records: Sequence[Record]) -> ExternalRecords | None:
    return ExternalRecords(*map(list, zip(*records, strict=True))) if records else None


def ends(batcher: Batcher, records: Sequence[Record], position: int) -> tuple[list[int], bool]:
    found, is_new = batcher.batches(columns(records), position)
    return [batch.end for batch in found], is_new


def test_what_comes_together_is_one_frame_up_to_a_limit() -> None:
    batcher = Batcher(BatchBoundaries(SequenceNumber(10)))
    assert ends(batcher, [record(offset) for offset in (10, 12, 13)], 14) == ([14], True)
    assert ends(batcher, [], 20) == ([], False)
    many = [record(offset) for offset in range(20, 20 + 2 * BATCH_RECORDS_MAX + 1)]
    first = 20 + BATCH_RECORDS_MAX
    last = first + BATCH_RECORDS_MAX
    assert ends(batcher, many, last + 1) == ([first, last, last + 1], True)
    assert batcher.boundaries.ends == [14, first, last, last + 1]


def test_records_limit_a_frame_where_they_grow_as_columns() -> None:
    batcher = Batcher(BatchBoundaries(SequenceNumber(0)), batch_records_max=3)
    assert ends(batcher, [record(offset) for offset in range(7)], 7) == ([3, 6, 7], True)


@dataclass
class Wide:
    name: Annotated[str, Width(400)]
    note: str
    price: float


@pytest.mark.parametrize("frame_bytes_max", [16_384, 1024 * 1024, 16 * 1024 * 1024])
def test_what_a_batch_takes_fits_a_frame_as_columns(frame_bytes_max: int) -> None:
    schema = schema_of(Wide)
    most = records_that_fit(schema.widths, frame_bytes_max)
    note = "x" * (bytes_that_fit(frame_bytes_max) // most - 8)
    columns = Columns.of_messages(schema, [Wide("", note, 1.0)] * most)
    assert len(columns.payload()) <= frame_bytes_max
    assert most == BATCH_RECORDS_MAX or most * 408 > frame_bytes_max // 4, "and is not needlessly small"
    assert records_that_fit((1,), 1024 * 1024) == BATCH_RECORDS_MAX
    assert records_that_fit((frame_bytes_max,), frame_bytes_max) == 1


def test_bytes_limit_a_frame_and_a_large_record_is_alone() -> None:
    batcher = Batcher(BatchBoundaries(SequenceNumber(0)), batch_bytes_max=100)
    records = [record(0, 40), record(1, 40), record(2, 40), record(3, 500), record(4)]
    found, _ = batcher.batches(columns(records), 5)
    assert [batch.end for batch in found] == [2, 3, 4, 5]


@given(
    sizes=st.lists(st.one_of(st.none(), st.integers(0, 120)), max_size=60),
    bytes_max=st.integers(1, 200),
)
def test_a_frame_takes_records_until_the_next_would_not_fit(sizes: list[int | None], bytes_max: int) -> None:
    """Record after record, as the rule is told: each counts 8 bytes and its value, and the first is always taken."""
    records = [(index * 3, 7, None if size is None else bytes(size)) for index, size in enumerate(sizes)]
    expected: list[int] = []
    taken = 0
    for offset, _, value in records:
        more = 8 + len(value or b"")
        if taken and taken + more <= bytes_max:
            expected[-1], taken = offset + 1, taken + more
        else:
            expected.append(offset + 1)
            taken = more
    batcher = Batcher(BatchBoundaries(SequenceNumber(0)), batch_bytes_max=bytes_max)
    batcher.batches(columns(records), 1000)
    values = iter(sizes)
    per_end = [[next(values) for _ in range(count)] for count in _counts(expected)]
    assert batcher.boundaries.ends == [
        end for end, inside in zip(expected, per_end, strict=True) if any(each is not None for each in inside)
    ]


def _counts(ends: Sequence[int]) -> list[int]:
    """How many records each frame has, of records whose offsets are multiples of three."""
    return [(end - before + 2) // 3 for before, end in pairwise([-2, *ends])]


def test_boundaries_that_were_decided_are_made_again_before_new_ones() -> None:
    batcher = Batcher(BatchBoundaries(SequenceNumber(5), [8, 11]))
    assert ends(batcher, [record(5), record(6)], 7) == ([], False)
    assert ends(batcher, [record(7), record(8), record(12)], 13) == ([8, 11, 13], True)
    assert batcher.boundaries.ends == [8, 11, 13]


def test_a_cut_over_missing_offsets_needs_the_position_only_and_an_empty_frame_is_none() -> None:
    batcher = Batcher(BatchBoundaries(SequenceNumber(0), [4, 9]))
    assert ends(batcher, [record(0)], 4) == ([4], False)
    assert ends(batcher, [], 9) == ([], False)
    assert ends(batcher, [record(9)], 10) == ([10], True)


def test_tombstones_are_skipped() -> None:
    batcher = Batcher(BatchBoundaries(SequenceNumber(0)))
    found, is_new = batcher.batches(columns([(0, 5, None), record(1), (2, 0, None)]), 3)
    assert is_new
    assert [(batch.end, len(batch.values), batch.sent_ns, batch.offsets) for batch in found] == [
        (3, 1, 5_000_000, [1])
    ]
    assert batcher.batches(columns([(3, 5, None)]), 4) == ([], False)
    assert batcher.boundaries.ends == [3], "a frame that is never sent is never acknowledged"


def test_boundaries_of_records_that_are_gone_are_kept_no_longer() -> None:
    batcher = Batcher(BatchBoundaries(SequenceNumber(0), [4, 9]))
    assert ends(batcher, [record(0)], 9) == ([4], False)
    assert batcher.boundaries.ends == [4]


def test_what_no_frame_carries_is_passed_over_where_nothing_is_on_its_way() -> None:
    batcher = Batcher(BatchBoundaries(SequenceNumber(0)))
    batcher.batches(columns([record(0)]), 1)
    batcher.batches(None, 5)
    assert not batcher.pass_over(5), "a frame is on its way"
    assert batcher.acknowledge(SequenceNumber(1))
    assert batcher.pass_over(5)
    assert batcher.boundaries == BatchBoundaries(SequenceNumber(5))
    assert not batcher.pass_over(5), "that is known"
    batcher = Batcher(BatchBoundaries(SequenceNumber(0), [8]))
    batcher.batches(columns([record(6)]), 7)
    assert not batcher.pass_over(7), "a record waits for the end of its frame"


@pytest.mark.parametrize(
    ("stamps_ms", "sent_ns"),
    [
        ([2_000, 1_000], 1_000_000_000),
        ([0, 3_000], 3_000_000_000),
        ([0, 0], 0),
        ([9_223_372_036_854], 9_223_372_036_854_000_000),
        ([9_223_372_036_855], 0),
        ([2**63 - 1], 0),
        ([2**63 - 1, 1_000], 1_000_000_000),
    ],
    ids=["oldest", "none-of-one", "none", "last", "too-late", "garbage", "garbage-of-one"],
)
def test_a_frame_is_as_old_as_its_oldest_record_and_a_stamp_that_is_no_time_tells_nothing(
    stamps_ms: list[int], sent_ns: int
) -> None:
    offsets = list(range(len(stamps_ms)))
    records = ExternalRecords(offsets, stamps_ms, [b"x" for _ in offsets])
    ((batch,), _) = Batcher(BatchBoundaries(SequenceNumber(0))).batches(records, len(offsets))
    assert IngestFrame(sequence=batch.end, sent_ns=batch.sent_ns).sent_ns == sent_ns


def test_receipts_move_what_is_durable_and_drop_boundaries() -> None:
    batcher = Batcher(BatchBoundaries(SequenceNumber(0)))
    for offset in range(3):
        batcher.batches(columns([record(offset)]), offset + 1)
    assert batcher.acknowledge(SequenceNumber(2))
    assert batcher.boundaries == BatchBoundaries(SequenceNumber(2), [3])
    assert not batcher.acknowledge(SequenceNumber(2))
    assert BatchBoundaries.decode(batcher.boundaries.encode()) == batcher.boundaries


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b'{"durable": 3, "ends": [3]}',
        b'{"durable": 0, "ends": [2, 1]}',
        b'{"durable": "x", "ends": []}',
    ],
)
def test_bytes_that_are_no_boundaries_are_refused(data: bytes) -> None:
    with pytest.raises(FrameError, match="are no batch boundaries"):
        BatchBoundaries.decode(data)


@given(
    present=st.lists(st.sampled_from(["record", "tombstone", "nothing"]), min_size=1, max_size=60),
    chances=st.lists(st.integers(0, 99), min_size=1, max_size=40),
)
def test_any_crashes_at_any_time_divide_every_record_into_the_same_frames(
    present: list[str], chances: list[int]
) -> None:
    """Records arrive in any portions; boundaries are stored before frames are sent; a crash forgets all but those."""
    log = [
        record(offset) if what == "record" else (offset, 7, None)
        for offset, what in enumerate(present)
        if what != "nothing"
    ]
    frames: dict[int, list[bytes]] = {}
    stored, batcher, position = (
        BatchBoundaries(SequenceNumber(0)),
        Batcher(BatchBoundaries(SequenceNumber(0))),
        0,
    )
    for chance in [*chances, *([50] * 70)]:
        if chance < 15:  # a crash: reads again from what is durable
            batcher = Batcher(BatchBoundaries.decode(stored.encode()))
            position = stored.durable
        until = min(position + chance % 7 + 1, len(present))
        found, is_new = batcher.batches(columns([each for each in log if position <= each[0] < until]), until)
        position = until
        if 15 <= chance < 20 and is_new:  # a crash before they are stored: nothing of it was sent
            batcher = Batcher(BatchBoundaries.decode(stored.encode()))
            position = stored.durable
            continue
        if is_new or batcher.pass_over(until):
            stored = BatchBoundaries.decode(batcher.boundaries.encode())
        for index, batch in enumerate(found):
            if chance < 25 and index == len(found) // 2:  # a crash in the middle of sending
                batcher = Batcher(BatchBoundaries.decode(stored.encode()))
                position = stored.durable
                break
            assert frames.setdefault(batch.end, batch.values) == batch.values
            if chance % 2:
                batcher.acknowledge(SequenceNumber(batch.end))
    sent = [value for end in sorted(frames) for value in frames[end]]
    assert sent == [value for _, _, value in log if value is not None]
    assert len(batcher.boundaries.ends) <= len(frames), "nothing is kept that nobody will acknowledge"
