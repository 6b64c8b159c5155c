"""Appending to a real log, also while the broker is unavailable."""

import itertools
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from confluent_kafka import Producer

from bettong.edges.kafka_log import RECORD_BYTES, TIMES_HEADER, LogAdmin, LogWriter, Record
from bettong.errors import LogError, LogUnavailableError
from bettong.identifiers import TopicPartition
from bettong.local.broker import KafkaBroker
from tests.integration.log_parts import (
    FRAME_BYTES_MAX,
    NOBODY,
    Outcome,
    append_all,
    batches,
    created,
    lose_last_batch,
    read_all,
    reader,
    writer,
)
from tests.servers.freezing import frozen
from tests.waiting import eventually

Name = Callable[..., str]

ROUNDS = 15


def test_values_are_answered_with_their_offsets_and_read_back_as_they_were(
    kafka: KafkaBroker, topic: str
) -> None:
    values = [bytes([number]) * number for number in range(200)]  # the first is empty; none is a frame
    assert append_all(kafka, topic, 0, values) == list(range(200))
    with reader(kafka, {(topic, 0): 0}) as log:
        assert read_all(log, 200) == [Record(topic, 0, at, value) for at, value in enumerate(values)]


def test_times_lie_beside_a_value_also_the_largest_and_other_headers_do_not_count(
    kafka: KafkaBroker, topic: str
) -> None:
    values = [b"", b"value", bytes(3 * FRAME_BYTES_MAX + 2 * 1024)]
    times = [b"", bytes(range(16)), bytes(16)]
    with writer(kafka) as log:
        for value, own in zip(values, times, strict=True):
            log.append(TopicPartition(topic, 0), value, lambda _: None, times=own)
    external = Producer({"bootstrap.servers": kafka.bootstrap})
    external.produce(topic, b"of others", partition=0, headers=[("x", b"y"), (TIMES_HEADER, None)])
    external.produce(topic, b"of others", partition=0, headers=[("x", b"y"), (TIMES_HEADER, b"z")])
    assert external.flush(30) == 0
    with reader(kafka, {(topic, 0): 0}) as log:
        found = [(each.value, each.times) for each in read_all(log, 5)]
    assert found == [*zip(values, times, strict=True), (b"of others", b""), (b"of others", b"z")]


def test_the_largest_value_passes_and_one_byte_more_is_refused_at_once(
    kafka: KafkaBroker, topic: str
) -> None:
    largest = 3 * FRAME_BYTES_MAX + 2 * 1024  # columns, refused messages with their indexes, and envelopes
    outcomes: list[Outcome] = []
    with writer(kafka) as log:
        with pytest.raises(LogError, match=f"{topic}/0.*{largest + 1} bytes.*at most {largest}"):
            log.append(TopicPartition(topic, 0), bytes(largest + 1), outcomes.append)
        log.append(TopicPartition(topic, 0), bytes(largest), outcomes.append)
    assert outcomes == [0]
    with reader(kafka, {(topic, 0): 0}, fetch_bytes_max=64 * 1024) as records:
        assert read_all(records, 1) == [Record(topic, 0, 0, bytes(largest))]


def test_a_topic_or_partition_that_does_not_exist_is_refused_and_the_writer_goes_on(
    kafka: KafkaBroker, topic: str, unique_name: Name
) -> None:
    missing = unique_name("log")
    outcomes: list[Outcome] = []
    with writer(kafka) as log:
        with pytest.raises(LogError, match=f"{topic}/2.*no such partition"):
            log.append(TopicPartition(topic, 2), b"", outcomes.append)
        with pytest.raises(LogError, match=f"{missing}/0.*no such topic"):
            log.append(TopicPartition(missing, 0), b"", outcomes.append)
        log.append(TopicPartition(topic, 0), b"", outcomes.append)
    assert outcomes == [0]


