"""Users' topics in any Kafka cluster, with any client options. Imports Kafka's clients, as `kafka_log` does.

| name                 | purpose                                                                  |
| -------------------- | ------------------------------------------------------------------------ |
| `ClientOptions`      | checks the options of a connection, for each kind of client              |
| `TransactionalTopic` | appends records and positions in one transaction, as the only writer     |
| `TopicReader`        | reads committed records from given offsets                               |

Kafka's errors are mapped: to `LogUnavailableError` when a retry may succeed, else to `LogError`.
"""

from bettong.edges.external_kafka.client_options import ClientOptions
from bettong.edges.external_kafka.record_sizes import KeyValue
from bettong.edges.external_kafka.topic_reader import TopicReader
from bettong.edges.external_kafka.transactional_topic import Outgoing, TransactionalTopic

__all__ = ["ClientOptions", "KeyValue", "Outgoing", "TopicReader", "TransactionalTopic"]
