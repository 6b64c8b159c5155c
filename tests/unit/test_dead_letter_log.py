"""Which dead letters there are in their topic: frames that were written again, and logs whose beginning was deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

import pytest

from bettong.config.connection_settings import KafkaConnection
from bettong.edges.kafka_log import Record
from bettong.errors import BettongError
from bettong.frames.dead_letter_id import DeadLetterId
from bettong.frames.frame import Frame, FrameKind, encode
from bettong.identifiers import Origin, SequenceNumber, TopicPartition
from bettong.inspection.live import dead_letter_tail as tail_module
from bettong.inspection.live import dead_letters as module
from bettong.inspection.live.dead_letter_tail import DeadLetterTail
from bettong.inspection.live.dead_letters import DeadLetterLog
from bettong.topics import dead_letter_topic
from bettong.v1.frame_pb2 import DeadLetter

TOPIC = dead_letter_topic("shop")
SECOND_NS = 1_000_000_000
BEGUN_S = 1_700_000_000


@dataclass
class Topic:
    """The topic of dead letters in memory; in the place of a LogAdmin, too."""

    records: list[Record] = field(default_factory=list)
    unread: list[Record] = field(default_factory=list)
    appended_s: dict[TopicPartition, int] = field(default_factory=dict)
    empty_at: dict[TopicPartition, int] = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def write(self, offset: int, *frames: Frame, partition: int = 0) -> None:
        """Frames from that offset on."""
        self.records += [
            Record(TOPIC, partition, offset + number, encode(frame)) for number, frame in enumerate(frames)
        ]

    def beginnings(self, _: Iterable[str]) -> dict[TopicPartition, int]:
        """See LogAdmin."""
        return self._offsets(min) | self.empty_at

    def ends(self, _: Iterable[str]) -> dict[TopicPartition, int]:
        """See LogAdmin."""
        return {partition: last + 1 for partition, last in self._offsets(max).items()} | self.empty_at

    def stretch(
        self, _: object, firsts: Mapping[TopicPartition, int], untils: Mapping[TopicPartition, int], **__: int
    ) -> Iterator[Record]:
        """See `log_stretch`."""
        for record in self.records:
            partition = TopicPartition(TOPIC, record.partition)
            if partition in firsts and firsts[partition] <= record.offset < untils[partition]:
                yield record

    def poll(self, *_: int) -> list[Record]:
        """See LogReader."""
        records, self.unread = self.unread, []
        return records

    def read(self, _: object, starts: Mapping[TopicPartition, int], **__: int) -> Topic:
        """See LogReader."""
        self.unread = list(self.stretch(None, starts, self.ends(())))
        return self

    def close(self) -> None:
        """See LogReader."""

    def begun_ns(self, _: Iterable[str]) -> dict[TopicPartition, int]:
        """See LogAdmin."""
        return {partition: self.appended_s[partition] * SECOND_NS for partition in self.appended_s}

    def _offsets(self, of: Callable[[Iterable[int]], int]) -> dict[TopicPartition, int]:
        partitions = {record.partition for record in self.records}
        return {
            TopicPartition(TOPIC, each): of([one.offset for one in self.records if one.partition == each])
            for each in sorted(partitions)
        }


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    found = Topic()
    for each in (module, tail_module):
        monkeypatch.setattr(each, "LogAdmin", lambda *_, **__: found)
    monkeypatch.setattr(tail_module, "LogReader", found.read)
    monkeypatch.setattr(module, "stretch", found.stretch)
    return found


def log() -> DeadLetterLog:
    return DeadLetterLog("nowhere", "shop", frame_bytes_max=1 << 20)


def frame(
    sequence: int, *messages: bytes, previous: int = 0, partition: int = 0, at_s: int = BEGUN_S
) -> Frame:
    """The dead letters of one frame of a stage."""
    rows = [
        DeadLetter(computation="orders", reason="bad", origin="orders/feed", message=each).SerializeToString()
        for each in messages or (b"x",)
    ]
    return Frame(
        origin=Origin(f"dead-letters/orders/{partition}"),
        sequence=SequenceNumber(sequence),
        previous=SequenceNumber(previous),
        count=len(rows),
        ingest_ns=at_s * SECOND_NS,
        rows=rows,
    )


def listed() -> list[str]:
    return [str(each.id) for each in log().dead_letters()]


def those(*ids: str) -> list[str]:
    return [str(each.id) for each in log().those([name(each) for each in ids])]


def name(text: str) -> DeadLetterId:
    found = DeadLetterId.of(text)
    assert found is not None
    return found


def test_dead_letters_are_found_by_their_names_in_the_order_of_the_log(topic: Topic) -> None:
    topic.write(0, frame(10, b"a", b"b"), frame(20, b"c", previous=10))
    topic.write(0, frame(5, b"d", partition=1), partition=1)
    assert listed() == ["0.0.0", "0.0.1", "0.1.0", "1.0.0"]
    assert those("1.0.0", "0.0.1", "0.0.1") == ["0.0.1", "1.0.0"]
    assert log().at(name("0.1.0")).dead_letter.message == b"c"


@pytest.mark.parametrize("wrong", ["0.0.2", "0.2.0", "3.0.0", "1.7.0", "0.99.0"])
def test_a_name_of_none_is_an_error_behind_those_that_are_there(topic: Topic, wrong: str) -> None:
    topic.write(0, frame(10, b"a", b"b"), frame(20, b"c", previous=10))
    topic.write(0, frame(5, b"d", partition=1), partition=1)
    mark = Frame(
        origin=Origin("orders/dead-letter.0.0.0"),
        sequence=SequenceNumber(0),
        previous=SequenceNumber(0),
        kind=FrameKind.SENT_AGAIN,
    )
    topic.write(2, mark)
    found = log().those([name(wrong), name("0.0.1")])
    assert str(next(found).id) == "0.0.1"
    with pytest.raises(BettongError, match=f"there is no dead letter {wrong} in {TOPIC}"):
        next(found)
    with pytest.raises(BettongError, match=f"there is no dead letter {wrong} in {TOPIC}"):
        log().at(name(wrong))


def test_a_dead_letter_has_one_name_however_often_its_frame_was_written(topic: Topic) -> None:
    frames = frame(10, b"a", b"b"), frame(20, b"c", previous=10)
    topic.write(5, *frames)
    topic.write(5, frame(10, b"d", partition=1), partition=1)
    topic.write(900, *frames)  # a replay
    assert listed() == ["0.5.0", "0.5.1", "0.6.0", "1.5.0"]
    assert those("0.5.1") == ["0.5.1"]
    for copy, original in (("0.900.0", "0.5.0"), ("0.900.1", "0.5.1"), ("0.901.0", "0.6.0")):
        with pytest.raises(BettongError, match=f"^{copy} is a copy of {original}: .* use {original}$"):
            those(copy)
        with pytest.raises(BettongError, match=f"^{copy} is a copy of {original}"):
            log().at(name(copy))
    with pytest.raises(BettongError, match=r"there is no dead letter 0\.900\.2 in"):
        those("0.900.2")


@pytest.mark.parametrize(("read", "named"), [(100, "0.1.0"), (2, "")])
def test_a_tail_that_begins_later_than_the_topic_names_none_for_it_may_be_a_copy(
    topic: Topic, monkeypatch: pytest.MonkeyPatch, read: int, named: str
) -> None:
    monkeypatch.setattr(tail_module, "_RECORDS_MAX", read)
    frames = frame(10, b"a", b"b"), frame(20, b"c", previous=10)
    topic.write(0, *frames, *frames)
    with DeadLetterTail(KafkaConnection("nowhere"), "shop", frame_bytes_max=1 << 20) as tail:
        counts = tail.count(0.1)
    (row,) = counts.rows.values()
    assert (row.count, row.last_id, counts.skipped) == (3, named, 0 if named else 2)


def unsure() -> dict[str, bool]:
    return {str(each.id): each.mark_may_be_deleted for each in log().dead_letters()}


def test_where_the_beginning_was_deleted_the_rest_is_found_and_copies_are_not(topic: Topic) -> None:
    topic.write(700, frame(40, b"a", previous=30), frame(50, b"b", previous=40))
    topic.write(800, frame(50, b"b", previous=40), frame(60, b"c", previous=50))
    topic.write(0, frame(20, previous=10, partition=1), frame(10, partition=1), partition=1)
    topic.appended_s[TopicPartition(TOPIC, 0)] = BEGUN_S
    assert listed() == ["0.700.0", "0.701.0", "0.801.0", "1.1.0"], "1.0.0 waits for the frame before it"
    assert those("0.801.0") == ["0.801.0"]
    with pytest.raises(BettongError, match=r"0\.800\.0 is a copy of 0\.701\.0"):
        those("0.800.0")


def test_of_a_time_whose_records_were_deleted_the_mark_may_be_too(topic: Topic) -> None:
    """Marks lie in partition 0; a dead letter's original in its own."""
    for partition, offset in ((0, 100), (1, 0), (2, 50)):
        at_s = {0: (49, 50, 51), 1: (10, 49, 50), 2: (59, 60, 61)}[partition]
        frames = [
            frame(number + 1, previous=number, partition=partition, at_s=BEGUN_S + each)
            for number, each in enumerate(at_s)
        ]
        topic.write(offset, *frames, partition=partition)
    for partition, each in ((0, 50), (1, 5), (2, 60)):
        topic.appended_s[TopicPartition(TOPIC, partition)] = BEGUN_S + each
    assert [name for name, is_unsure in unsure().items() if is_unsure] == [
        "0.100.0",
        "1.0.0",
        "1.1.0",
        "2.50.0",
    ]
    assert [each.mark_may_be_deleted for each in log().those([name("1.1.0"), name("1.2.0")])] == [True, False]


def test_nothing_is_unsure_where_nothing_was_deleted(topic: Topic) -> None:
    topic.write(0, frame(1))
    topic.write(0, frame(1, partition=1), partition=1)
    assert not any(unsure().values())


def test_with_all_of_the_marks_deleted_every_dead_letter_is_unsure(topic: Topic) -> None:
    topic.write(0, frame(1, partition=1), partition=1)
    topic.empty_at = {TopicPartition(TOPIC, 0): 7}
    assert all(unsure().values())
