"""A reader of the log, before a broker that librdkafka plays in this process."""

from contextlib import closing

from confluent_kafka import Producer

from bettong.edges.kafka_log import LogReader
from bettong.identifiers import TopicPartition
from tests.waiting import eventually


def test_a_reader_is_suspect_from_a_lost_connection_on() -> None:
    """Until the broker answers again: tests/integration/test_kafka_reading.py."""
    topic, reported = "numbers", list[str]()
    with closing(Producer({"bootstrap.servers": "played", "test.mock.num.brokers": 1})) as player:
        (broker,) = player.list_topics(topic, timeout=10).brokers.values()  # which makes the topic
        with LogReader(
            f"{broker.host}:{broker.port}",
            {TopicPartition(topic, 0): 0},
            frame_bytes_max=1000,
            on_wait=reported.append,
        ) as reader:
            assert (reader.poll(200, 1), reader.is_suspect) == ([], False)
            player.close()
            eventually(lambda: reader.poll(50, 1) or reader.is_suspect, what="the connection is lost")
            eventually(lambda: reader.poll(50, 1) or reported, what="the broker does not answer")
            assert reader.is_suspect
