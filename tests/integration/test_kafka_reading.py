"""Reading a real log: from any offset, added and removed partitions, deleted records, an unavailable broker."""

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from bettong.edges.kafka_log import LogReader, Record, librdkafka
from bettong.edges.kafka_log import reader as reading
from bettong.errors import LogError, LogTruncatedError, LogUnavailableError
from bettong.identifiers import TopicPartition
from bettong.local.broker import KafkaBroker
from tests.integration.log_parts import (
    append_all,
    damage_batch,
    delete_below,
    read_all,
    reader,
)
from tests.servers.external_topic import Producer
from tests.waiting import eventually

Name = Callable[..., str]


def test_reading_starts_anywhere_goes_back_and_knows_where_it_stands(kafka: KafkaBroker, topic: str) -> None:
    for partition in range(2):
        append_all(kafka, topic, partition, [b"%d" % number for number in range(10)])
    with reader(kafka, {(topic, 0): 7, (topic, 1): 10}) as log:
        assert log.positions() == {(topic, 0): 7, (topic, 1): 10}
        assert [record.offset for record in read_all(log, 2)] == [7, 8]
        assert log.positions() == {(topic, 0): 9, (topic, 1): 10}
        log.seek(TopicPartition(topic, 1), 9)
        assert {(record.partition, record.offset) for record in read_all(log, 2)} == {(0, 9), (1, 9)}
        assert log.poll(100, 10) == []
        with pytest.raises(LogError, match=topic):
            log.seek(TopicPartition(topic, 2), 0)


def test_partitions_are_added_and_removed_while_others_are_read(kafka: KafkaBroker, topic: str) -> None:
    for partition in (0, 1):
        append_all(kafka, topic, partition, [b"%d" % number for number in range(4)])
    with reader(kafka, {}) as log:
        log.look_up([topic])
        assert log.poll(10, 10) == []
        log.add(TopicPartition(topic, 0), 1)
        assert [record.offset for record in read_all(log, 1)] == [1]
        log.add(TopicPartition(topic, 1), 2)
        found = sorted((record.partition, record.offset) for record in read_all(log, 4))
        assert found == [(0, 2), (0, 3), (1, 2), (1, 3)]
        assert log.lag(TopicPartition(topic, 0)) == 0
        log.remove(TopicPartition(topic, 0))
        append_all(kafka, topic, 0, [b"4"])
        append_all(kafka, topic, 1, [b"4"])
        assert [(record.partition, record.offset) for record in read_all(log, 1)] == [(1, 4)]
        log.add(TopicPartition(topic, 0), 0)
        assert [record.offset for record in read_all(log, 5)] == [0, 1, 2, 3, 4]
        with pytest.raises(LogError, match="partitions, expected 2 too"):
            log.add(TopicPartition(topic, 2), 0)
        assert log.positions() == {(topic, 0): 5, (topic, 1): 5}


@pytest.fixture
def reconnected_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When readers made new connections. The broker holds fetches for half a minute, if it has nothing."""
    monkeypatch.setattr(reading, "_FETCH_WAIT_MS_MAX", 30_000)
    found: list[float] = []

    def client(*options: Any) -> Any:
        found.append(time.monotonic())
        return librdkafka.client(*options)

    monkeypatch.setattr(reading, "client", client)
    return found


@pytest.mark.usefixtures("reconnected_s")
def test_an_added_partition_does_not_wait_for_a_fetch_that_the_broker_holds(
    kafka: KafkaBroker, topic: str
) -> None:
    quiet, added = TopicPartition(topic, 1), TopicPartition(topic, 0)
    append_all(kafka, topic, 0, [b"0", b"1"])
    with reader(kafka, {quiet: 0}) as log:
        assert log.poll(200, 1) == []
        for _ in range(3):
            log.add(added, 0)
            begun_s = time.monotonic()
            assert [record.offset for record in read_all(log, 2)] == [0, 1]
            assert time.monotonic() - begun_s < 15
            log.remove(added)
        append_all(kafka, topic, 1, [b"late"])
        assert [record.value for record in read_all(log, 1)] == [b"late"]


def test_many_added_partitions_share_new_connections(
    kafka: KafkaBroker, topic: str, reconnected_s: list[float]
) -> None:
    quiet, added = TopicPartition(topic, 1), TopicPartition(topic, 0)
    with reader(kafka, {quiet: 0}) as log:
        assert log.poll(200, 1) == []
        for _ in range(30):
            log.add(added, 0)
            assert log.poll(30, 1) == []
            assert log.poll(30, 1) == []
            log.remove(added)
    assert len(reconnected_s) > 1
    assert min(later - earlier for earlier, later in pairwise(reconnected_s)) > 0.05


def test_where_no_new_connection_can_be_made_an_added_partition_waits(
    kafka: KafkaBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while the file with the password is replaced."""

    def client(*_: Any) -> Any:
        raise LogUnavailableError("the password's file is not there")

    monkeypatch.setattr(reading, "client", client)
    append_all(kafka, topic, 0, [b"0"])
    with reader(kafka, {(topic, 1): 0}) as log:
        assert log.poll(200, 1) == []
        log.add(TopicPartition(topic, 0), 0)
        assert [record.value for record in read_all(log, 1)] == [b"0"]


