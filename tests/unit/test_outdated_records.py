"""Records that were partitioned for an earlier number of partitions, and arrive after the mark of a later one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bettong.errors import LogTruncatedError
from bettong.frames.frame import (
    CLOCK_NS_MAX,
    Frame,
    FrameKind,
    Repartition,
    decode,
    encode,
    reference_record,
    repartition_record,
    tick_record,
)
from bettong.identifiers import NO_SEQUENCE, Origin, ReferenceVersion, SequenceNumber
from bettong.snapshots import snapshot as codec
from bettong.worker.generations import is_outdated
from bettong.worker.partition import PartitionWorker
from tests.samples.time_case import TimeCase, application
from tests.samples.time_pipelines import MINUTE, S_NS, START_NS, left, windows
from tests.samples.worker import data, fold, python, worker

CLIENT = Origin("w-in/feed")
GENERATION = 3


def of_generation(generation: int) -> PartitionWorker:
    """A worker of windows of a minute, whose first record is a client's, followed by the mark."""
    app = application([TimeCase("w", windows("w", MINUTE), [], [])])
    first = worker(python(app))
    fold(first, [stamped(data(CLIENT, 1, [left(1, 1, 1)], ingest_ns=START_NS), generation - 1)])
    saved = codec.decode(first.snapshot(), application="meters", partition=first.id)
    saved.offset = saved.root = saved.round = first.next_offset + 1
    saved.generation = generation
    found = worker(python(app))
    found.restore(codec.encode(saved))
    assert not fold(found, [repartition_record("w-in", Repartition(generation, 1))])
    return found


def stamped(value: bytes, generation: int) -> bytes:
    return encode(replace(decode(value), generation=generation))


def marked(kind: FrameKind, last: int) -> bytes:
    """A record with the watermark of the client."""
    number = SequenceNumber(last)
    return encode(
        Frame(origin=CLIENT, sequence=number, previous=number, kind=kind, ingest_ns=START_NS, generation=2)
    )


FRAME = data(CLIENT, 2, [left(1, 2, 1)], ingest_ns=START_NS)
TO_THE_END = {CLIENT: CLOCK_NS_MAX}


@pytest.mark.parametrize(
    "value",
    [
        stamped(FRAME, 2),
        marked(FrameKind.OPEN, 2),
        marked(FrameKind.END, 1),
        tick_record("w-in", START_NS, TO_THE_END, generation=2),
    ],
    ids=["DATA", "OPEN", "END", "TICK"],
)
def test_an_outdated_record_changes_nothing_that_is_known_of_its_client(value: bytes) -> None:
    found, straight = of_generation(GENERATION), of_generation(GENERATION)
    is_data = decode(value).kind is FrameKind.DATA
    assert not fold(found, [value])
    assert found.counters.duplicates == is_data
    fold(straight, [tick_record("w-in", START_NS)])
    found.counters.duplicates = 0
    assert found.snapshot() == straight.snapshot()
    # The frame is sent again, partitioned anew.
    fold(found, [stamped(FRAME, GENERATION)])
    assert (found.counters.duplicates, found.counters.gaps) == (0, 0)
    assert found.counters.messages == 2


@pytest.mark.parametrize("generation", [GENERATION, GENERATION + 1])
def test_a_record_of_the_generation_counts(generation: int) -> None:
    found = of_generation(GENERATION)
    fold(found, [stamped(FRAME, generation)])
    assert found.counters.messages == 2


def test_time_passes_at_an_outdated_record() -> None:
    found = of_generation(GENERATION)
    fold(found, [stamped(data(CLIENT, 2, [left(1, 2, 1)], ingest_ns=START_NS + 9 * S_NS), 0)])
    assert found.now_ns == START_NS + 9 * S_NS


def test_what_no_sender_divides_is_never_outdated() -> None:
    version = ReferenceVersion("priced-1", 1, bytes(32))
    of_stage = data("regions/orders/2", 1, [left(1, 1, 1)])
    for value in (
        of_stage,
        reference_record("w-in", 1, version),
        repartition_record("w-in", Repartition(1, 2)),
    ):
        assert not is_outdated(decode(value), GENERATION)


def of_new_stage() -> PartitionWorker:
    app = application([TimeCase("w", windows("w", MINUTE), [], [])])
    return worker(python(app))


def test_a_stage_that_the_application_got_later_is_of_the_generation_that_its_first_record_says() -> None:
    begins = repartition_record("w-in", Repartition(GENERATION, 1, begins_stage=True))
    found = of_new_stage()
    # Two services may have written it.
    assert not fold(found, [begins, begins])
    fold(found, [stamped(data(CLIENT, 1, [left(1, 1, 1)], ingest_ns=START_NS), GENERATION)])
    fold(found, [stamped(data(CLIENT, 2, [left(1, 2, 1)], ingest_ns=START_NS), GENERATION - 1)])
    assert (found.counters.messages, found.counters.duplicates) == (1, 1)
    saved = codec.decode(found.snapshot(), application="meters", partition=found.id)
    assert saved.generation == GENERATION
    # The number changes once more: no fold makes the states after that.
    with pytest.raises(LogTruncatedError, match="no snapshot of that moment"):
        fold(found, [repartition_record("w-in", Repartition(GENERATION + 1, 2))])


def test_a_log_that_begins_with_the_mark_of_a_change_gives_no_states() -> None:
    with pytest.raises(LogTruncatedError, match="no snapshot of that moment"):
        fold(of_new_stage(), [repartition_record("w-in", Repartition(GENERATION, 1))])


def test_frames_of_an_application_that_was_never_repartitioned_have_no_byte_more() -> None:
    frame = Frame(origin=CLIENT, sequence=SequenceNumber(1), previous=NO_SEQUENCE, columns=b"x")
    assert len(encode(replace(frame, generation=1))) == len(encode(frame)) + 3
    assert decode(encode(replace(frame, generation=7))).generation == 7
    assert decode(encode(frame)).generation == 0