def test_threads_that_append_at_a_time_each_keep_their_order(kafka: KafkaBroker, topic: str) -> None:
    outcomes: list[Outcome] = []
    with writer(kafka) as log:

        def append(thread: int) -> None:
            for number in range(200):
                log.append(TopicPartition(topic, 0), b"%d/%03d" % (thread, number), outcomes.append)

        threads = [threading.Thread(target=append, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(offset for offset in outcomes if isinstance(offset, int)) == list(range(800))
    with reader(kafka, {(topic, 0): 0}) as records:
        values = [record.value for record in read_all(records, 800)]
    for name in range(4):
        own = [value for value in values if value.startswith(b"%d/" % name)]
        assert own == [b"%d/%03d" % (name, number) for number in range(200)]


def test_topics_that_are_as_new_as_can_be_lose_nothing(
    kafka: KafkaBroker, admin: LogAdmin, unique_name: Name
) -> None:
    """A broker that does not lead a partition yet refuses the first values, and may accept those after them."""
    outcomes: list[Outcome] = []
    with writer(kafka) as log:
        for _ in range(ROUNDS):
            topics = [unique_name("log") for _ in range(5)]
            admin.create_topics(topics, partitions=2, replication=1, frame_bytes_max=FRAME_BYTES_MAX)
            for number, topic in itertools.product(range(100), reversed(topics)):
                log.append(TopicPartition(topic, number % 2), bytes(100), outcomes.append)
            log.flush(30)
            assert log.failure is None
            assert set(admin.ends(topics).values()) == {50}


def test_who_asks_often_for_offsets_may_know_the_partitions_for_a_while(
    kafka: KafkaBroker, admin: LogAdmin, unique_name: Name
) -> None:
    topic, other = unique_name("log"), unique_name("log")
    with LogAdmin(kafka.bootstrap, topics_known_s=600.0) as asking:
        admin.create_topics([topic, other], partitions=1, replication=1, frame_bytes_max=FRAME_BYTES_MAX)
        assert asking.ends([topic]) == {(topic, 0): 0}
        with writer(kafka) as log:
            log.append(TopicPartition(topic, 0), b"one", lambda _: None)
            log.flush(30)
        admin.add_partitions([topic], 2)
        assert asking.ends([topic]) == {(topic, 0): 1}, "offsets are as they are now"
        assert admin.ends([topic]) == {(topic, 0): 1, (topic, 1): 0}
        assert asking.ends([topic, other]).keys() == {(topic, 0), (topic, 1), (other, 0)}


def test_a_broker_killed_in_the_middle_loses_nothing_doubles_nothing_and_keeps_the_order(
    own_broker: KafkaBroker, own_topic: str
) -> None:
    outcomes: list[Outcome] = []
    stop = threading.Event()
    appended = 0
    reported: list[str] = []
    starts = {(own_topic, 0): 0, (own_topic, 1): 0}
    # The buffer is so small that appending blocks while the broker is unavailable.
    with (
        writer(own_broker, buffer_bytes_max=FRAME_BYTES_MAX) as log,
        reader(own_broker, starts, on_wait=reported.append) as records,
    ):

        def append() -> None:
            nonlocal appended
            while not stop.is_set():
                log.append(TopicPartition(own_topic, appended % 2), b"%08d" % appended * 100, outcomes.append)
                appended += 1

        thread = threading.Thread(target=append)
        thread.start()
        read_all(records, 500)
        own_broker.kill()
        eventually(lambda: records.poll(50, 100) or reported, seconds=30)
        own_broker.start()
        wanted = len(outcomes) + 2000
        eventually(lambda: len(outcomes) > wanted, seconds=60)
        stop.set()
        thread.join()
        log.flush(60)
        assert len(outcomes) == appended
        assert not [outcome for outcome in outcomes if isinstance(outcome, LogError)]
        for partition in range(2):
            records.seek(TopicPartition(own_topic, partition), 0)
        seen = read_all(records, appended)
        assert records.poll(1000, 1) == []
    for partition in range(2):
        numbers = [int(record.value[:8]) for record in seen if record.partition == partition]
        assert numbers == list(range(partition, appended, 2))


def test_a_broker_that_stays_away_fails_the_writer_in_time_and_a_new_one_goes_on(
    own_broker: KafkaBroker, own_topic: str
) -> None:
    outcomes: list[Outcome] = []
    with writer(own_broker, delivery_timeout_ms=3000) as log:
        log.append(TopicPartition(own_topic, 0), b"before", outcomes.append)
        log.flush(10)
        own_broker.kill()
        for number in range(50):
            log.append(TopicPartition(own_topic, number % 2), b"lost", outcomes.append)
        with pytest.raises(LogUnavailableError, match="flushing"):
            log.flush(0.1)
        eventually(lambda: len(outcomes) == 51, seconds=10)
        assert outcomes[0] == 0
        assert all(isinstance(outcome, LogError) for outcome in outcomes[1:])
        assert isinstance(log.failure, LogUnavailableError)
        with pytest.raises(LogError, match="cannot be used any more"):
            log.append(TopicPartition(own_topic, 0), b"late", outcomes.append)
    own_broker.start()
    assert append_all(own_broker, own_topic, 0, [b"after"]) == [1]
    assert len(outcomes) == 51


@pytest.mark.parametrize("size", [1000, 0])
def test_a_full_buffer_blocks_and_gives_up_in_time(
    own_broker: KafkaBroker, own_topic: str, size: int
) -> None:
    """The overhead of a value counts, too: otherwise the number of small values would be unbounded."""
    outcomes: list[Outcome] = []
    room = 2 * (size + RECORD_BYTES)
    with writer(own_broker, buffer_bytes_max=room, delivery_timeout_ms=3000) as log:
        for _ in range(20):  # more than the buffer holds: answers free it
            log.append(TopicPartition(own_topic, 0), bytes(size), outcomes.append)
        log.flush(10)
        with frozen(own_broker):
            log.append(TopicPartition(own_topic, 0), bytes(size), outcomes.append)
            log.append(TopicPartition(own_topic, 0), bytes(size), outcomes.append)
            with pytest.raises(
                LogError, match=r"stayed full|cannot be used any more"
            ):  # whichever comes first
                log.append(TopicPartition(own_topic, 0), bytes(size), outcomes.append)
            eventually(lambda: len(outcomes) == 22)
    assert outcomes[:20] == list(range(20))
    assert [type(outcome) for outcome in outcomes[20:]] == [LogUnavailableError, LogUnavailableError]


def test_what_the_broker_refuses_fails_the_writer_and_nothing_after_it_is_sent(
    kafka: KafkaBroker, topic: str, admin: LogAdmin
) -> None:
    outcomes: list[Outcome] = []
    with writer(kafka, frame_bytes_max=4 * FRAME_BYTES_MAX) as log:
        log.append(TopicPartition(topic, 0), b"first", outcomes.append)
        log.append(TopicPartition(topic, 0), bytes(4 * FRAME_BYTES_MAX), outcomes.append)
        try:
            log.append(TopicPartition(topic, 0), b"third", outcomes.append)
        except LogError as error:  # the broker answered first
            outcomes.append(error)
        eventually(lambda: len(outcomes) == 3)
        assert "max.message.bytes" in str(log.failure)
    assert outcomes[0] == 0
    assert [type(outcome) for outcome in outcomes[1:]] == [LogError, LogError]
    assert admin.ends([topic])[TopicPartition(topic, 0)] == 1


def append_refused(log: LogWriter, topic: str, outcomes: list[Outcome], *, others: int) -> int:
    """A value that the broker refuses, and behind it others into another partition; how many were appended."""
    log.append(TopicPartition(topic, 0), bytes(4 * FRAME_BYTES_MAX), outcomes.append)
    appended = 1
    with suppress(LogError):  # the broker answered first
        for _ in range(others):
            log.append(TopicPartition(topic, 1), bytes(1000), outcomes.append)
            appended += 1
    return appended


def test_the_writer_has_failed_by_what_the_broker_refused_and_not_by_what_was_dropped_then(
    kafka: KafkaBroker, admin: LogAdmin, unique_name: Name
) -> None:
    """Values that wait for other partitions are dropped; in half of the rounds librdkafka answers these first."""
    for _ in range(ROUNDS):
        topic = created(admin, unique_name())
        outcomes: list[Outcome] = []
        with writer(kafka, frame_bytes_max=4 * FRAME_BYTES_MAX) as log:
            appended = append_refused(log, topic, outcomes, others=400)
            eventually(lambda: len(outcomes) == appended)  # noqa: B023 - at once
            assert "max.message.bytes" in str(log.failure)
        assert all("max.message.bytes" in str(each) for each in outcomes if isinstance(each, LogError))


def test_a_writer_that_is_closed_while_it_fails_names_the_cause(
    kafka: KafkaBroker, admin: LogAdmin, unique_name: Name
) -> None:
    for _ in range(ROUNDS):
        topic = created(admin, unique_name())
        outcomes: list[Outcome] = []
        log = writer(kafka, frame_bytes_max=4 * FRAME_BYTES_MAX)
        appended = append_refused(log, topic, outcomes, others=20)
        log.close()
        assert len(outcomes) == appended
        refused = [str(each) for each in outcomes if isinstance(each, LogError)]
        assert refused
        assert all("max.message.bytes" in each for each in refused)
        with pytest.raises(LogError, match=r"cannot be used any more: .*max\.message\.bytes"):
            log.append(TopicPartition(topic, 1), b"", outcomes.append)


def test_a_broker_that_lost_the_end_of_its_log_fails_the_writer(
    own_broker: KafkaBroker, own_topic: str
) -> None:
    """Answered values are lost: the broker does not expect the next sequence number."""
    outcomes: list[Outcome] = []
    with writer(own_broker) as log:
        for value in (b"first", b"second"):
            log.append(TopicPartition(own_topic, 0), value, outcomes.append)
            log.flush(10)
        own_broker.kill()
        lose_last_batch(own_broker, own_topic, 0)
        own_broker.start()
        log.append(TopicPartition(own_topic, 0), b"third", outcomes.append)
        eventually(lambda: log.failure)
        with pytest.raises(LogError, match="cannot be used any more"):
            log.append(TopicPartition(own_topic, 1), b"fourth", outcomes.append)
    assert outcomes[:2] == [0, 1]
    assert [type(outcome) for outcome in outcomes[2:]] == [LogError]
    with LogAdmin(own_broker.bootstrap) as admin:
        assert admin.ends([own_topic]) == {(own_topic, 0): 1, (own_topic, 1): 0}


def test_closing_answers_everything_and_a_closed_writer_refuses(kafka: KafkaBroker, topic: str) -> None:
    outcomes: list[Outcome] = []
    log = writer(kafka)
    for _ in range(1000):
        log.append(TopicPartition(topic, 0), bytes(1000), outcomes.append)
    log.close(0)
    log.close()
    assert len(outcomes) == 1000
    offsets = [outcome for outcome in outcomes if isinstance(outcome, int)]
    assert offsets == list(range(len(offsets)))
    with pytest.raises(LogError, match="closed"):
        log.append(TopicPartition(topic, 0), b"", outcomes.append)


def test_a_writer_without_a_broker_is_an_error_in_time_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with pytest.raises(LogUnavailableError, match=NOBODY):
        LogWriter(NOBODY, frame_bytes_max=1000, buffer_bytes_max=1000)
    assert not set(threading.enumerate()) - before


def test_a_lone_value_is_read_at_once(kafka: KafkaBroker, topic: str) -> None:
    """No linger and no fixed wait: the best of some attempts is far below any such wait."""
    waits_s = []
    with writer(kafka) as log, reader(kafka, {(topic, 0): 0}) as records:
        for _ in range(20):
            begun_s = time.monotonic()
            log.append(TopicPartition(topic, 0), b"alone", lambda _: None)
            read_all(records, 1)
            waits_s.append(time.monotonic() - begun_s)
    assert min(waits_s) < 0.03


def test_values_go_out_alone_when_they_come_so_and_together_when_the_broker_is_behind(
    own_broker: KafkaBroker, own_topic: str
) -> None:
    outcomes: list[Outcome] = []
    with writer(own_broker) as log:
        for _ in range(10):
            log.append(TopicPartition(own_topic, 0), b"alone", outcomes.append)
            log.flush(10)
        assert len(batches(own_broker, own_topic, 0)) == 10
        with frozen(own_broker):
            for _ in range(1000):
                log.append(TopicPartition(own_topic, 0), b"together", outcomes.append)
        log.flush(30)
    assert outcomes == list(range(1010))
    assert len(batches(own_broker, own_topic, 0)) <= 10 + 5


# Reading
