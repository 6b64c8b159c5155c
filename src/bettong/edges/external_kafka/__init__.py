"""Topics of the user's in any Kafka cluster, with any client options. Imports Kafka's clients, as `kafka_log` does.

| name                 | what it is for                                                          |
| -------------------- | ------------------------------------------------------------------------ |
| `ClientOptions`      | what a connection says, checked, for each kind of client                |
| `TransactionalTopic` | append records and positions in one transaction, alone                  |
| `TopicReader`        | read committed records from given offsets                               |

Kafka's own errors stay inside: `LogUnavailableError` when the same may go well in a while, else `LogError`.
"""

from bettong.edges.external_kafka.client_options import ClientOptions
from bettong.edges.external_kafka.record_sizes import KeyValue
from bettong.edges.external_kafka.topic_reader import TopicReader
from bettong.edges.external_kafka.transactional_topic import Outgoing, TransactionalTopic

__all__ = ["ClientOptions", "KeyValue", "Outgoing", "TopicReader", "TransactionalTopic"]
