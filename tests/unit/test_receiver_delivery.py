"""A delivery passes the messages of records to every connector that lacks them."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from bettong.edges.kafka_log import Record
from bettong.held_time import HeldTime
from bettong.identifiers import TopicPartition
from bettong_receiver.background import Background
from bettong_receiver.connectors.files import FileConnector
from bettong_receiver.delivery.delivery import Delivery
from bettong_receiver.delivery.observations import DeliveryLog, DeliveryObserver
from bettong_receiver.delivery.route import Route, SinkInput
from bettong_receiver.formats import formats
from bettong_receiver.progress import SinkPartition
from bettong_receiver.status import metrics_of
from tests.samples.result_frames import Note, columns, dead_letter, planned, rows

FORMATS = formats(planned())
PARTITIONS = 2
BEGINNINGS = {SinkPartition(sink, partition): 0 for sink in FORMATS for partition in range(PARTITIONS)}
SENT_NS = 1_000_000_000_000
INPUTS = [SinkInput(each.sink, each.topic, each.messages) for each in FORMATS.values()]


class Delivered:
    """A delivery to files in folders, and its observer."""

    def __init__(self, *folders: Path) -> None:
        def files(folder: Path) -> Callable[[], FileConnector]:
            return lambda: FileConnector(
                folder, "app", FORMATS, background=Background("file-sync"), monotonic_s=lambda: 0.0
            )

        def append(dead_letters: object) -> None:
            raise AssertionError(f"files refuse nothing: {dead_letters}")

        self.observer = DeliveryObserver(FORMATS, clock_ns=lambda: SENT_NS + 5_000_000)
        self.delivery = Delivery(
            Route("files", INPUTS, [files(folder) for folder in folders], 1, required=True),
            "app",
            BEGINNINGS,
            append=append,
            held=HeldTime(),
            on_delivered=self.observer.observe,
            monotonic_s=lambda: 0.0,
            log=DeliveryLog(structlog.get_logger(), INPUTS),
        )


@contextmanager
def delivery(*folders: Path) -> Iterator[Delivered]:
    """An open delivery, stopped cleanly at the end."""
    one = Delivered(*folders)
    with contextlib.closing(one.delivery):
        yield one
        one.delivery.finish()


def raw(offset: int, message: bytes, partition: int = 0, sequence: int = 0) -> Record:
    number = sequence or offset + 1
    value = rows(
        [message], origin=f"raw/notes-in/{partition}", sequence=number, previous=number - 1, sent_ns=SENT_NS
    )
    return Record("app.sink.raw", partition, offset, value)


def test_every_connector_gets_what_it_lacks_and_the_log_is_read_from_the_lowest(tmp_path: Path) -> None:
    records = [raw(offset, b"<%d>" % offset) for offset in range(6)]
    with delivery(tmp_path / "ahead") as ahead:
        ahead.delivery.deliver(records[:4])
    with delivery(tmp_path / "ahead", tmp_path / "new") as both:
        assert both.delivery.starts()[TopicPartition("app.sink.raw", 0)] == 0
        assert both.delivery.offsets()[TopicPartition("app.sink.raw", 0)] == 4
        both.delivery.deliver(records)
        assert both.delivery.offsets()[TopicPartition("app.sink.raw", 0)] == 6
    for folder in ("ahead", "new"):
        assert (tmp_path / folder / "raw" / "00000.bin").read_bytes() == b"<0><1><2><3><4><5>"


def test_duplicates_gaps_and_garbage_are_skipped_and_counted(tmp_path: Path) -> None:
    with delivery(tmp_path) as one:
        one.delivery.deliver(
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
        metrics = metrics_of(one.delivery.counts())
    assert (tmp_path / "raw" / "00000.bin").read_bytes() == b"abc"
    assert metrics == {
        "messages/raw": 3,
        "messages/notes": 0,
        "messages": 3,
        "frames": 3,
        "duplicates": 1,
        "gaps": 1,
        "unreadable": 2,
        "dead_letters": 0,
    }


def test_garbage_is_reported_once_a_partition_with_its_offset(tmp_path: Path) -> None:
    with delivery(tmp_path / "a", tmp_path / "b") as one, capture_logs() as lines:
        one.delivery.deliver([Record("app.sink.raw", 0, offset, b"garbage") for offset in range(5)])
        one.delivery.deliver([Record("app.sink.raw", 1, 7, b"garbage")])
    assert [(line["sink"], line["partition"], line["offset"]) for line in lines] == [
        ("raw", 0, 0),
        ("raw", 1, 7),
    ]


def test_results_that_are_skipped_behind_a_missing_frame_are_reported_once_until_it_is_there(
    tmp_path: Path,
) -> None:
    """As after the topic of a sink was deleted and made again: stages go on with their numbers."""
    with delivery(tmp_path) as one, capture_logs() as lines:
        for offset, sequence in enumerate((1, 3, 4)):
            one.delivery.deliver([raw(offset, b"<%d>" % sequence, sequence=sequence)])
        found = [(line["sink"], line["partition"], line["origin"], line["missing"]) for line in lines]
        assert found == [("raw", 0, "raw/notes-in/0", 2)]
        one.delivery.deliver([raw(3, b"<2>", sequence=2), raw(4, b"<3>", sequence=3)])
        one.delivery.deliver([raw(5, b"<6>", sequence=6)])
        assert [line["missing"] for line in lines] == [2, 5]
    assert (tmp_path / "raw" / "00000.bin").read_bytes() == b"<1><2><3>"


def test_a_frame_whose_body_is_not_the_sinks_is_skipped_and_the_rest_goes_on(tmp_path: Path) -> None:
    with delivery(tmp_path / "a", tmp_path / "b") as one, capture_logs() as lines:
        note = columns([Note("a", 1, 2.0)], origin="raw/notes-in/0", sequence=1, previous=0)
        one.delivery.deliver([Record("app.sink.raw", 0, 0, note), raw(1, b"b")])
        assert metrics_of(one.delivery.counts())["unreadable"] == 1
    assert [line["offset"] for line in lines] == [0]
    for folder in ("a", "b"):
        assert (tmp_path / folder / "raw" / "00000.bin").read_bytes() == b"b"


def test_a_frame_is_read_once_for_all_connectors(tmp_path: Path) -> None:
    read: list[int] = []
    [raw_input] = [each for each in INPUTS if each.sink == "raw"]

    def counted(frame: object) -> list[bytes]:
        read.append(1)
        return [b"x"]

    one = Delivered(tmp_path / "a", tmp_path / "b")
    with contextlib.closing(one.delivery):
        one.delivery._inputs["app.sink.raw"] = SinkInput("raw", raw_input.topic, counted)
        one.delivery.deliver([raw(0, b"a"), raw(1, b"b")])
    assert len(read) == 2


def test_the_last_dead_letter_is_known_and_dead_letters_are_counted_apart(tmp_path: Path) -> None:
    with delivery(tmp_path) as one:
        dead_letters = [dead_letter(b"x", sequence=8, index=0), dead_letter(b"y", sequence=9, index=4)]
        value = rows(dead_letters, origin="dead-letters/check/0", sequence=1, previous=0)
        one.delivery.deliver([Record("app.dead-letters", 0, 0, value)])
        assert (
            one.observer.metrics()["dead_letter_last"]
            == "check: ValueError: no (origin orders/feed, sequence 9, index 4)"
        )
        metrics = metrics_of(one.delivery.counts())
    assert (metrics["dead_letters"], metrics["messages"]) == (2, 0)


def test_latency_runs_from_the_clients_clock_to_delivery(tmp_path: Path) -> None:
    with delivery(tmp_path) as one:
        one.delivery.deliver([raw(0, b"a")])
        found = one.observer.metrics()
    assert found["latency_p50_ms"] == pytest.approx(5.0, rel=1e-3)
    assert found["latency_max_ms/raw"] == pytest.approx(5.0, rel=1e-3)
    assert "latency_p50_ms/notes" not in found


def test_what_is_delivered_again_to_a_second_connector_is_counted_once(tmp_path: Path) -> None:
    with delivery(tmp_path / "ahead") as first:
        first.delivery.deliver([raw(0, b"a")])
    with delivery(tmp_path / "ahead", tmp_path / "new") as both:
        both.delivery.deliver([raw(0, b"a")])
        assert "latency_p50_ms" not in both.observer.metrics()
        assert metrics_of(both.delivery.counts())["messages"] == 1


def test_the_returned_progress_is_a_copy(tmp_path: Path) -> None:
    with delivery(tmp_path) as one:
        one.delivery.deliver([raw(0, b"a")])
        before = one.delivery.progress("raw")
        one.delivery.deliver([raw(1, b"b")])
    assert before[0].offset == 1
    assert before[0].table.highest == {"raw/notes-in/0": 1}
    assert set(before) == {0, 1}