def test_what_was_fetched_and_not_polled_is_counted(kafka: KafkaBroker, topic: str) -> None:
    there, nothing = TopicPartition(topic, 0), TopicPartition(topic, 1)
    append_all(kafka, topic, 0, [b"%d" % number for number in range(2000)])
    polled = 0
    with reader(kafka, {there: 0, nothing: 0}, counts_ahead=True) as log:

        def ahead() -> int | None:
            nonlocal polled
            polled += len(log.poll(10, 1))
            return log.read_ahead(there)

        counted = eventually(ahead) or 0
        assert 2000 - polled <= counted < 2000
        assert log.read_ahead(nothing) in {None, 0}
        read_all(log, 2000 - polled)
        eventually(lambda: log.poll(10, 1) == [] and log.read_ahead(there) == 0)
        log.remove(there)
        assert log.read_ahead(there) is None


@pytest.mark.parametrize("start", [1, 4])
def test_an_offset_outside_the_log_is_an_error(kafka: KafkaBroker, topic: str, start: int) -> None:
    append_all(kafka, topic, 0, [b"a", b"b", b"c"])
    delete_below(kafka, topic, 0, 2)
    with reader(kafka, {(topic, 0): start, (topic, 1): 0}) as log:
        for _ in range(2):  # polling again does not help
            with pytest.raises(
                LogTruncatedError, match=f"{topic}/0: offset {start} is needed, the log holds 2 up to 3"
            ):
                read_all(log, 1)


