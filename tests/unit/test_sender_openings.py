"""When a session opens a partition, and when a frame lands too far after the one before it."""

import pytest

from bettong.delivery import REMEMBERED_RECORDS
from bettong.frames.frame import Frame, FrameKind
from bettong.identifiers import Origin, SequenceNumber
from bettong.ingest.numbering import DISTANCE_MAX, OPEN_DISTANCE, SILENT_S_MAX
from bettong.ingest.refusal import Code, Refusal
from bettong.ingest.session import Append, Session
from bettong.routing import partition_of
from bettong.v1.ingest_pb2 import Hello
from tests.samples.sender import PARTITIONS, MemoryLog, orders, route, rows_frame

STAGE = "shop.stage.orders"
HOME = STAGE, partition_of("orders/feed-1", PARTITIONS)


def session(*, acknowledged: int = 0, ends: list[int] | None = None) -> Session:
    hello = Hello(source="orders", stream="feed-1", acknowledged=acknowledged)
    return Session(route(), hello, ends or [-1] * PARTITIONS)


def partitions(log: MemoryLog, kind: FrameKind) -> list[tuple[str, int]]:
    return [partition for partition, frames in log.frames.items() for frame in frames if frame.kind is kind]


def test_hello_opens_one_partition_with_what_is_known_to_be_durable() -> None:
    log = MemoryLog()
    log.extend(session(acknowledged=50).open(0, 9, SequenceNumber(41)).appends)
    assert partitions(log, FrameKind.OPEN) == [HOME]
    for frames in log.frames.values():
        assert frames == [
            Frame(
                origin=Origin("orders/feed-1"),
                sequence=SequenceNumber(41),
                previous=SequenceNumber(41),
                kind=FrameKind.OPEN,
                ingest_ns=9,
            )
        ]


def test_each_other_partition_is_opened_right_before_its_first_frame() -> None:
    ours, log = session(), MemoryLog()
    ours.open(0, 9, SequenceNumber(3))
    for sequence in (4, 5):
        log.extend(ours.take(rows_frame(sequence, orders(range(11))), 0, 9).appends)
    for partition, frames in log.frames.items():
        expected = [(FrameKind.DATA, 3), (FrameKind.DATA, 4)]
        if partition != HOME:
            expected.insert(0, (FrameKind.OPEN, 3))
        assert [(each.kind, each.previous) for each in frames] == expected
    assert len(log.frames) == PARTITIONS


AAAA = partition_of("AAAA", PARTITIONS)


def reported(ours: Session, appends: list[Append], first: int) -> None:
    for offset, append in enumerate((one for one in appends if one.numbered_in == AAAA), first):
        ours.answered(AAAA, offset, opens=append.opens)


def test_a_partition_is_opened_again_after_a_silence_or_when_others_have_sent_much() -> None:
    ends = [-1] * PARTITIONS
    ours, log = session(ends=ends), MemoryLog()
    moments = [
        (1, 0.0, 0),
        (2, SILENT_S_MAX - 0.1, OPEN_DISTANCE),
        (3, 2 * SILENT_S_MAX, OPEN_DISTANCE + 1),
        (4, 2 * SILENT_S_MAX, 2 * OPEN_DISTANCE + 2),
    ]
    for sequence, now_s, end in moments:
        ends[AAAA] = end
        taken = ours.take(rows_frame(sequence, orders([1], "AAAA")), now_s, 9)
        log.extend(taken.appends)
        reported(ours, taken.appends, end)
    found = [(each.kind, each.previous) for each in log.frames[STAGE, AAAA]]
    assert found == [
        (FrameKind.OPEN, 0),
        (FrameKind.DATA, 0),
        (FrameKind.DATA, 1),
        (FrameKind.OPEN, 2),
        (FrameKind.DATA, 2),
        (FrameKind.OPEN, 3),
        (FrameKind.DATA, 3),
    ]


@pytest.mark.parametrize("lost", [True, False])
def test_a_partition_is_not_opened_over_a_frame_that_is_in_flight_or_lost(*, lost: bool) -> None:
    ours = session()
    ours.take(rows_frame(1, orders([1], "AAAA")), 0, 10)
    if lost:
        for _ in range(2):
            ours.lost(AAAA)
    (append,) = ours.take(rows_frame(2, orders([2], "AAAA")), 2 * SILENT_S_MAX, 10).appends
    assert not append.opens


def test_a_frame_that_consumers_may_pass_over_ends_the_session() -> None:
    ours = session()
    reported(ours, ours.take(rows_frame(1, orders([1], "AAAA")), 0, 10).appends, 7)
    at_most = 8 + DISTANCE_MAX
    reported(ours, ours.take(rows_frame(2, orders([1], "AAAA")), 0, 10).appends, at_most)
    taken = ours.take(rows_frame(3, orders([1], "AAAA")), 0, 10)
    with pytest.raises(Refusal, match=f"more than {DISTANCE_MAX} records after the one before it") as caught:
        reported(ours, taken.appends, at_most + DISTANCE_MAX + 1)
    assert caught.value.code is Code.UNAVAILABLE
    assert DISTANCE_MAX <= REMEMBERED_RECORDS // 2


@pytest.mark.parametrize("back", [0, 1, 5])
@pytest.mark.parametrize("opens", [True, False])
def test_a_record_that_does_not_lie_after_the_one_before_it_ends_the_session(
    back: int, *, opens: bool
) -> None:
    """It lies in another log, of which the offsets before say nothing."""
    ends = [-1] * PARTITIONS
    ours = session(ends=ends)
    reported(ours, ours.take(rows_frame(1, orders([1], "AAAA")), 0, 10).appends, 7)
    now_s = 2 * SILENT_S_MAX if opens else 0
    append, *_ = ours.take(rows_frame(2, orders([1], "AAAA")), now_s, 10).appends
    assert append.opens is opens
    with pytest.raises(Refusal, match="or not after it") as caught:
        ours.answered(AAAA, 8 - back, opens=opens)
    assert caught.value.code is Code.UNAVAILABLE
    assert ends[AAAA] == 8 - back, "what was known of the other log's end is forgotten"


@pytest.mark.parametrize("kept", [False, True])
def test_the_end_of_a_stream_goes_to_the_partitions_that_it_opened(*, kept: bool) -> None:
    ours, log = session(), MemoryLog()
    log.extend(ours.open(0, 9, SequenceNumber(3)).appends)
    log.extend(ours.take(rows_frame(5, orders([1], "AAAA")), 0, 9).appends)
    log.extend(ours.end(0, 9, kept=kept).appends)
    for partition, frames in log.frames.items():
        last = 5 if partition == (STAGE, AAAA) else 3
        assert (frames[-1].kind, frames[-1].previous, frames[-1].kept) == (FrameKind.END, last, kept)
    assert set(log.frames) == {(STAGE, AAAA), HOME}
