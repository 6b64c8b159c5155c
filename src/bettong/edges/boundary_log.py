"""Where the frames of a topic of the user's end: kept in Bettong's own Kafka, one writer a source."""

from bettong.config.connection_settings import KafkaConnection
from bettong.edges.external_kafka import ClientOptions, TransactionalTopic
from bettong.edges.kafka_log import python_options
from bettong.topics import boundaries_topic


def boundary_log(
    kafka: KafkaConnection, application: str, source: str, *, replication: int = -1
) -> TransactionalTopic:
    """That of a source; whoever opens it shuts out who did before. Raises SettingsError for a password file.

    `replication`: see TransactionalTopic.
    """
    return TransactionalTopic(
        ClientOptions("BETTONG_KAFKA", {"bootstrap_servers": kafka.bootstrap, **python_options(kafka)}),
        topic=None,
        positions=boundaries_topic(application, source),
        transactional_id=f"bettong.{application}.{source}.batch-boundaries",
        replication=replication,
    )
