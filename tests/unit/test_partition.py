"""The partition worker: what it takes, what it skips, and its dead letters for records that it cannot use."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bettong
from bettong.application.plan import plan
from bettong.delivery import ORIGIN_TTL_NS
from bettong.errors import LogTruncatedError, SnapshotError, StateChangedError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, FrameKind, encode
from bettong.identifiers import Origin, SequenceNumber
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import StageProgram, program
from tests.samples.worker import (
    Latest,
    Limit,
    Reading,
    Total,
    data,
    dead_letters,
    fold,
    frames,
    meters,
    opening,
    results,
    tick,
    worker,
)

TOTALS = "meters.sink.totals"
PLACES = "meters.stage.places"


def totals(records: list[OutputRecord]) -> list[int]:
    return [each.total for each in results(records, TOTALS, Total)]


def test_a_frame_is_folded_and_its_results_leave_at_every_exit(tally: StageProgram) -> None:
    records = fold(
        worker(tally), [data("readings/a", 1, [Reading("m1", 3), Reading("m2", 4), Reading("m1", 5)])]
    )
    expected = [Total("m1", 1, 3, 3), Total("m2", 1, 4, 4), Total("m1", 2, 8, 8)]
    assert results(records, TOTALS, Total) == results(records, PLACES, Total) == expected
    assert [record.count for record in records] == [3, 3]


def test_what_leaves_carries_numbers_of_the_offset_and_times_of_the_frame(tally: StageProgram) -> None:
    times = {"ingest_ns": 7, "sent_ns": 5, "watermark_ns": 3}
    log = [
        data("readings/a", 1, [Reading("m", 1)]),
        tick(1),
        data("readings/a", 2, [Reading("m", 1)], **times),
    ]
    first, second = frames(fold(worker(tally, partition=2, partitions=4), log), TOTALS)
    assert (first.origin, first.sequence, first.previous) == ("totals/readings/2", 1 << 20, 0)
    assert (second.origin, second.sequence, second.previous) == ("totals/readings/2", 3 << 20, 1 << 20)
    assert (second.ingest_ns, second.sent_ns, second.watermark_ns) == (7, 5, 3)
    assert second.count == 1


def test_duplicates_are_skipped_and_counted(tally: StageProgram) -> None:
    frame = data("readings/a", 1, [Reading("m", 3)])
    one = worker(tally)
    assert totals(fold(one, [frame, frame, frame])) == [3]
    assert (one.counters.duplicates, one.counters.frames, one.counters.messages) == (2, 1, 1)


def test_a_gap_is_skipped_and_heals_when_both_frames_come_again(tally: StageProgram) -> None:
    first, second, third = (data("readings/a", number, [Reading("m", number)]) for number in (1, 2, 3))
    one = worker(tally)
    assert totals(fold(one, [first, third, second, third])) == [1, 3, 6]
    assert one.counters.gaps == 1


def test_an_open_says_what_lies_in_the_log_before(tally: StageProgram) -> None:
    one = worker(tally)
    log = [opening("readings/a", 7), data("readings/a", 9, [Reading("m", 1)], previous=7)]
    assert totals(fold(one, log)) == [1]
    assert totals(fold(one, [data("readings/a", 7, [Reading("m", 1)])])) == []


def test_origins_are_numbered_apart(tally: StageProgram) -> None:
    log = [data(f"readings/{who}", 1, [Reading("m", 1)]) for who in "abc"]
    assert totals(fold(worker(tally), log)) == [1, 2, 3]


def test_merged_streams_share_a_state_in_the_order_of_the_log(tally: StageProgram) -> None:
    log = [
        data("readings/a", 1, [Reading("m", 3)]),
        data("limits/a", 1, [Limit("m", 10)]),
        data("readings/a", 2, [Reading("m", 3), Reading("other", 1), Reading("m", 4)]),
    ]
    assert totals(fold(worker(tally), log)) == [3, 1, 10]


def test_a_missing_record_stops_the_stage(tally: StageProgram) -> None:
    one = worker(tally)
    fold(one, [tick(1)])
    with pytest.raises(LogTruncatedError, match="stage 'readings', partition 0: expected offset 1, got 3"):
        one.fold(3, tick(2))


@pytest.mark.parametrize(
    ("record", "reason", "origin"),
    [
        (b"\xff\xff\xff", "3 bytes are no frame", "log/unreadable"),
        (b"", "kind 0 is unknown", "log/unreadable"),
        (
            data("unknown/a", 5, [Reading("m", 1)]),
            "no stream 'unknown' enters here, only readings, limits",
            "unknown/a",
        ),
        (data("readings/a", 5, [Limit("m", 1)]), "expected columns of Reading", "readings/a"),
        (
            encode(
                Frame(
                    origin=Origin("readings/a"),
                    sequence=SequenceNumber(5),
                    previous=SequenceNumber(4),
                    rows=[b"x"],
                )
            ),
            "expected columns of Reading",
            "readings/a",
        ),
    ],
    ids=["garbage", "empty", "unknown stream", "wrong schema", "rows"],
)
def test_a_record_that_cannot_be_used_is_a_dead_letter(
    tally: StageProgram, record: bytes, reason: str, origin: str
) -> None:
    one = worker(tally)
    log = [
        opening("readings/a", 4),
        opening("unknown/a", 4),
        record,
        data("readings/b", 1, [Reading("m", 1)]),
    ]
    records = fold(one, log)
    (dead_letter,) = dead_letters(records)
    assert reason in dead_letter.reason
    assert (dead_letter.computation, dead_letter.origin, dead_letter.index) == ("readings", origin, 0)
    assert dead_letter.sequence == (5 if origin != "log/unreadable" else 0)
    assert dead_letter.message == record
    assert totals(records) == [1]
    assert one.counters.dead_letters == 1


@pytest.mark.parametrize("columns", [b"", b"junk", b"\xff" * 100])
def test_columns_that_cannot_be_read_are_a_dead_letter(tally: StageProgram, columns: bytes) -> None:
    schema = meters().sources[0].schema.fingerprint
    broken = encode(
        Frame(
            origin=Origin("readings/a"),
            sequence=SequenceNumber(1),
            previous=SequenceNumber(0),
            schema=schema,
            columns=columns,
        )
    )
    records = fold(worker(tally), [broken, data("readings/a", 2, [Reading("m", 1)])])
    (dead_letter,) = dead_letters(records)
    assert "columns of Reading" in dead_letter.reason
    assert totals(records) == [1]


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_no_record_stops_a_worker(junk: list[bytes]) -> None:
    one = worker(program(meters().stages[0], compiled=False))
    assert totals(fold(one, [*junk, data("readings/z", 1, [Reading("m", 1)])])) == [1]
    assert one.next_offset == len(junk) + 1


def test_a_repeated_frame_that_could_not_be_used_is_no_second_dead_letter(tally: StageProgram) -> None:
    wrong = data("readings/a", 1, [Limit("m", 1)])
    one = worker(tally)
    assert len(dead_letters(fold(one, [wrong, wrong]))) == 1
    assert one.counters.duplicates == 1


def test_a_frame_without_messages_leads_to_nothing(tally: StageProgram) -> None:
    schema = meters().sources[0].schema
    empty = Columns.of_messages(schema, []).payload()
    frame = encode(
        Frame(
            origin=Origin("readings/a"),
            sequence=SequenceNumber(1),
            previous=SequenceNumber(0),
            schema=schema.fingerprint,
            columns=empty,
        )
    )
    one = worker(tally)
    assert fold(one, [frame]) == []
    assert one.counters.frames == 1


def test_counters_and_keys_report_what_happened(tally: StageProgram) -> None:
    one = worker(tally)
    fold(one, [data("readings/a", 1, [Reading("m", 1), Reading("n", -1), Reading("o", 1)]), tick(1)])
    counters = one.counters
    assert (counters.frames, counters.messages, counters.dead_letters) == (1, 3, 1)
    assert counters.results == 4  # two messages for two outputs
    assert one.keys == 3


def test_a_stage_that_was_silent_for_days_is_still_known(places: StageProgram) -> None:
    """A stage may send nothing to one of the next stage's partitions for days; its next frame is still accepted."""
    steps = count(1)
    rare = [f"places/readings/{partition}" for partition in (0, 1)]

    def at(day: int, origin: str, previous: int, sequence: int) -> bytes:
        total = [Total("m", 1, next(steps), 0)]
        return data(origin, sequence, total, previous=previous, ingest_ns=day * ORIGIN_TTL_NS + 1)

    log = [
        at(0, rare[0], 0, 5),
        at(0, rare[1], 0, 5),
        at(3, rare[1], 5, 6),
        at(6, rare[1], 6, 7),
        at(9, rare[0], 5, 8),
    ]
    one = worker(places)
    assert [each.total for each in results(fold(one, log), "meters.sink.latest", Latest)] == [1, 2, 3, 4, 5]
    assert one.counters.gaps == 0


