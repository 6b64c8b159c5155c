"""The log in Kafka: the only package that imports Kafka's clients, apart from `external_kafka`.

| name                | purpose                                                               |
| ------------------- | --------------------------------------------------------------------- |
| `LogAdmin`          | wait for the broker, create and check topics, read first and end offsets |
| `LogWriter`         | append values to partitions, durably, in order, without duplicates    |
| `LogReader`         | read partitions from given offsets, never past a missing record       |
| `RECORD_BYTES`      | buffer space that a value takes in addition to its bytes              |
| `Record`            | one value with its topic, partition and offset                        |
| `TIMES_HEADER`, `TRACE_HEADER` | the headers of a record that hold its `times` and `traceparent` |
| `python_options`    | connection options for other clients of kafka-python                  |

Kafka's errors and types stay inside: every failure is a `LogError`, a `LogUnavailableError` when no broker answers, or
the password file is away (try again), a `LogTruncatedError` when records are missing (stop). Every wait is bounded.
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
