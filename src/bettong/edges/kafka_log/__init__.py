"""The log, that is Kafka: the only package that imports its clients, with `external_kafka`.

| name                | what it is for                                                        |
| ------------------- | --------------------------------------------------------------------- |
| `LogAdmin`          | wait for the broker, create and check topics, ask where logs begin and end |
| `LogWriter`         | append values to partitions, durably, in order, without duplicates    |
| `LogReader`         | read partitions from given offsets, never past a missing record                 |
| `RECORD_BYTES`      | what a value that is appended counts for beside its bytes             |
| `Record`            | one value and where it stands                                         |
| `TIMES_HEADER`, `TRACE_HEADER` | the headers of a record that hold its `times` and `traceparent` |
| `python_options`    | how it is spoken to, for other clients of kafka-python                |

Kafka's own errors and types stay inside: whatever goes wrong is a `LogError`, `LogUnavailableError` when no broker
answers (try again), `LogTruncatedError` when records are missing (stop). Every wait is bounded.
"""

from bettong.edges.kafka_log.admin import LogAdmin
from bettong.edges.kafka_log.reader import LogReader
from bettong.edges.kafka_log.record import TIMES_HEADER, TRACE_HEADER, Record
from bettong.edges.kafka_log.secured import python_options
from bettong.edges.kafka_log.sizes import RECORD_BYTES
from bettong.edges.kafka_log.writer import LogWriter

__all__ = [
    "RECORD_BYTES",
    "TIMES_HEADER",
    "TRACE_HEADER",
    "LogAdmin",
    "LogReader",
    "LogWriter",
    "Record",
    "python_options",
]
