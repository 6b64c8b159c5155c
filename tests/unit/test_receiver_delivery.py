"""Records in, messages out to every target that lacks them."""

from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from bettong.edges.kafka_log import Record
from bettong_receiver.delivery import Delivery
from bettong_receiver.file_target import FileTarget
from bettong_receiver.formats import formats
from bettong_receiver.status import figures_of
from tests.result_frames import Note, columns, dead_letter, planned, rows

FORMATS = formats(planned())
PARTITIONS = 2
BEGINNINGS = {(sink, partition): 0 for sink in FORMATS for partition in range(PARTITIONS)}
SENT_NS = 1_000_000_000_000


def target(folder: Path) -> FileTarget:
    return FileTarget(folder, "app", FORMATS, BEGINNINGS)


def delivery(*targets: FileTarget) -> Delivery:
    return Delivery(
        FORMATS,
        targets,
        clock_ns=lambda: SENT_NS + 5_000_000,
        monotonic_s=lambda: 0.0,
        log=structlog.get_logger(),
    )


def raw(offset: int, message: bytes, partition: int = 0, sequence: int = 0) -> Record:
    number = sequence or offset + 1
    value = rows(
        [message], origin=f"raw/notes-in/{partition}", sequence=number, previous=number - 1, sent_ns=SENT_NS
    )
    return Record("app.sink.raw", partition, offset, value)


def test_every_target_gets_what_it_lacks_and_the_log_is_read_from_the_lowest(tmp_path: Path) -> None:
    records = [raw(offset, b"<%d>" % offset) for offset in range(6)]
    ahead = delivery(target(tmp_path / "ahead"))
    ahead.round(records[:4])
    ahead.close(saving=True)

    both = delivery(target(tmp_path / "ahead"), target(tmp_path / "new"))
    assert both.starts()["app.sink.raw", 0] == 0
    assert both.offsets()["app.sink.raw", 0] == 4
    both.round(records)
    both.close(saving=True)
    for folder in ("ahead", "new"):
        assert (tmp_path / folder / "raw" / "00000.bin").read_bytes() == b"<0><1><2><3><4><5>"


def test_duplicates_gaps_and_garbage_are_skipped_and_counted(tmp_path: Path) -> None:
    one = delivery(target(tmp_path))
    one.round(
        [
            raw(0, b"a", sequence=1),
            raw(1, b"a", sequence=1),
            raw(2, b"c", sequence=3),
            Record("app.sink.raw", 0, 3, b"garbage"),
            raw(4, b"b", sequence=2),
            raw(5, b"c", sequence=3),
            Record("app.sink.raw", 0, 6, rows([b"x"], origin="nobody", sequence=1, previous=0)),
        ]
    )
    figures = figures_of(one.counts())
    one.close(saving=True)
    assert (tmp_path / "raw" / "00000.bin").read_bytes() == b"abc"
    assert figures == {
        "messages/raw": 3,
        "messages/notes": 0,
        "messages": 3,
        "frames": 3,
        "duplicates": 1,
        "gaps": 1,
        "unreadable": 2,
        "dead_letters": 0,
    }


def test_garbage_is_told_once_a_partition_with_its_offset(tmp_path: Path) -> None:
    one = delivery(target(tmp_path))
    with capture_logs() as lines:
        one.round([Record("app.sink.raw", 0, offset, b"garbage") for offset in range(5)])
        one.round([Record("app.sink.raw", 1, 7, b"garbage")])
    one.close(saving=False)
    assert [(line["sink"], line["partition"], line["offset"]) for line in lines] == [
        ("raw", 0, 0),
        ("raw", 1, 7),
    ]


def test_a_frame_whose_body_is_not_the_sinks_is_skipped_and_the_rest_goes_on(tmp_path: Path) -> None:
    one = delivery(target(tmp_path))
    note = columns([Note("a", 1, 2.0)], origin="raw/notes-in/0", sequence=1, previous=0)
    one.round([Record("app.sink.raw", 0, 0, note), raw(1, b"b")])
    assert figures_of(one.counts())["unreadable"] == 1
    one.close(saving=True)
    assert (tmp_path / "raw" / "00000.bin").read_bytes() == b"b"


def test_the_last_dead_letter_is_known_and_dead_letters_are_counted_apart(tmp_path: Path) -> None:
    one = delivery(target(tmp_path))
    letters = [dead_letter(b"x", sequence=8, index=0), dead_letter(b"y", sequence=9, index=4)]
    value = rows(letters, origin="dead-letters/check/0", sequence=1, previous=0)
    one.round([Record("app.dead-letters", 0, 0, value)])
    assert one.dead_letter_last == "check: ValueError: no (origin orders/feed, sequence 9, index 4)"
    figures = figures_of(one.counts())
    assert (figures["dead_letters"], figures["messages"]) == (2, 0)
    one.close(saving=False)


def test_latency_runs_from_the_clients_clock_to_delivery(tmp_path: Path) -> None:
    one = delivery(target(tmp_path))
    one.round([raw(0, b"a")])
    figures = one.latency.figures()
    assert figures["latency_p50_ms"] == pytest.approx(5.0, rel=1e-3)
    assert figures["latency_max_ms/raw"] == pytest.approx(5.0, rel=1e-3)
    assert "latency_p50_ms/notes" not in figures
    one.close(saving=False)


def test_what_is_delivered_again_to_a_second_target_is_counted_once(tmp_path: Path) -> None:
    first = delivery(target(tmp_path / "ahead"))
    first.round([raw(0, b"a")])
    first.close(saving=True)
    both = delivery(target(tmp_path / "ahead"), target(tmp_path / "new"))
    both.round([raw(0, b"a")])
    assert both.latency.figures() == {}
    assert figures_of(both.counts())["messages"] == 1
    both.close(saving=False)


def test_the_progress_that_is_handed_out_does_not_move(tmp_path: Path) -> None:
    one = delivery(target(tmp_path))
    one.round([raw(0, b"a")])
    before = one.progress("raw")
    one.round([raw(1, b"b")])
    assert before[0].offset == 1
    assert before[0].table.highest == {"raw/notes-in/0": 1}
    assert set(before) == {0, 1}
    one.close(saving=False)
