"""Reads a topic of any Kafka cluster."""

from collections.abc import Callable, Mapping

from bettong.application.external.kafka_topic import KafkaTopic
from bettong.config.connections import Options, options_of
from bettong.edges.external_kafka import ClientOptions, TopicReader


def opener(
    transport: KafkaTopic, *, source: str, connections: Mapping[str, Options]
) -> Callable[[], TopicReader]:
    """See `bettong_sender.readers`."""
    connection = transport.connection or source
    options = ClientOptions(
        connection, options_of(connections, connection, user=f"source {source!r}", needs="bootstrap_servers")
    )
    return lambda: TopicReader(options, transport.topic)
