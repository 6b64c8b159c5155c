"""The reader of a topic of the user's, on a real broker."""

import time
from collections.abc import Callable

import pytest
from kafka import KafkaAdminClient

from bettong.edges.external_kafka import ClientOptions, TopicReader
from bettong.edges.kafka_log import LogAdmin
from bettong.errors import LogError, LogTruncatedError, LogUnavailableError
from bettong.local.broker import KafkaBroker
from tests.servers.external_topic import Producer
from tests.waiting import bound_s, eventually


@pytest.fixture
def topic(unique_name: Callable[..., str], kafka: KafkaBroker) -> str:
    name = unique_name("read")
    with LogAdmin(kafka.bootstrap) as admin:
        admin.create_topics([name], partitions=2, replication=1, frame_bytes_max=1_000_000)
    return name


def reader_of(bootstrap: str, topic: str, **options: object) -> TopicReader:
    return TopicReader(ClientOptions("test", {"bootstrap_servers": bootstrap, **options}), topic)


def test_what_was_aborted_is_skipped_and_positions_go_behind_it(topic: str, kafka: KafkaBroker) -> None:
    producer = Producer(kafka.bootstrap, transactional_id=topic)
    producer.transaction(topic, 0, [b"a", b"b"], commit=True)  # offsets 0, 1, and 2 is its marker
    producer.transaction(topic, 0, [b"lost"] * 3, commit=False)  # 3 to 5, and 6
    producer.transaction(topic, 1, [b"lost"], commit=False)  # 0, and 1
    producer.close()
    with reader_of(kafka.bootstrap, topic) as reader:
        assert reader.partitions() == [0, 1]
        assert reader.bounds([0, 1]) == {0: (0, 7), 1: (0, 2)}
        reader.assign({0: 1, 1: 0})
        found: list[tuple[int, int, bytes | None]] = []

        def at_the_end() -> bool:
            for partition, records in reader.poll(100, 10).items():
                found.extend((partition, *each) for each in zip(records.offsets, records.values, strict=True))
            return [reader.position(0), reader.position(1)] == [7, 2]

        eventually(at_the_end, what="both partitions are read to their ends")
        assert found == [(0, 1, b"b")]
        assert reader.lag() == 0


def test_its_identity_is_the_topics_id_and_changes_when_it_is_made_anew(
    topic: str, kafka: KafkaBroker
) -> None:
    with LogAdmin(kafka.bootstrap) as admin, reader_of(kafka.bootstrap, topic) as reader:
        first = reader.identity()
        assert first == reader.identity() == admin.identities([topic])[topic]
        client = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
        client.delete_topics([topic])
        client.close()
        with pytest.raises(LogError, match=f"topic {topic} .*asking for its id"):
            eventually(lambda: reader.identity() != first)
        eventually(lambda: admin.create_topics([topic], partitions=2, replication=1, frame_bytes_max=5000))
        assert reader.identity() not in ("", first)


def test_what_librdkafka_raises_about_a_partition_is_an_error_of_the_log(
    topic: str, kafka: KafkaBroker
) -> None:
    with (
        reader_of(kafka.bootstrap, topic) as reader,
        pytest.raises(LogError, match=rf"topic {topic} .*beginning to read"),
    ):
        reader.assign({0: -17})


@pytest.mark.timely
def test_a_reader_that_was_full_goes_on_at_once(topic: str, kafka: KafkaBroker) -> None:
    count, size = 600, 64 * 1024  # more than twice what is read ahead
    producer = Producer(kafka.bootstrap)
    with reader_of(kafka.bootstrap, topic) as reader:
        reader.assign({0: 0})
        producer.send(topic, 0, [b"first"])
        eventually(lambda: reader.poll(100, 1), what="the first record")
        producer.send(topic, 0, [bytes(size)] * count)  # it reads ahead what it may meanwhile
        gaps, read, before_s = [], 0, time.monotonic()
        while read < count:
            found = reader.poll(5000, 10)
            gaps.append(time.monotonic() - before_s)
            before_s = time.monotonic()
            assert found, f"nothing came for 5 s after {read} records"
            read += len(found[0].offsets)
        assert max(gaps) < bound_s(0.3)
    producer.close()


def test_an_offset_that_is_not_there_is_an_error_with_its_name(topic: str, kafka: KafkaBroker) -> None:
    with reader_of(kafka.bootstrap, topic) as reader:
        reader.assign({0: 0, 1: 99})
        with pytest.raises(LogTruncatedError, match=f"{topic}.*99 of partition 1"):
            eventually(lambda: reader.poll(100, 10) and False, seconds=10)


def test_a_topic_that_is_not_there_a_cluster_that_is_away_and_a_wrong_option_are_reported(
    topic: str, kafka: KafkaBroker
) -> None:
    with reader_of(kafka.bootstrap, f"{topic}-not") as reader, pytest.raises(LogError, match="no such topic"):
        reader.partitions()
    with pytest.raises(LogUnavailableError, match="is it running and reachable"):
        reader_of("127.0.0.1:1", topic)
    with pytest.raises(LogError, match=r"security\.protocol"):
        reader_of(kafka.bootstrap, topic, security_protocol="NONSENSE")
