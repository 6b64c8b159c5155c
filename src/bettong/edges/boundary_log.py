"""Stores the frame boundaries of a user's topic in Bettong's own Kafka, with one writer per source."""

from bettong.config.connection_settings import KafkaConnection
from bettong.edges.external_kafka import ClientOptions, TransactionalTopic
from bettong.edges.kafka_log import python_options
from bettong.topics import boundaries_topic


def boundary_log(
    kafka: KafkaConnection, application: str, source: str, *, replication: int = -1
) -> TransactionalTopic:
    """The log of a source. Opening it fences off the previous writer. Raises LogUnavailableError without a password.

    `replication`: see TransactionalTopic.
    """
    return TransactionalTopic(
        ClientOptions("BETTONG_KAFKA", {"bootstrap_servers": kafka.bootstrap, **python_options(kafka)}),
        topic=None,
        positions=boundaries_topic(application, source),
        transactional_id=f"bettong.{application}.{source}.batch-boundaries",
        replication=replication,
    )