def test_all_truncated_partitions_are_named_and_a_broker_that_is_silent_is_asked_once(
    kafka: KafkaBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def silent(_: LogReader, partition: TopicPartition) -> None:
        asked.append(partition)

    monkeypatch.setattr(LogReader, "_bounds", silent)
    monkeypatch.setattr(reading, "_OUT_OF_RANGE_GATHER_S", 2.0)

    def names_both() -> bool:
        """The broker may say it of one of them first, and a busy one of the other much later."""
        asked.clear()
        with reader(kafka, {(topic, 0): 4, (topic, 1): 5}) as log, pytest.raises(LogTruncatedError) as raised:
            read_all(log, 1)
        assert len(asked) == 1
        needed = [f"{topic}/{partition}: offset {4 + partition} is needed" for partition in (0, 1)]
        return all(each in str(raised.value) for each in needed)

    eventually(names_both, seconds=60)


def test_a_truncated_partition_stays_one_until_it_is_removed_or_sought(
    kafka: KafkaBroker, topic: str
) -> None:
    append_all(kafka, topic, 0, [b"a", b"b", b"c"])
    delete_below(kafka, topic, 0, 2)
    with reader(kafka, {(topic, 0): 1, (topic, 1): 0}) as log:

        def poll_and_move_another() -> None:
            log.poll(200, 10)
            log.remove(TopicPartition(topic, 1))
            log.add(TopicPartition(topic, 1), 0)

        with pytest.raises(LogTruncatedError, match=f"{topic}/0: offset 1 is needed"):
            eventually(poll_and_move_another)
        log.seek(TopicPartition(topic, 0), 2)
        assert [record.offset for record in read_all(log, 1)] == [2]


def test_a_fetch_of_before_a_seek_that_fails_after_it_is_no_truncation(
    kafka: KafkaBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_all(kafka, topic, 0, [b"a", b"b", b"c"])
    delete_below(kafka, topic, 0, 2)
    polled, events = librdkafka.polled, list[Any]()
    with reader(kafka, {(topic, 0): 1}) as log:

        def keep_events(*arguments: Any) -> list[Any]:
            found = polled(*arguments)
            events.extend(each for each in found if each.error())
            return found

        monkeypatch.setattr(reading, "polled", keep_events)
        with pytest.raises(LogTruncatedError):
            eventually(lambda: log.poll(200, 10))
        log.seek(TopicPartition(topic, 0), 2)
        monkeypatch.setattr(reading, "polled", lambda *_: events)
        assert log.poll(200, 10) == []
        monkeypatch.setattr(reading, "polled", polled)
        found, until_s = list[Record](), time.monotonic() + 0.5
        while time.monotonic() < until_s or not found:
            found += log.poll(100, 10)
        assert [record.offset for record in found] == [2]
        monkeypatch.setattr(reading, "polled", lambda *_: events)
        log.remove(TopicPartition(topic, 0))
        assert log.poll(200, 10) == []


def test_records_that_vanish_under_a_reader_are_an_error(kafka: KafkaBroker, topic: str) -> None:
    append_all(kafka, topic, 0, [bytes(200_000)] * 30)
    with reader(kafka, {(topic, 0): 0}) as log:
        read_all(log, 1)
        delete_below(kafka, topic, 0, 29)
        with pytest.raises(LogTruncatedError, match="the log holds 29 up to 30"):
            read_all(log, 29)
        assert log.positions()[TopicPartition(topic, 0)] < 29


def test_what_was_read_before_a_missing_record_is_returned_before_the_error(
    kafka: KafkaBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = Producer(kafka.bootstrap, transactional_id=topic)
    producer.transaction(topic, 0, [b"a", b"b", b"c"], commit=True)  # the marker at its end has offset 3
    producer.close()
    append_all(kafka, topic, 0, [b"d"])
    append_all(kafka, topic, 1, [b"e"])
    # In one batch.
    monkeypatch.setattr(reading, "polled", lambda consumer, _, records_max: consumer.consume(records_max, 10))
    with reader(kafka, {(topic, 0): 0, (topic, 1): 0}) as log:
        found = sorted((record.partition, record.offset) for record in log.poll(200, 5))
        assert found == [(0, 0), (0, 1), (0, 2), (1, 0)]
        assert log.positions() == {(topic, 0): 3, (topic, 1): 1}
        for _ in range(2):
            with pytest.raises(
                LogTruncatedError, match=f"{topic}/0: offset 3 is missing, the log goes on with 4"
            ):
                log.poll(200, 1)
        log.seek(TopicPartition(topic, 0), 4)
        assert [record.value for record in log.poll(200, 1)] == [b"d"]


def test_damaged_records_are_an_error_after_those_before_them(kafka: KafkaBroker, topic: str) -> None:
    for value in (b"a", b"b", b"c"):
        append_all(kafka, topic, 0, [value])
    damage_batch(kafka, topic, 0, 1)
    with reader(kafka, {(topic, 0): 0}) as log:
        assert [record.value for record in read_all(log, 1)] == [b"a"]
        with pytest.raises(LogError, match=f"reading {topic}/0"):
            eventually(lambda: log.poll(200, 10))
        with pytest.raises(LogError, match=f"reading {topic}/0"):
            log.poll(200, 10)
        log.seek(TopicPartition(topic, 0), 2)
        assert [record.value for record in read_all(log, 1)] == [b"c"]


def test_a_reader_of_what_does_not_exist_is_refused(kafka: KafkaBroker, topic: str) -> None:
    with pytest.raises(LogError, match=f"{topic}.*2 partitions, expected 2, 3 too"):
        reader(kafka, {(topic, partition): 0 for partition in range(4)})
    with pytest.raises(LogError, match="no-such-topic"):
        reader(kafka, {("no-such-topic", 0): 0})


def test_a_reader_says_that_the_broker_is_away_and_goes_on_when_it_is_back(
    own_broker: KafkaBroker, own_topic: str
) -> None:
    append_all(own_broker, own_topic, 0, [b"a"])
    reported: list[str] = []
    with reader(own_broker, {(own_topic, 0): 0}, on_wait=reported.append) as log:
        assert [record.value for record in read_all(log, 1)] == [b"a"]
        assert log.poll(100, 1) == []
        assert (reported, log.is_suspect) == ([], False)
        own_broker.kill()
        eventually(lambda: log.poll(100, 1) or reported, seconds=20)
        assert (own_broker.bootstrap in reported[0], log.is_suspect) == (True, True)
        own_broker.start()
        append_all(own_broker, own_topic, 0, [b"b"])
        assert ([record.value for record in read_all(log, 1)], log.is_suspect) == ([b"b"], False)
