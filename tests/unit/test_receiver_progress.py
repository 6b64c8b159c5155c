"""The progress of a connector: a fold of the log that can be saved and resumed at any offset."""

import copy
from collections.abc import Callable

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.frames.frame import decode
from bettong.identifiers import SequenceNumber
from bettong_receiver.errors import PositionError
from bettong_receiver.positions import PositionKey, encode
from bettong_receiver.positions import decode as decode_position
from bettong_receiver.progress import DeadLetterOutbox, DeliveryCounts, DeliveryProgress
from tests.samples.result_frames import mark, rows, tick

KEY = PositionKey("app", "raw", 3)


def value(sequence: int, previous: int, origin: str = "raw/notes-in/3") -> bytes:
    return rows([b"x"] * 2, origin=origin, sequence=sequence, previous=previous)


def fold(progress: DeliveryProgress, values: list[bytes | None], start: int = 0) -> list[int]:
    """Advances over records; returns the offsets of the frames to deliver."""
    taken = []
    for offset, each in enumerate(values, start):
        if progress.advance(offset, None if each is None else decode(each)):
            progress.count_delivered(2)
            taken.append(offset)
    return taken


def test_duplicates_and_gaps_are_skipped_and_counted() -> None:
    progress = DeliveryProgress()
    values = [value(5, 0), value(5, 0), value(9, 7), value(7, 5), value(9, 7), value(5, 0)]
    assert fold(progress, list(values)) == [0, 3, 4]
    assert progress.counts == DeliveryCounts(frames=3, messages=6, duplicates=2, gaps=1)
    assert progress.offset == 6


def test_records_that_are_no_frames_are_counted_and_passed() -> None:
    progress = DeliveryProgress()
    assert fold(progress, [None, value(1, 0), None]) == [1]
    assert progress.counts.unreadable == 2
    assert progress.offset == 3


def test_marks_and_ticks_move_only_the_offset() -> None:
    progress = DeliveryProgress()
    origin = "orders/dead-letter.0.1.2"
    values = [mark(origin=origin, acknowledged=4), tick("orders")]
    assert fold(progress, list(values)) == []
    assert progress == DeliveryProgress(offset=2)


def test_records_below_a_progress_do_not_change_it() -> None:
    progress = DeliveryProgress(offset=10)
    before = copy.deepcopy(progress)
    assert fold(progress, [value(1, 0), None]) == []
    assert progress == before


def test_in_a_truncated_log_the_first_frame_of_an_origin_is_never_a_gap() -> None:
    progress = DeliveryProgress.fresh(100)
    values = [value(50, 49), value(50, 49), value(52, 50), value(60, 55)]
    assert fold(progress, list(values), start=100) == [100, 102]
    assert progress.counts == DeliveryCounts(frames=2, messages=4, duplicates=1, gaps=1)


def test_at_the_beginning_of_a_log_the_first_frame_of_an_origin_may_be_a_gap() -> None:
    assert fold(DeliveryProgress.fresh(0), [value(50, 49)]) == []


steps = st.tuples(
    st.sampled_from(["data", "mark", "tick", "garbage"]), st.integers(1, 12), st.integers(0, 12)
)


@given(st.lists(steps, max_size=60), st.data())
def test_a_restored_progress_continues_as_if_it_had_never_stopped(
    kinds: list[tuple[str, int, int]], data: st.DataObject
) -> None:
    makers: dict[str, Callable[[int, int], bytes | None]] = {
        "data": lambda sequence, previous: value(sequence, min(previous, sequence - 1)),
        "mark": lambda _, previous: mark(origin="raw/notes-in/3", acknowledged=previous),
        "tick": lambda *_: tick("raw"),
        "garbage": lambda *_: None,
    }
    values = [makers[kind](sequence, previous) for kind, sequence, previous in kinds]
    straight = DeliveryProgress()
    taken = fold(straight, values)
    cut = data.draw(st.integers(0, len(values)))
    first = DeliveryProgress()
    before = fold(first, values[:cut])
    resumed, length_bytes = decode_position(KEY, encode(KEY, first, length_bytes=77))
    assert before + fold(resumed, values[cut:], start=cut) == taken
    assert resumed == straight
    assert length_bytes == 77


def test_a_position_with_any_byte_changed_is_refused() -> None:
    progress = DeliveryProgress()
    fold(progress, [value(5, 0)])
    data = encode(KEY, progress)
    for index in range(len(data)):
        damaged = data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :]
        with pytest.raises(PositionError):
            decode_position(KEY, damaged)
    with pytest.raises(PositionError, match="checksum"):
        decode_position(KEY, data[: len(data) // 2])


def test_a_position_of_another_partition_is_refused_by_name() -> None:
    data = encode(PositionKey("app", "raw", 4), DeliveryProgress())
    with pytest.raises(PositionError, match="partition 4 of app/raw"):
        decode_position(KEY, data)


@pytest.mark.parametrize("other", ["orders/feed-3", "rawest/notes-in/3", "notes/notes-in/3"])
def test_a_saved_position_loses_the_origins_that_are_not_of_its_sink(other: str) -> None:
    """Older receivers accepted such origins, which would otherwise stay forever."""
    progress = DeliveryProgress()
    fold(progress, [value(5, 0, other), value(7, 0)])
    table = decode_position(KEY, encode(KEY, progress))[0].table
    assert table.highest == {"raw/notes-in/3": 7}
    assert table.heard_ns.keys() == table.highest.keys()


WRITTEN = (
    b'{"version":3,"application":"app","sink":"totals","partition":0,"offset":812,"length_bytes":77,'
    b'"origins":{"totals/varying/0":[9,5]},"age":[0,0,0],'
    b'"counts":{"frames":0,"messages":40,"duplicates":0,"gaps":0,"unreadable":0,"skipped":2},"adopts":true,'
    b'"outbox":{"last":5,"pending":[[7,0,0],[7,3,0]],"reasons":["refused"]}}\n'
)


def sealed(content: bytes) -> bytes:
    return b"crc32c:%08x\n" % crc32c.crc32c(content) + content


def test_a_position_is_read_and_written_to_the_byte() -> None:
    key = PositionKey("app", "totals", 0)
    progress, length_bytes = decode_position(key, sealed(WRITTEN))
    assert (progress.offset, length_bytes, progress.counts.skipped) == (812, 77, 2)
    assert progress.outbox == DeadLetterOutbox({7: {0: "refused", 3: "refused"}}, last=SequenceNumber(5))
    assert encode(key, progress, length_bytes=length_bytes) == sealed(WRITTEN)


@pytest.mark.parametrize("version", [b"2", b"4"])
def test_a_position_of_another_version_is_refused_by_its_number(version: bytes) -> None:
    other = WRITTEN.replace(b'"version":3', b'"version":' + version)
    with pytest.raises(PositionError, match=f"it is of version {version.decode()}, expected 3"):
        decode_position(PositionKey("app", "totals", 0), sealed(other))