def test_streams_that_end_do_not_stay_in_snapshots_and_their_late_records_are_duplicates(
    tally: StageProgram,
) -> None:
    """5,000 streams of one frame each, one after the other within an hour; a new worker goes on every 1,250."""
    one, sizes, moments = worker(tally), [], count(0)

    def fold_(kind: FrameKind, origin: str, sequence: int = 1) -> None:
        now_ns = ORIGIN_TTL_NS + next(moments) * 240_000_000
        if kind is FrameKind.DATA:
            value = data(origin, sequence, [Reading("m", 1)], ingest_ns=now_ns)
        else:
            frame = Frame(
                origin=Origin(origin),
                sequence=SequenceNumber(sequence),
                previous=SequenceNumber(sequence),
                kind=kind,
                ingest_ns=now_ns,
            )
            value = encode(frame)
        fold(one, [value])

    for number in range(5_000):
        for kind, sequence in ((FrameKind.OPEN, 0), (FrameKind.DATA, 1), (FrameKind.END, 1)):
            fold_(kind, f"readings/{number}", sequence)
        if number % 1_250 == 1_249:
            fold_(FrameKind.DATA, f"readings/{number - 100}")
            snapshot = one.snapshot()
            sizes.append(len(snapshot))
            one = worker(tally)
            one.restore(snapshot)
            fold_(FrameKind.DATA, f"readings/{number - 200}")
    assert one.counters.frames == 5_000
    assert one.counters.duplicates == 8
    assert sizes[-1] < 1.2 * sizes[0] < 50_000


def test_a_snapshot_of_another_partition_is_refused(tally: StageProgram, places: StageProgram) -> None:
    snapshot = worker(tally).snapshot()
    for other in (worker(tally, partition=1), worker(places)):
        with pytest.raises(SnapshotError, match="it belongs to meters/readings/0"):
            other.restore(snapshot)


def test_a_snapshot_without_the_state_of_a_computation_is_refused(tally: StageProgram) -> None:
    app = bettong.Application("meters")
    app.source("readings", schema=Reading, key="meter").sink("raw")
    before = PartitionWorker(program(plan(app).stages[0], compiled=False), Assignment("meters", 0, 1, 2**20))
    with pytest.raises(
        StateChangedError, match="no state of computation 'tally': it was saved by another version"
    ):
        worker(tally).restore(before.snapshot())
